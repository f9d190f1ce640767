"""gRPC in."""
