"""An engine under test, started again as often as a rule wants; and what rules say often."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, Self

from logbroker.config import LogConfig
from logbroker.errors import LogbrokerError
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, decode_records, encode_batch
from logbroker.record.partition_id import PartitionId
from logbroker.record.record import Record
from logbroker.storage.engine import Engine, PartitionLog
from logbroker.testing.clock import ManualClock

PARTITION = PartitionId("orders", "6f1c", 0)
EVERYTHING = 1 << 30


class StartEngine(Protocol):
    """Starts an engine, over the partitions of the one before it if there was one."""

    async def __call__(self, clock: ManualClock, before: Engine | None) -> Engine: ...


class Harness:
    """One engine at a time, over the same partitions."""

    def __init__(self, start: StartEngine) -> None:
        self.clock = ManualClock()
        self.engine: Engine
        self._start = start

    async def __aenter__(self) -> Self:
        self.engine = await self._start(self.clock, None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()

    async def open(
        self, partition: PartitionId = PARTITION, config: LogConfig | None = None
    ) -> PartitionLog:
        """Returns the partition's log."""
        return await self.engine.open(partition, config or LogConfig())

    async def reopen(self, partition: PartitionId = PARTITION) -> PartitionLog:
        """Closes the engine, starts the next one, and returns the partition's log."""
        await self.engine.close()
        self.engine = await self._start(self.clock, self.engine)
        return await self.open(partition)


Rule = Callable[[PartitionLog, Harness], Awaitable[None]]


def batch_of(*values: str, timestamps_ms: Sequence[int] | None = None) -> Batch:
    """Returns a batch of records with these values."""
    columns = Columns([value.encode() for value in values], timestamps_ms=timestamps_ms)
    return encode_batch(columns, now_ms=0)


async def values_from(log: PartitionLog, offset: int, max_bytes: int = EVERYTHING) -> list[str]:
    """Returns the values of all records from the batch of `offset` on."""
    values: list[str] = []
    while offset < log.bounds().high_watermark:
        run = await log.read(offset, max_bytes)
        values += [(record.value or b"").decode() for record in records_of(run.batches)]
        offset = run.next_offset
    return values


def records_of(data: bytes | memoryview, partition: PartitionId = PARTITION) -> list[Record]:
    """Returns the records of a run."""
    return [record for batch in batches_of(data, partition) for record in decode_records(batch)]


def batches_of(data: bytes | memoryview, partition: PartitionId = PARTITION) -> list[Batch]:
    """Returns the batches of a run; DataLossError unless each is whole and sound."""
    batches, at = [], 0
    while at < len(data):
        batches.append(Batch.decode(data, partition.seed, at))
        at += batches[-1].header.size_bytes
    return batches


async def error_of(call: Awaitable[object]) -> LogbrokerError | None:
    """Returns the error that a call ends with; None if it ends well."""
    try:
        await call
    except LogbrokerError as error:
        return error
    return None


async def appended(log: PartitionLog, batch: Batch, *, expected_offset: int | None = None) -> Batch:
    """Returns the batch as stamped; errors come when this is awaited."""
    return await log.append(batch, expected_offset=expected_offset)
