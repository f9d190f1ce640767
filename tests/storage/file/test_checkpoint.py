"""The checkpoint: round trip, and what is no checkpoint."""

import json

import pytest
from crc32c import crc32c

from logbroker.record.partition_id import PartitionId
from logbroker.storage.file.checkpoint import Checkpoint

CHECKPOINT = Checkpoint(
    topic="orders",
    topic_id="6f1c",
    partition=3,
    log_start_offset=10,
    next_offset=(1 << 62) + 1,
    append_time_ms=1_800_000_000_000,
)


def test_a_checkpoint_comes_back_as_it_was():
    assert Checkpoint.decode(CHECKPOINT.encode()) == CHECKPOINT
    assert CHECKPOINT.id == PartitionId("orders", "6f1c", 3)


def test_no_cut_and_no_flipped_bit_is_taken_for_a_checkpoint():
    data = CHECKPOINT.encode()
    assert [end for end in range(len(data)) if Checkpoint.decode(data[:end])] == []
    for at in range(len(data)):
        assert Checkpoint.decode(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None
    assert Checkpoint.decode(data + b"\n") is None


@pytest.mark.parametrize(
    "line",
    [
        b"[]\n",
        b"7\n",
        b"{}\n",
        b'{"format":2,"topic":"a","topic_id":"b","partition":0}\n',
        b'{"format":1,"topic":"a","topic_id":"b","partition":0,"more":1}\n',
        b'{"format":1,"topic":"a","topic_id":"b","partition":0,"log_start_offset":5}\n',
        b"\xff\xfe\n",
    ],
)
def test_a_line_that_says_something_else_is_no_checkpoint(line):
    assert Checkpoint.decode(line + b"crc32c %08x\n" % crc32c(line)) is None


def test_a_log_never_starts_beyond_its_next_offset():
    with pytest.raises(ValueError, match="log_start_offset"):
        Checkpoint(topic="a", topic_id="b", partition=0, log_start_offset=2, next_offset=1)


def test_the_first_line_is_json():
    assert json.loads(CHECKPOINT.encode().split(b"\n")[0])["format"] == 1
