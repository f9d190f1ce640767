"""A data directory one of whose files holds any bytes: the broker starts, or says why not.

An input is the number of a file, one byte, and what that file holds.
"""

import asyncio
import shutil
import tempfile
from functools import cache
from pathlib import Path

import structlog
from cases.data_dirs import open_broker_on
from cases.watching import becomes_true

from fuzz import mended
from fuzz.decoder import Decoder
from logbroker.broker.broker import Broker
from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.fetch import FetchSpec
from logbroker.broker.lease import LeaseSpec
from logbroker.broker.produce import NewRecord
from logbroker.broker.settle import Settlement
from logbroker.errors import DataLossError, LogbrokerError
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

TOPIC, GROUP = "orders", "g"
RECORDS = 60
LETTERS = 3
WANTED = DeadLetterFilter(group=GROUP, topic=TOPIC)


class Place:
    """What a kill left behind, and what a clean stop did; made once."""

    def __init__(self) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="logbroker-fuzz-")
        self.root = Path(self._scratch.name)
        self.values: dict[int, bytes] = {}
        asyncio.run(self._make())
        self.files = sorted(
            path.relative_to(self.root)
            for name in ("killed", "stopped")
            for path in (self.root / name).rglob("*")
            if path.is_file() and path.name not in {"lock", "clean"}
        )

    async def _make(self) -> None:
        async with open_broker_on(self.root / "stopped", ManualClock()) as broker:
            settings = TopicSettings(segment_bytes=4 << 10)
            await broker.create_topic(TOPIC, 1, settings)
            for number in range(RECORDS):
                value = b"%d:" % number + b"." * 100
                self.values[number] = value
                await broker.publish(TOPIC, "", [_record(value, b"k%d" % (number % 5))], 0)
            await broker.groups.create(GROUP, GroupSettings())
            await _give_up_some(broker)
            shutil.copytree(self.root / "stopped", self.root / "killed")


async def _give_up_some(broker: Broker) -> None:
    found = await broker.lease(LeaseSpec(group=GROUP, topics=(TOPIC,), max_records=20))
    assert found
    for first, end, cause in (
        (0, 5, Cause.ACKNOWLEDGE), (5, 5 + LETTERS, Cause.REJECT), (9, 10, Cause.RETRY),
    ):  # fmt: skip
        await broker.settle(GROUP, [Settlement(found.token, first, end, cause, None, "bad")])

    async def are_written() -> bool:
        return len(await _letters(broker)) == LETTERS

    await becomes_true(are_written, "dead letters are written")
    await broker.dead_letters.start_redrive(WANTED)


def _record(value: bytes, key: bytes | None = None) -> NewRecord:
    return NewRecord(key=key, value=value, headers=(), timestamp_ms=None, partition=None)


async def _letters(broker: Broker) -> list[object]:
    page = {"with_resolved": True, "page_size": 100, "page_token": ""}
    return list((await broker.dead_letters.list_page(WANTED, **page))[0])


@cache
def place() -> Place:
    """Returns it."""
    with structlog.testing.capture_logs():
        return Place()


def files() -> list[bytes]:
    """Returns every file as an input."""
    found = place()
    return [
        bytes([number]) + (found.root / path).read_bytes().rstrip(b"\0")
        for number, path in enumerate(found.files)
    ]


def mend(data: bytes) -> bytes:
    """Returns the input with checksums that hold, as far as a file of its kind has them.

    Batches stay bad: their checksums are seeded with what each partition is.
    """
    match _path_of(data).suffix if data else "":
        case "":
            return data[:1] + mended.checkpoint(data[1:])
        case _:
            return data


def start(data: bytes) -> bool | None:
    """Starts a broker where the file holds these bytes, and looks at all there is.

    Returns None where it does not start. Fails where it serves a record that nobody wrote.
    """
    if not data:
        return None
    path = _path_of(data)
    root = place().root
    with tempfile.TemporaryDirectory(dir=root) as scratch, structlog.testing.capture_logs():
        data_dir = Path(scratch) / path.parts[0]
        shutil.copytree(root / path.parts[0], data_dir)
        (Path(scratch) / path).write_bytes(data[1:])
        return asyncio.run(_look(data_dir)) or None


def _path_of(data: bytes) -> Path:
    found = place().files
    return found[data[0] % len(found)]


async def _look(data_dir: Path) -> bool:
    try:
        async with open_broker_on(data_dir, ManualClock()) as broker:
            await _look_at(broker)
    except LogbrokerError:
        return False
    return True


async def _look_at(broker: Broker) -> None:
    broker.stats()
    for topic in broker.list_topics(0, "")[0]:
        broker.partition_statuses(topic)
        for partition in range(topic.partition_count):
            await _read(broker, topic.topic, partition)
    for group, _ in (await broker.groups.list_page(0, ""))[0]:
        await _tried(broker.groups.progress(group.group))
        await _tried(_letters(broker))
        await _tried(broker.lease(LeaseSpec(group=group.group, topics=(TOPIC,), max_records=9)))
    await _tried(broker.create_topic("another", 1, TopicSettings()))
    await _tried(broker.publish("another", "", [_record(b"new")], 0))


async def _tried(call: object) -> None:
    try:
        await call  # type: ignore[misc]  # a coroutine
    except LogbrokerError:
        return


async def _read(broker: Broker, topic: str, partition: int) -> None:
    try:
        seed = broker.get_topic(topic).partition(partition).seed
        at, end = 0, broker.partition_statuses(broker.get_topic(topic))[partition].high_watermark
        while at < end:
            try:
                spec = FetchSpec(topic=topic, partition=partition, start=at, stop_offset=end)
                async for response in broker.fetch(spec):
                    _check(response.batches, seed, is_ours=topic == TOPIC)
                    at = max(at + 1, response.next_offset)
                break
            except DataLossError as error:
                at = int(error.details["next_offset"])
    except LogbrokerError:
        return


def _check(batches: bytes | memoryview, seed: int, *, is_ours: bool) -> None:
    """Fails for a record of our topic that is not what was written at its offset."""
    at = 0
    while at < len(batches):
        batch = Batch.decode(batches, seed, at)
        at += batch.header.size_bytes
        for record in decode_records(batch):
            assert not is_ours or place().values[record.offset] == record.value


DATA_DIRECTORY = Decoder(
    name="data-directory", samples=files, decode=start, mend=mend, is_slow=True
)
