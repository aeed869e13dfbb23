"""The command line, `uag`. It starts services as processes and talks to them over gRPC."""
