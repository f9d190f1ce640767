"""Protobuf to values and errors to status, in both directions."""
