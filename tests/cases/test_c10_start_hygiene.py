"""C10: a start copes with what it finds, and never takes lost settings for an empty topic."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from cases.data_dirs import (
    copy_of,
    files,
    log_lines,
    open_broker_on,
    sha256s,
    shorten,
)
from cases.effort import effort
from cases.numbered import read_numbers, write_numbered
from logbroker.broker.broker import Broker
from logbroker.client import Client
from logbroker.errors import LogbrokerError, UnavailableError
from logbroker.record.batch import BatchHeader
from logbroker.record.partition_id import PartitionId
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings

NONE = TopicSettings()
NOISE = Random(10).randbytes(700)
SOON_S = 5


@pytest.fixture
def broker(tmp_path: Path):
    with BrokerProcess(tmp_path / "data") as broker:
        yield broker


# (a) and (b): one broker a directory


@pytest.mark.slow
@pytest.mark.parametrize(
    "spelling", effort(["relative"], ["as it is", "relative", "through a link"])
)
async def test_c10a_a_second_broker_gives_up_at_once_and_the_first_does_not_notice(
    broker, tmp_path, spelling
):
    paths = {"as it is": broker.data_dir, "relative": "data", "through a link": tmp_path / "link"}
    (tmp_path / "link").symlink_to(broker.data_dir)
    serve = [sys.executable, "-m", "logbroker", "serve", "--grpc", "127.0.0.1:0", "--data-dir"]
    async with Client(broker.address) as client:
        await client.admin.create_topic("orders")
        await write_numbered(client, "orders", range(5))
        usual_s, _ = await asyncio.to_thread(_run, [*serve[:3], "--version"], tmp_path)
        took_s, second = await asyncio.to_thread(_run, [*serve, str(paths[spelling])], tmp_path)
        assert second.returncode == 1
        assert took_s < usual_s + 2
        assert str(paths[spelling]) in second.stderr
        assert "another broker" in second.stderr
        assert "Traceback" not in second.stderr
        await write_numbered(client, "orders", range(5, 10))
        broker.kill()
        broker.start()
        assert await read_numbers(client, "orders") == list(range(10))


def _run(command: list[str], cwd: Path) -> tuple[float, subprocess.CompletedProcess[str]]:
    started = time.monotonic()
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)
    return time.monotonic() - started, done


@pytest.mark.slow
async def test_c10b_what_a_killed_broker_held_is_free_and_strange_files_do_no_harm(broker):
    """Stray and unfinished files are ignored or removed: (b) and (d)."""
    async with Client(broker.address) as client:
        await client.admin.create_topic("orders", 2)
        await write_numbered(client, "orders", range(50))
        broker.kill()
        data_dir = broker.data_dir
        place = data_dir / "topics" / "orders" / "0"
        (data_dir / "lock").write_text("4711")
        removed = [
            place / "checkpoint.tmp",
            place / f"{50:020}.index.tmp",
            data_dir / "trash" / "x",
        ]
        for path in removed[:2]:
            path.write_bytes(NOISE)
        removed[2].mkdir()
        (removed[2] / f"{0:020}.log").write_bytes(NOISE)
        for path in (
            data_dir / "clean.tmp",
            data_dir / "lost+found",
            data_dir / "topics" / "notes.txt",
            data_dir / "topics" / "orders" / "notes.txt",
            data_dir / "topics" / "orders" / "01",
            place / "notes.txt",
            place / "1.log",
            place / f"{7:020}.LOG",
            place / f"{7:020}.index",
        ):
            path.write_bytes(NOISE)
        for path in (
            data_dir / "topics" / "empty",
            data_dir / "topics" / "orders" / "7",
            data_dir / "topics" / "lost+found" / "x",
            place / "snapshot",
        ):
            path.mkdir(parents=True)
        broker.start()
        assert [topic.topic for topic in await client.admin.list_topics()] == ["orders"]
        assert (await client.admin.get_stats())["damaged_topics"] == []
        assert await read_numbers(client, "orders") == list(range(50))
        await write_numbered(client, "orders", range(50, 60))
        assert broker.stop() == 0
        assert [path for path in removed if path.exists()] == []
        broker.start()
        assert await read_numbers(client, "orders") == list(range(60))
        assert log_lines(broker, "data lost") == []
        await client.admin.create_topic("empty", 1)
        await client.admin.grow_topic("orders", 9)
        await client.admin.delete_topic("orders")
        await client.admin.create_topic("orders", 1)
        assert await read_numbers(client, "orders") == []


# (c): the journal of topics, cut


async def _create(broker: Broker) -> None:
    await broker.create_topic("c", 2, NONE)


async def _update(broker: Broker) -> None:
    await broker.update_topic("b", "", TopicSettings(retention_ms=77))


async def _grow(broker: Broker) -> None:
    await broker.grow_topic("b", "", 5)


async def _delete(broker: Broker) -> None:
    await broker.delete_topic("b", "")


@pytest.mark.slow
@pytest.mark.parametrize("change", [_create, _update, _grow, _delete])
async def test_c10c_a_torn_last_event_of_the_journal_is_dropped_and_nothing_else(
    tmp_path, change: Callable[[Broker], Awaitable[None]]
):
    async with open_broker_on(tmp_path / "running") as broker:
        for name in "ab":
            await broker.create_topic(name, 2, NONE)
        before = broker.list_topics(0, "")[0]
        await change(broker)
        after = broker.list_topics(0, "")[0]
        copy_of(tmp_path / "running", tmp_path / "killed")
    journal = files(tmp_path / "killed", "__topics")[-1]
    data = journal.read_bytes()
    size, end = _last_batch(data)
    for cut in [*range(1, size, effort(29, 1)), size]:
        data_dir = copy_of(tmp_path / "killed", tmp_path / "data")
        files(data_dir, "__topics")[-1].write_bytes(data[: end - cut])
        for _ in range(2):
            async with open_broker_on(data_dir) as broker:
                found, damaged = broker.list_topics(0, "")[0], broker.stats().damaged_topics
                if change is _delete:  # the last event is that its files are gone
                    assert (found, damaged) == (after, ())
                else:
                    assert found == before
                    assert damaged == (("c",) if change is _create else ())
                if change is _create:
                    with pytest.raises(UnavailableError, match="settings are lost"):
                        await broker.create_topic("c", 1, NONE)


def _last_batch(data: bytes) -> tuple[int, int]:
    """Returns the size of the last batch of the journal, and where it ends."""
    seed, at, size = PartitionId("__topics", "__topics", 0).seed, 0, 0
    with memoryview(data) as view:
        while at < len(data) and data[at]:
            size = BatchHeader.decode(view, seed, at).size_bytes
            at += size
    return size, at


# (c) and (e): worse, on a real broker


def _zero(path: Path) -> None:
    path.write_bytes(b"")


def _noise(path: Path) -> None:
    path.write_bytes(NOISE)


def _cut(path: Path) -> None:
    shorten(path, 9)


async def _filled(client: Client) -> None:
    for name in "abc":
        await client.admin.create_topic(name, 2)
        for partition in range(2):
            await write_numbered(client, name, range(20), partition=partition)


async def _check_unavailable(client: Client, name: str, partition: int) -> None:
    """Fails unless whoever names it is told soon, and by the same reason."""
    for call in (
        client.admin.create_topic(name, 2),
        write_numbered(client, name, [1], partition=partition),
        read_numbers(client, name, partition),
        client.find_offset(name, partition, 0),
    ):
        started = time.monotonic()
        with pytest.raises(LogbrokerError) as error:
            await call
        assert time.monotonic() - started < SOON_S
        reason = error.value.reason
        assert reason in {"TOPIC_DAMAGED", "TOPIC_ALREADY_EXISTS"}, error.value


@pytest.mark.slow
@pytest.mark.parametrize("harm", effort([_zero], [_zero, _noise]))
@pytest.mark.parametrize("is_killed", effort([True], [True, False]))
async def test_c10c_a_lost_journal_makes_its_topics_unavailable_and_never_empty(
    broker, harm, is_killed
):
    async with Client(broker.address) as client:
        await _filled(client)
        broker.kill() if is_killed else broker.stop()
        harm(files(broker.data_dir, "__topics")[-1])
        kept = sha256s([path for name in "abc" for path in files(broker.data_dir, name)])
        for _ in range(2):
            broker.start()
            assert await client.admin.list_topics() == []
            assert (await client.admin.get_stats())["damaged_topics"] == ["a", "b", "c"]
            await _check_unavailable(client, "b", 1)
            broker.kill()
        broker.start()
        await client.admin.create_topic("d", 1)
        await write_numbered(client, "d", range(5))
        broker.stop()
        broker.start()
        assert await read_numbers(client, "d") == list(range(5))
        assert sha256s([path for name in "abc" for path in files(broker.data_dir, name)]) == kept


@pytest.mark.slow
async def test_c10c_damage_with_good_events_behind_it_is_reported_and_not_cut(broker):
    async with Client(broker.address) as client:
        await _filled(client)
        broker.kill()
        journal = files(broker.data_dir, "__topics")[-1]
        data = bytearray(journal.read_bytes())
        data[120] ^= 1  # in the event that topic a was created
        journal.write_bytes(data)
        for _ in range(2):
            broker.start()
            assert [topic.topic for topic in await client.admin.list_topics()] == ["b", "c"]
            assert (await client.admin.get_stats())["damaged_topics"] == ["a"]
            await _check_unavailable(client, "a", 0)
            for name in "bc":
                assert await read_numbers(client, name, 1) == list(range(20))
            assert broker.stop() == 0
        assert log_lines(broker, "journal damaged")
        assert journal.read_bytes().startswith(bytes(data).rstrip(b"\0"))


@pytest.mark.slow
@pytest.mark.parametrize("harm", effort([_noise], [_zero, _noise, _cut, Path.unlink]))
@pytest.mark.parametrize("name", ["__topics", "__producers"])
async def test_c10c_the_checkpoint_of_a_journal_is_made_anew(broker, name, harm):
    async with Client(broker.address) as client:
        await _filled(client)
        assert broker.stop() == 0  # which journals the producers
        harm(broker.data_dir / "topics" / name / "0" / "checkpoint")
        for number in range(20, 22):
            broker.start()
            assert (await client.admin.get_stats())["damaged_topics"] == []
            await write_numbered(client, "b", [number])
            assert await read_numbers(client, "b") == list(range(number + 1))
            broker.kill()
        assert len(log_lines(broker, "checkpoint lost, made anew")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("harm", effort([_zero], [_zero, _noise, _cut]))
async def test_c10c_without_the_journal_of_producers_nobody_is_taken_for_another(broker, harm):
    """A producer with another's id would have its records answered as duplicates."""
    async with Client(broker.address) as client:
        await _filled(client)
        broker.stop()
        harm(files(broker.data_dir, "__producers")[-1])
        for number in range(20, 23):
            broker.start()
            await write_numbered(client, "b", [number])
            assert await read_numbers(client, "b") == list(range(number + 1))
            broker.kill()


@pytest.mark.slow
@pytest.mark.parametrize("harm", effort([_noise], [_zero, _noise, _cut, Path.unlink]))
async def test_c10e_one_bad_partition_is_unavailable_and_all_others_serve(broker, harm):
    async with Client(broker.address) as client:
        await _filled(client)
        broker.kill()
        harm(broker.data_dir / "topics" / "b" / "1" / "checkpoint")
        kept = sha256s(files(broker.data_dir, "b", 1))
        for number in range(20, 22):
            broker.start()
            assert len(await client.admin.list_topics()) == 3
            assert (await client.admin.get_stats())["damaged_topics"] == ["b"]
            described = await client.admin.get_topic("b")
            assert [part.failure for part in described.partitions] == ["", "TOPIC_DAMAGED"]
            await _check_unavailable(client, "b", 1)
            for name, partition in (("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1)):
                await write_numbered(client, name, [number], partition=partition)
                expected = list(range(number + 1))
                assert await read_numbers(client, name, partition) == expected
            assert broker.stop() == 0
        assert sha256s(files(broker.data_dir, "b", 1)) == kept
        broker.start()
        await client.admin.delete_topic("b")  # an operator may decide so
        await client.admin.create_topic("b", 2)
        await write_numbered(client, "b", range(3), partition=1)
        assert await read_numbers(client, "b", 1) == list(range(3))


@pytest.mark.slow
async def test_c10_what_cannot_be_opened_is_logged_once(tmp_path):
    async with open_broker_on(tmp_path / "data") as broker:
        await broker.create_topic("a", 1, NONE)
    _noise(tmp_path / "data" / "topics" / "a" / "0" / "checkpoint")
    with capture_logs() as logs:
        async with open_broker_on(tmp_path / "data") as broker:
            for _ in range(5):  # as housekeeping does every 5 s
                await broker._coordinator.open_missing()
    assert [entry["event"] for entry in logs].count("topic not opened") == 1
