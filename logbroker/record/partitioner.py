"""Where a record goes: one function in all clients, pinned by tests/golden/partitions.json."""

import zlib


def partition_of(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key: CRC-32 (IEEE, unsigned) modulo the partition count.

    As librdkafka's `consistent`. An empty key is a key; a null key has no partition.
    """
    return zlib.crc32(key) % partition_count
