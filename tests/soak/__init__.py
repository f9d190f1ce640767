"""A broker under mixed load for as long as you like, watched for what grows."""
