"""Use cases. Knows no protobuf and no files."""
