"""C02: whatever happens to index files, answers are as before, and so are the log files."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from cases.data_dirs import copy_of, files, log_lines, open_log, sha256s, shorten
from cases.effort import effort
from cases.numbered import read_records, value_of, write_numbered
from logbroker.client import Client
from logbroker.errors import DataLossError
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.testing.engine_harness import batches_of
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

COUNT = 1_600
SEGMENTS = 5
SEED = 2
NOISE = Random(SEED).randbytes(1_000)
TIMES_MS = [Random(SEED).randrange(10_000) + number for number in range(COUNT)]
TARGETS_MS = [0, 1, 20_000, *Random(SEED).sample(range(12_000), 17)]


def index(data_dir: Path) -> Path:
    return files(data_dir, "orders", suffix=".index")[2]


def time_index(data_dir: Path) -> Path:
    return files(data_dir, "orders", suffix=".timeindex")[2]


def last_index(data_dir: Path) -> Path:
    return files(data_dir, "orders", suffix=".index")[-1]


def last_time_index(data_dir: Path) -> Path:
    return files(data_dir, "orders", suffix=".timeindex")[-1]


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut_within_an_entry(path: Path) -> None:
    shorten(path, 11)


def cut_between_entries(path: Path) -> None:
    shorten(path, 16)


def fill_with_noise(path: Path) -> None:
    path.write_bytes(NOISE)


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def append_noise(path: Path) -> None:
    path.write_bytes(path.read_bytes() + NOISE)


def swap_with_the_first(path: Path) -> None:
    first = sorted(path.parent.glob(f"*{path.suffix}"))[0]
    mine, others = path.read_bytes(), first.read_bytes()
    path.write_bytes(others)
    first.write_bytes(mine)


def swap_the_two_kinds(path: Path) -> None:
    other = path.with_suffix(".timeindex" if path.suffix == ".index" else ".index")
    mine, others = path.read_bytes(), other.read_bytes()
    path.write_bytes(others)
    other.write_bytes(mine)


HARMS = (
    remove,
    empty,
    cut_within_an_entry,
    cut_between_entries,
    fill_with_noise,
    flip_a_bit,
    append_noise,
    swap_with_the_first,
    swap_the_two_kinds,
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with 5 segments, stopped cleanly."""
    data_dir = tmp_path_factory.mktemp("c02") / "data"

    async def write() -> None:
        async with open_log(data_dir, segment_bytes=64 << 10) as log:
            for number in range(COUNT):
                columns = Columns([value_of(number)], timestamps_ms=[TIMES_MS[number]])
                appended = log.append(encode_batch(columns, now_ms=0))
            await appended

    asyncio.run(write())
    assert len(files(data_dir, "orders")) == SEGMENTS
    return data_dir


def _first_at(target_ms: int, *, lost: range = range(0)) -> int | None:
    found = (at for at, time_ms in enumerate(TIMES_MS) if time_ms >= target_ms and at not in lost)
    return next(found, None)


async def _check_answers(data_dir: Path, *, lost: range = range(0)) -> list[str]:
    """Fails unless every answer is right; returns the events that were logged."""
    with capture_logs() as logs:
        async with open_log(data_dir) as log:
            assert log.bounds() == (0, COUNT, COUNT)
            for offset in range(0, COUNT, effort(11, 1)):
                if offset in lost:
                    with pytest.raises(DataLossError) as error:
                        await log.read(offset, 1)
                    assert error.value.details["next_offset"] == str(lost.stop)
                    continue
                [batch] = batches_of((await log.read(offset, 1)).batches)
                [record] = decode_records(batch)
                assert (record.offset, record.value) == (offset, value_of(offset))
                assert record.timestamp_ms == TIMES_MS[offset]
            found = [await log.find(target_ms) for target_ms in TARGETS_MS]
            assert found == [_first_at(target_ms, lost=lost) for target_ms in TARGETS_MS]
    return [entry["event"] for entry in logs]


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("which", [index, time_index, last_index, last_time_index])
async def test_c02_a_bad_index_is_made_anew_once_from_a_log_that_stays_as_it_is(
    template, tmp_path, which: Callable[[Path], Path], harm: Callable[[Path], None]
):
    data_dir = copy_of(template, tmp_path / "data")
    harm(which(data_dir))
    logs = sha256s(files(data_dir, "orders"))
    rebuilt = await _check_answers(data_dir)
    assert set(rebuilt) <= {"index rebuilt"}
    assert sha256s(files(data_dir, "orders")) == logs
    for suffix in (".index", ".timeindex"):
        mine, theirs = (files(place, "orders", suffix=suffix) for place in (data_dir, template))
        assert [path.read_bytes() for path in mine] == [path.read_bytes() for path in theirs]
    written = {path: path.stat().st_mtime_ns for path in data_dir.rglob("*index")}
    assert await _check_answers(data_dir) == []
    assert {path: path.stat().st_mtime_ns for path in data_dir.rglob("*index")} == written


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 185, 5_000, 64 << 10])
async def test_c02_an_index_that_points_past_the_end_of_a_shortened_log_is_not_trusted(
    template, tmp_path, cut
):
    data_dir = copy_of(template, tmp_path / "data")
    log_file = files(data_dir, "orders")[1]
    first = int(log_file.stem)
    shorten(log_file, min(cut, log_file.stat().st_size))
    end = int(files(data_dir, "orders")[2].stem)
    batch_bytes = (64 << 10) // (end - first)
    kept = log_file.stat().st_size // batch_bytes
    logs = sha256s(files(data_dir, "orders"))
    await _check_answers(data_dir, lost=range(first + kept, end))
    assert sha256s(files(data_dir, "orders")) == logs
    events = await _check_answers(data_dir, lost=range(first + kept, end))
    assert "index rebuilt" not in events


@pytest.mark.slow
async def test_c02_bad_indexes_do_not_stop_a_broker_and_are_made_anew_once(tmp_path):
    broker = BrokerProcess(tmp_path / "data").start()
    try:
        async with Client(broker.address) as client:
            settings = TopicSettings(segment_bytes=64 << 10)
            await client.admin.create_topic("orders", settings=settings)
            await write_numbered(client, "orders", range(COUNT), timestamps_ms=TIMES_MS)
        assert broker.stop() == 0
        assert len(files(broker.data_dir, "orders")) == SEGMENTS
        index_files = files(broker.data_dir, "orders", suffix=".index")
        harms = (remove, fill_with_noise, cut_within_an_entry, swap_with_the_first, empty)
        for path, harm in zip(index_files, harms, strict=True):
            harm(path)
        logs = sha256s(files(broker.data_dir, "orders"))
        for start in range(2):
            rebuilt = len(log_lines(broker, "index rebuilt"))
            broker.start()
            async with Client(broker.address) as client:
                records = await read_records(client, "orders")
                assert [record.value for record in records] == list(map(value_of, range(COUNT)))
                for offset in range(0, COUNT, effort(97, 1)):
                    [record] = await read_records(
                        client, "orders", start=offset, stop_offset=offset + 1
                    )
                    assert record.value == value_of(offset)
                for target_ms in TARGETS_MS:
                    found = await client.find_offset("orders", 0, target_ms)
                    assert found == _first_at(target_ms)
            assert broker.stop() == 0
            rebuilt = len(log_lines(broker, "index rebuilt")) - rebuilt
            assert rebuilt == (4 if start == 0 else 0), "of the sealed ones"
        assert sha256s(files(broker.data_dir, "orders")) == logs
        assert os.listdir(broker.data_dir / "trash") == []
    finally:
        broker.stop()
