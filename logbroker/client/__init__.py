"""gRPC out: the Python client."""
