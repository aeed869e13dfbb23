"""The gRPC edge that more than one service needs. Only here and in servicers and clients: grpc."""
