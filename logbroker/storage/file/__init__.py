"""Partitions as files."""
