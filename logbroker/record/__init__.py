"""What is stored: records, batches, their bytes. Pure."""
