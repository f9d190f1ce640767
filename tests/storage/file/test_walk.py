"""Runs of sound batches in a buffer."""

import pytest

from logbroker.record.batch import Batch
from logbroker.storage.file.walk import Found, find_run, walk

SEED = 7
EVERYTHING = 1 << 30


def batch_at(offset, size=100):
    batch = Batch.unstamped(b"v" * size, record_count=1, max_timestamp_ms=offset)
    return batch.stamped(base_offset=offset, append_time_ms=9).encode(SEED)


DATA = b"".join(batch_at(offset) for offset in range(10, 20))
SIZE = len(DATA) // 10


def test_a_walk_tells_where_each_batch_lies():
    walked = list(walk(DATA, SEED, 0, 10))
    assert [batch.position for batch in walked] == [at * SIZE for at in range(10)]
    assert [batch.base_offset for batch in walked] == list(range(10, 20))
    assert {batch.append_time_ms for batch in walked} == {9}


@pytest.mark.parametrize(
    "offset, mark, max_bytes, found",
    [
        (10, 20, EVERYTHING, Found(0, 10 * SIZE, 20)),
        (13, 20, EVERYTHING, Found(3 * SIZE, 10 * SIZE, 20)),
        (13, 15, EVERYTHING, Found(3 * SIZE, 5 * SIZE, 15)),
        (13, 20, 1, Found(3 * SIZE, 4 * SIZE, 14)),
        (13, 20, 2 * SIZE, Found(3 * SIZE, 5 * SIZE, 15)),
        (13, 20, 2 * SIZE - 1, Found(3 * SIZE, 4 * SIZE, 14)),
    ],
)
def test_a_run_has_whole_batches_up_to_the_mark_and_the_limit(offset, mark, max_bytes, found):
    assert find_run(DATA, SEED, 10, offset, mark, max_bytes) == found


def test_every_flipped_bit_ends_the_run_before_its_batch():
    for at in range(len(DATA)):
        data = DATA[:at] + bytes([DATA[at] ^ 4]) + DATA[at + 1 :]
        bad = at // SIZE
        assert find_run(data, SEED, 10, 10, 20, EVERYTHING) == Found(0, bad * SIZE, 10 + bad)


def test_every_cut_ends_the_run_at_the_last_whole_batch():
    for end in range(len(DATA)):
        assert find_run(DATA[:end], SEED, 10, 10, 20, EVERYTHING).end == end // SIZE * SIZE


def test_offsets_that_do_not_follow_end_the_run():
    data = batch_at(10) + batch_at(12)
    assert find_run(data, SEED, 10, 10, 20, EVERYTHING).next_offset == 11
