"""From a client's prompt to the token ids of one side. No grpc, no torch."""
