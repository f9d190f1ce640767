"""One function in all clients: the vectors they share."""

import json
from pathlib import Path

import pytest

from logbroker.record.partitioner import partition_of

VECTORS = json.loads(Path("tests/golden/partitions.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["key_hex"] or "empty")
def test_a_key_goes_where_every_client_sends_it(vector):
    key = bytes.fromhex(vector["key_hex"])
    assert partition_of(key, vector["partition_count"]) == vector["partition"]


def test_every_partition_gets_keys():
    found = {partition_of(b"key-%d" % number, 12) for number in range(500)}
    assert found == set(range(12))
