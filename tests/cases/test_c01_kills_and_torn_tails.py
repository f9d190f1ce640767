"""C01: after a kill every answered record is there once, and a torn tail costs what is torn."""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from subprocess import DEVNULL

import pytest
from structlog.testing import capture_logs

from cases.data_dirs import PARTITION, copy_of, files, log_lines, open_log, shorten
from cases.effort import effort
from cases.numbered import NumberedWriter, number_of, read_numbers, read_records, write_numbered
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.config import Durability, LogConfig, StorageConfig
from logbroker.errors import DataLossError
from logbroker.record.columns import Columns, encode_batch
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.testing.engine_harness import batch_of, values_from
from logbroker.testing.faulty_disk import FaultyDisk
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

SEED = 20
COUNT = 6
"""Records of the log whose tail is torn, each in a batch of its own."""


@pytest.mark.slow
@pytest.mark.parametrize("durability", list(Durability))
async def test_c01a_every_answered_record_is_there_once_and_in_order_after_each_kill(
    tmp_path, durability
):
    random = Random(SEED)
    broker = BrokerProcess(tmp_path / "data").start()
    try:
        async with Client(broker.address) as client:
            settings = TopicSettings(segment_bytes=64 << 10, durability=durability)
            await client.admin.create_topic("orders", settings=settings)
            writers = [NumberedWriter(client, "orders", writer) for writer in range(4)]
            stop = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                for writer in writers:
                    tasks.create_task(writer.run(stop))
                for _ in range(effort(3, 20)):
                    count = len(_acked(writers)) + random.randrange(1, 1_000)
                    await becomes_true(
                        lambda count=count: len(_acked(writers)) >= count,
                        "the writers go on after a restart",
                        within_s=60,
                    )
                    broker.kill()
                    acked = _acked(writers)
                    await asyncio.to_thread(broker.start)
                    await _check(client, acked)
                stop.set()
            assert await _check(client, _acked(writers)) == len(_acked(writers))
    finally:
        assert broker.stop() == 0


@pytest.mark.slow
async def test_c01a_kills_while_retention_is_at_work_take_nothing_back(tmp_path):
    """No offset falls, and what is not yet dropped is there without a gap."""
    random = Random(SEED)
    broker = BrokerProcess(tmp_path / "data", "--set", "storage.check_interval_ms=20").start()
    try:
        async with Client(broker.address) as client:
            settings = TopicSettings(segment_bytes=16 << 10, retention_bytes=64 << 10)
            await client.admin.create_topic("orders", settings=settings)
            writers = [NumberedWriter(client, "orders", writer) for writer in range(2)]
            stop, start, end = asyncio.Event(), 0, 0
            async with asyncio.TaskGroup() as tasks:
                for writer in writers:
                    tasks.create_task(writer.run(stop))
                for _ in range(effort(3, 20)):
                    count = len(_acked(writers)) + random.randrange(500, 1_500)
                    await becomes_true(
                        lambda count=count: len(_acked(writers)) >= count,
                        "the writers go on after a restart",
                        within_s=60,
                    )
                    broker.kill()
                    acked = {offset for writer in writers for offset in writer.acked.values()}
                    await asyncio.to_thread(broker.start)
                    [part] = (await client.admin.get_topic("orders")).partitions
                    assert part.log_start_offset >= start
                    assert part.high_watermark >= max(end, max(acked) + 1)
                    start, end = part.log_start_offset, part.high_watermark
                    offsets = [record.offset for record in await read_records(client, "orders")]
                    assert offsets[0] >= start > 0
                    assert offsets == list(range(offsets[0], offsets[-1] + 1))
                    assert offsets[-1] + 1 >= end
                stop.set()
            assert log_lines(broker, "data lost") == []
    finally:
        broker.stop()


@pytest.mark.slow
async def test_c01a_kills_while_it_starts_lose_nothing_either(tmp_path):
    random = Random(SEED)
    with BrokerProcess(tmp_path / "data") as broker:
        async with Client(broker.address) as client:
            settings = TopicSettings(segment_bytes=16 << 10)
            await client.admin.create_topic("orders", 8, settings)
            for partition in range(8):
                await write_numbered(client, "orders", range(150), partition=partition)
            started = time.monotonic()
            broker.kill()
            await asyncio.to_thread(broker.start)
            start_s = time.monotonic() - started
            broker.kill()
            for partition in range(8):  # and each of them has a torn tail to cut
                cut_and_leave_room(files(broker.data_dir, "orders", partition)[-1], 7, b"")
            serve = [sys.executable, "-m", "logbroker", "serve", "--grpc", "127.0.0.1:0"]
            for _ in range(effort(4, 40)):
                process = await asyncio.create_subprocess_exec(
                    *serve, "--data-dir", str(broker.data_dir), stdout=DEVNULL, stderr=DEVNULL
                )
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), start_s * (0.4 + 0.6 * random.random()))
                process.kill()
                await process.wait()
            await asyncio.to_thread(broker.start)
            for partition in range(8):
                assert await read_numbers(client, "orders", partition) == list(range(149))
            assert len(await client.admin.list_topics()) == 1


def _acked(writers: list[NumberedWriter]) -> dict[tuple[int, int], int]:
    return {
        (writer.writer, number): offset
        for writer in writers
        for number, offset in writer.acked.items()
    }


async def _check(client: Client, acked: dict[tuple[int, int], int]) -> int:
    """Returns how many records there are.

    Fails unless each acked one lies where it was said, once, in its writer's order.
    """
    records = await read_records(client, "orders")
    assert [record.offset for record in records] == list(range(len(records)))
    found = {number_of(record.value): record.offset for record in records}
    assert len(found) == len(records), "a record is there twice"
    assert found | acked == found
    for writer in range(4):
        numbers = [number for by, number in found if by == writer]
        assert numbers == list(range(len(numbers)))
    return len(records)


# The tails. "killed": as a kill leaves the directory, with room made in advance behind the last
# batch; "stopped": as a clean stop does, which vouches for every offset given.


async def _write(data_dir: Path, killed: Path) -> int:
    """Writes the log, and a copy of it as a kill would leave it; returns the last batch's size."""
    async with open_log(data_dir) as log:
        for number in range(COUNT):
            last = await log.append(batch_of(f"value {number}" + "." * 40))
        copy_of(data_dir, killed)
        return last.header.size_bytes


def _end_of_batches(path: Path) -> int:
    return len(path.read_bytes().rstrip(b"\0"))


def cut(path: Path, count: int, noise: bytes) -> None:
    path.write_bytes(path.read_bytes()[: _end_of_batches(path) - count])


def cut_and_leave_room(path: Path, count: int, noise: bytes) -> None:
    data = path.read_bytes()
    end = _end_of_batches(path)
    path.write_bytes(data[: end - count] + bytes(len(data) - end + count))


def cut_and_add_noise(path: Path, count: int, noise: bytes) -> None:
    path.write_bytes(path.read_bytes()[: _end_of_batches(path) - count] + noise)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [cut, cut_and_leave_room, cut_and_add_noise])
async def test_c01b_for_every_cut_only_the_last_batch_is_dropped_and_its_offset_is_given_again(
    tmp_path, harm: Callable[[Path, int, bytes], None]
):
    size = await _write(tmp_path / "stopped", tmp_path / "killed")
    noise = Random(SEED).randbytes(4 << 10)
    for count in [*range(1, size, effort(5, 1)), size]:
        data_dir = copy_of(tmp_path / "killed", tmp_path / "data")
        harm(files(data_dir, "orders")[-1], count, noise)
        is_torn = count < size or harm is cut_and_add_noise
        await _check_repaired(data_dir, COUNT - 1, is_torn=is_torn)


@pytest.mark.slow
@pytest.mark.parametrize("behind", [b"", bytes(4 << 10), Random(SEED).randbytes(4 << 10)])
@pytest.mark.parametrize("left", ["killed", "stopped"])
async def test_c01b_what_lies_behind_the_last_batch_costs_no_record(tmp_path, left, behind):
    await _write(tmp_path / "stopped", tmp_path / "killed")
    data_dir = copy_of(tmp_path / left, tmp_path / "data")
    path = files(data_dir, "orders")[-1]
    path.write_bytes(path.read_bytes()[: _end_of_batches(path)] + behind)
    await _check_repaired(data_dir, COUNT, is_torn=any(behind))


@pytest.mark.slow
async def test_c01b_old_batches_and_other_logs_batches_behind_the_end_are_no_records(tmp_path):
    await _write(tmp_path / "stopped", tmp_path / "killed")
    data = files(tmp_path / "stopped", "orders")[-1].read_bytes()
    foreign = encode_batch(Columns([b"foreign"]), now_ms=0)
    header = foreign.header._replace(base_offset=COUNT, append_time_ms=1, offset_span=1)
    other = PARTITION._replace(topic_id="another").seed
    for behind in (data, data[-30:], header.encode(other) + foreign.records):
        data_dir = copy_of(tmp_path / "killed", tmp_path / "data")
        files(data_dir, "orders")[-1].write_bytes(data + behind)
        await _check_repaired(data_dir, COUNT, is_torn=True)


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", bytes(4 << 10), b"noise"])
async def test_c01b_a_new_segment_whose_name_outlived_its_batches_is_no_reason_to_miss_them(
    tmp_path, content
):
    """The power went: the name was on the disk, and the end of the segment before it was not."""
    await _write(tmp_path / "stopped", tmp_path / "data")
    path = files(tmp_path / "data", "orders")[-1]
    cut(path, 10, b"")
    path.with_name(f"{COUNT:020}.log").write_bytes(content)
    path.with_name(f"{COUNT + 3:020}.log").write_bytes(content)
    await _check_repaired(tmp_path / "data", COUNT - 1, is_torn=True)
    assert [found.name for found in files(tmp_path / "data", "orders")] == [path.name]


@pytest.mark.slow
async def test_c01b_a_batch_that_is_zeroed_out_at_its_end_is_dropped(tmp_path):
    size = await _write(tmp_path / "stopped", tmp_path / "killed")
    for count in range(1, size, effort(9, 1)):
        data_dir = copy_of(tmp_path / "killed", tmp_path / "data")
        path = files(data_dir, "orders")[-1]
        end = _end_of_batches(path)
        data = path.read_bytes()
        path.write_bytes(data[: end - count] + bytes(count) + data[end:])
        await _check_repaired(data_dir, COUNT - 1, is_torn=True)


async def _check_repaired(data_dir: Path, kept: int, *, is_torn: bool) -> None:
    """Fails unless `kept` records are there, and everything goes on behind them, for good."""
    expected = [f"value {number}" + "." * 40 for number in range(kept)]
    with capture_logs() as logs:
        async with open_log(data_dir) as log:
            torn_bytes = log.stats().torn_bytes
            assert log.bounds() == (0, kept, kept)
            stamped = await log.append(batch_of("new"))
            assert stamped.header.base_offset == kept
            assert await values_from(log, 0) == [*expected, "new"]
            assert log.stats().damaged == ()
    cuts = [entry["torn_bytes"] for entry in logs if entry["event"] == "torn tail cut"]
    assert cuts == ([torn_bytes] if is_torn else [])
    assert (torn_bytes > 0) == is_torn
    path = files(data_dir, "orders")[-1]
    data = path.read_bytes()
    with capture_logs() as logs:
        async with open_log(data_dir) as log:
            assert await values_from(log, 0) == [*expected, "new"]
            assert log.bounds() == (0, kept + 1, kept + 1)
    assert logs == []
    assert path.read_bytes() == data


@pytest.mark.slow
async def test_c01b_after_a_clean_stop_a_lost_last_batch_is_reported_and_its_offset_is_not_reused(
    tmp_path,
):
    """A group may have settled that offset: a new record there would never be delivered to it."""
    size = await _write(tmp_path / "stopped", tmp_path / "killed")
    for count in [*range(1, size, effort(19, 1)), size]:
        data_dir = copy_of(tmp_path / "stopped", tmp_path / "data")
        shorten(files(data_dir, "orders")[-1], count)
        for start in range(1, 3):
            async with open_log(data_dir) as log:
                stamped = await log.append(batch_of("new"))
                assert stamped.header.base_offset == COUNT + start - 1
                assert (await log.read(0, 1 << 20)).next_offset == COUNT - 1
                with pytest.raises(DataLossError) as error:
                    await log.read(COUNT - 1, 1 << 20)
                assert error.value.details["next_offset"] == str(COUNT)
                assert await values_from(log, COUNT) == ["new"] * start


@pytest.mark.slow
async def test_c01b_a_broker_says_how_many_bytes_it_cut_and_a_second_start_cuts_none(tmp_path):
    broker = BrokerProcess(tmp_path / "data").start()
    try:
        async with Client(broker.address) as client:
            await client.admin.create_topic("orders")
            await write_numbered(client, "orders", range(10))
            broker.kill()
            path = files(broker.data_dir, "orders")[-1]
            cut_and_leave_room(path, 7, b"")
            size = _end_of_batches(path)
            broker.start()
            torn_bytes = int(str((await client.admin.get_stats())["torn_bytes"]))
            await write_numbered(client, "orders", [10])
            expected = [*range(9), 10]
            assert await read_numbers(client, "orders") == expected
            [line] = log_lines(broker, "torn tail cut")
            assert line["torn_bytes"] == torn_bytes
            assert line["next_offset"] == 9
            assert 0 < torn_bytes < size / 9
            broker.kill()
            broker.start()
            assert (await client.admin.get_stats())["torn_bytes"] == 0
            assert await read_numbers(client, "orders") == expected
            assert len(log_lines(broker, "torn tail cut")) == 1
    finally:
        broker.stop()


@pytest.mark.slow
@pytest.mark.parametrize("durability", list(Durability))
def test_c01_what_a_loss_of_power_costs_is_what_the_durability_says(tmp_path, durability):
    """FORMAT.md: nothing that was answered, or what was answered in `flush_interval_ms`."""
    for seed in range(effort(10, 100)):
        asyncio.run(_lose_power(tmp_path / str(seed), durability, Random(seed)))


async def _lose_power(data_dir: Path, durability: Durability, random: Random) -> None:
    is_synced = durability is Durability.SYNCED
    config = LogConfig(durability=durability, segment_bytes=4 << 10 if is_synced else 1 << 20)
    clock, disk = ManualClock(), FaultyDisk(data_dir)
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock, disk)
    log = await engine.open(PARTITION, config)
    promised = begun = 0
    for _ in range(random.randrange(1, 60)):
        append = log.append(batch_of(*["v" * random.randrange(900)] * random.randrange(1, 4)))
        if random.random() < 0.5:
            answered = (await append).header.next_offset
            promised = answered if is_synced else promised
        if not is_synced and random.random() < 0.1:
            before = disk.sync_count
            await clock.advance(config.flush_interval_ms)
            await becomes_true(lambda before=before: disk.sync_count > before, "a flush")
            promised, begun = begun, log.bounds().next_offset  # the one before has surely ended
    disk.lose_power()
    await engine.close()
    async with open_log(data_dir, clock) as log:
        mark = log.bounds().high_watermark
        assert mark >= promised
        assert len(await values_from(log, 0)) == mark
        assert log.stats().damaged == ()
