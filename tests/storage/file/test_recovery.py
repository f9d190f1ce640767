"""What a scan makes of damage: a list of damages over one harness, and arbitrary ones."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logbroker.record.batch import HEADER, Batch
from logbroker.storage.file.recovery import Damage, Scan, scan

SEED = 7


def batch_at(offset, records):
    batch = Batch.unstamped(records, record_count=1)
    return batch.stamped(base_offset=offset, append_time_ms=0).encode(SEED)


def flip(at):
    return lambda batch: batch[:at] + bytes([batch[at] ^ 1]) + batch[at + 1 :]


FIRST, SECOND, THIRD = (batch_at(offset, b"v" * 200) for offset in range(3))
SIZE = len(FIRST)
DAMAGES = {
    "a bit of the length": flip(1),
    "a bit of the base offset": flip(6),
    "a bit of the header's checksum": flip(73),
    "a bit of the length of the records": flip(77),
    "a bit of the records": flip(SIZE - 1),
    "an older batch in its place": lambda batch: FIRST,
    "zeros": lambda batch: bytes(SIZE),
    "noise": lambda batch: (b"\x0a\xff\xff\xff\x7f\x09" * SIZE)[:SIZE],
    "records that hold a batch": lambda batch: (batch[: HEADER.size] + batch_at(7, b"") * 9)[:SIZE],
    "a batch of another partition": lambda batch: (
        Batch.unstamped(b"v" * 200, record_count=1)
        .stamped(base_offset=1, append_time_ms=0)
        .encode(SEED + 1)
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_with_a_good_batch_behind_it_is_reported_and_never_cut(damage):
    found = scan(FIRST + damage(SECOND) + THIRD, base_offset=0, seed=SEED)
    assert found == Scan(3, 3 * SIZE, 0, (Damage(1, 2, SIZE, 2 * SIZE),))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damage_with_nothing_good_behind_it_is_a_torn_tail(damage):
    for end in range(0, SIZE + 1, 7):
        found = scan(FIRST + SECOND + damage(THIRD)[:end] + bytes(99), base_offset=0, seed=SEED)
        assert (found.next_offset, found.end, found.damage) == (2, 2 * SIZE, ())


def test_zeros_at_the_end_are_room_and_not_torn():
    assert scan(FIRST + bytes(100_000), 0, SEED) == Scan(1, SIZE, 0, ())
    assert scan(b"", 0, SEED) == Scan(0, 0, 0, ())
    assert scan(bytes(10), 5, SEED) == Scan(5, 0, 0, ())


def test_torn_bytes_count_up_to_the_last_that_is_not_zero():
    torn = THIRD[:50] + bytes(70_000) + b"x" + bytes(70_000)
    assert scan(FIRST + SECOND + torn, 0, SEED).torn_bytes == 50 + 70_000 + 1


def test_offsets_that_are_missing_without_a_byte_between_are_damage():
    data = FIRST + batch_at(5, b"v")
    assert scan(data, 0, SEED).damage == (Damage(1, 5, SIZE, SIZE),)


def test_a_segment_that_does_not_begin_with_its_base_offset_is_damaged():
    assert scan(SECOND, 0, SEED) == Scan(2, SIZE, 0, (Damage(0, 1, 0, 0),))
    assert scan(SECOND, 2, SEED) == Scan(2, 0, SIZE, ())


def test_each_sound_batch_is_noted_in_order():
    noted = []
    scan(FIRST + bytes(SIZE) + THIRD, 0, SEED, noted.append)
    assert [(batch.position, batch.base_offset) for batch in noted] == [(0, 0), (2 * SIZE, 2)]


batches = st.lists(st.binary(max_size=60), min_size=1, max_size=8)
damages = st.lists(
    st.tuples(st.integers(0, 900), st.sampled_from(["flip", "cut out", "insert", "zero"])),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150, deadline=None)
@given(batches, damages)
def test_whatever_happens_a_scan_gives_only_batches_that_were_written(records, harm):
    written = [batch_at(offset, data) for offset, data in enumerate(records)]
    data = bytearray(b"".join(written))
    for at, kind in harm:
        at %= len(data) or 1
        match kind:
            case "flip" if data:
                data[at] ^= 0x10
            case "cut out":
                del data[at : at + 13]
            case "insert":
                data[at:at] = b"\x0a\x80"
            case "zero":
                data[at : at + 20] = bytes(len(data[at : at + 20]))
    noted = []
    found = scan(bytes(data), 0, SEED, noted.append)
    offset = 0
    for batch in noted:
        assert bytes(data[batch.position : batch.end]) == written[batch.base_offset]
        assert batch.base_offset >= offset
        offset = batch.next_offset
    assert found.next_offset == offset
    assert found.end == (noted[-1].end if noted else 0)
    lost = {at for damage in found.damage for at in range(damage.offset, damage.next_offset)}
    assert lost | {batch.base_offset for batch in noted} == set(range(offset))
    intact = [at for at, batch in enumerate(written) if batch in bytes(data)]
    assert {batch.base_offset for batch in noted} >= set(_kept_apart(intact, written, data))


def _kept_apart(intact, written, data):
    """Those that lie outside the extent of any other header that is still valid."""
    positions = {at: bytes(data).find(written[at]) for at in intact}
    return [at for at in intact if not _is_covered(at, positions, written, data)]


def _is_covered(at, positions, written, data):
    fronts = [
        (other, bytes(data).find(batch[: HEADER.size])) for other, batch in enumerate(written)
    ]
    return any(
        other != at and front >= 0 and front < positions[at] < front + len(written[other])
        for other, front in fronts
    )
