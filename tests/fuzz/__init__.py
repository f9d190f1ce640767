"""Bytes that nobody of ours wrote, given to everything that reads bytes from outside."""
