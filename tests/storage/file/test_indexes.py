"""Indexes: entries, files, and what becomes of files that do not fit the log (C02)."""

import hashlib
import shutil

import pytest

from logbroker.storage.file import index_file
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.offset_index import INTERVAL_BYTES, OffsetIndex
from logbroker.storage.file.time_index import NO_TIMESTAMP, TimeIndex
from logbroker.storage.file.walk import Walked
from logbroker.testing.engine_harness import batch_of, values_from


def contents():
    made = Contents(10)
    for number in range(100):
        made.note(Walked(number * 500, number * 500 + 500, 10 + number, 11 + number, 7, number))
    return made


def test_an_offset_leads_to_the_last_entry_that_is_not_beyond_it():
    index = OffsetIndex()
    for offset, position in [(10, 0), (20, 4_200), (35, 9_000)]:
        index.add(offset, position)
    found = [index.find(offset) for offset in (9, 10, 19, 20, 34, 35, 99)]
    assert found == [None, (10, 0), (10, 0), (20, 4_200), (20, 4_200), (35, 9_000), (35, 9_000)]
    assert [index.after(offset) for offset in (0, 10, 34, 35)] == [10, 20, 35, None]


def test_a_time_leads_to_the_last_entry_before_which_it_was_not_reached():
    index = TimeIndex()
    for max_before, offset in [(NO_TIMESTAMP, 0), (100, 10), (100, 20), (300, 30)]:
        index.add(max_before, offset)
    assert [index.find(target) for target in (-5, 100, 101, 300, 301)] == [0, 0, 20, 20, 30]
    assert TimeIndex().find(1) is None


def test_entries_lie_4096_bytes_apart():
    assert list(contents().index.positions) == list(range(0, 50_000, 4_500))


def test_the_first_batch_behind_damage_gets_an_entry():
    made = contents()
    made.note(Walked(50_100, 50_200, 110, 111, 7, 0))
    made.note(Walked(50_200, 50_300, 120, 121, 7, 0))
    assert list(made.index.offsets)[-2:] == [110, 120]


def test_index_files_give_back_what_they_were_made_of():
    made = contents()
    index, times = made.encode(file_bytes=50_000, seed=3)
    found = Contents.decode(index, times, base_offset=10, file_bytes=50_000, seed=3)
    assert found is not None
    assert found.encode(50_000, 3) == (index, times)
    assert (found.end, found.next_offset, found.max_timestamp_ms) == (50_000, 110, 99)


def test_index_files_of_another_log_do_not_fit():
    index, times = contents().encode(50_000, 3)
    for base_offset, file_bytes, seed in [(11, 50_000, 3), (10, 49_999, 3), (10, 50_000, 4)]:
        others = {"base_offset": base_offset, "file_bytes": file_bytes, "seed": seed}
        assert Contents.decode(index, times, **others) is None
    assert Contents.decode(times, index, base_offset=10, file_bytes=50_000, seed=3) is None


def test_no_cut_and_no_flipped_byte_of_an_index_file_is_taken_for_one():
    index, _ = contents().encode(50_000, 3)
    for end in range(len(index)):
        assert index_file.decode(b"LBOI", index[:end], 3) is None
    for at in range(len(index)):
        flipped = index[:at] + bytes([index[at] ^ 64]) + index[at + 1 :]
        assert index_file.decode(b"LBOI", flipped, 3) is None


def remove(path):
    path.unlink()


def shorten(path):
    path.write_bytes(path.read_bytes()[:-3])


def noise(path):
    path.write_bytes(b"\x0a\xff\x00\x31" * 40)


def empty(path):
    path.write_bytes(b"")


def swap(path):
    other = next(other for other in path.parent.glob("*" + path.suffix) if other != path)
    kept = path.with_suffix(".kept")
    shutil.move(path, kept)
    shutil.move(other, path)
    shutil.move(kept, other)


@pytest.mark.parametrize("harm", [remove, shorten, noise, empty, swap])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_bad_index_is_made_anew_once_and_the_log_stays_as_it_is(place, run, suffix, harm):
    async def test():
        await place.fill([f"{number:02}" * 150 for number in range(40)], segment_bytes=4_096)
        assert len(place.files()) >= 3
        answers = await _answers(place)
        before = _hashes(place)
        for path in place.files(suffix)[:2]:
            if path.exists():
                harm(path)
            if harm is swap:
                break
        assert await _answers(place) == answers
        assert _hashes(place) == before
        made = {path: path.stat().st_mtime_ns for path in place.files(suffix)}
        assert await _answers(place) == answers
        assert {path: path.stat().st_mtime_ns for path in place.files(suffix)} == made

    run(test)


async def _answers(place):
    async with place.log(segment_bytes=4_096) as log:
        read = [(await log.read(offset, 1)).batches for offset in range(40)]
        found = [await log.find(target) for target in range(-1, 3)]
        return read, found


def _hashes(place):
    return {path: hashlib.sha256(path.read_bytes()).digest() for path in place.files()}


def test_an_index_that_points_past_a_shortened_log_is_not_trusted(place, run):
    async def test():
        await place.fill([f"{number:02}" * 150 for number in range(40)], segment_bytes=4_096)
        first = place.files()[0]
        second_base = int(place.files()[1].stem)
        first.write_bytes(first.read_bytes()[:500])
        async with place.log(segment_bytes=4_096) as log:
            assert (await values_from(log, second_base))[-1] == "39" * 150
            assert (await log.read(0, 1)).next_offset == 1

    run(test)


def test_time_lookup_is_the_same_for_every_cut_and_after_a_rebuild(place, run):
    stamps = [100, 50, 200, 150, 120, 90, 300]
    wanted = {0: 0, 50: 0, 101: 2, 151: 2, 201: 6, 301: None}

    async def test(cuts, segment_bytes):
        async with place.log(segment_bytes=segment_bytes) as log:
            await log.trim(log.bounds().high_watermark)
            base = log.bounds().next_offset
            for start, end in zip([0, *cuts], [*cuts, 7], strict=True):
                values = ["v" * 1_500] * (end - start)
                await log.append(batch_of(*values, timestamps_ms=stamps[start:end]))
        for _ in range(2):
            async with place.log(segment_bytes=segment_bytes) as log:
                for target, offset in wanted.items():
                    found = await log.find(target)
                    assert found == (None if offset is None else base + offset), (cuts, target)
            for path in [*place.files(".index"), *place.files(".timeindex")]:
                path.unlink()

    for cuts in ([4, 5], [], [1, 2, 3, 4, 5, 6], [2], [3, 6]):
        run(lambda cuts=cuts: test(cuts, 4_096))
        run(lambda cuts=cuts: test(cuts, 1 << 20))


def test_a_reader_that_keeps_up_begins_at_its_batch_and_walks_over_none():
    made = Contents(0)
    size = INTERVAL_BYTES // 8
    for number in range(20):
        at = number * size
        made.note(Walked(at, at + size, 10 * number, 10 * number + 10, 0, 0))
    assert made.index.find(195) == (190, 19 * size)
    assert made.index.find(189) == (180, 18 * size)
    assert made.index.find(160) == (160, 16 * size)
    assert made.index.find(159) == (80, 8 * size), "older ones are found by their entries"
    assert list(made.index.offsets) == [0, 80, 160], "and only these are saved"
