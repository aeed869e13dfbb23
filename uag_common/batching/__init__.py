"""How the steps of many sessions share the forward passes of one model. No torch, no grpc."""
