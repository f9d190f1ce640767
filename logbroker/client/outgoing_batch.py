"""A batch on its way to the broker.

open       records are added; it is the last of its partition
sealed     no more are added; it waits for its turn, is under way, or waits to go again
answered   stored, or failed; the records themselves are let go
"""

import asyncio
from collections.abc import Sequence
from itertools import repeat

from logbroker.errors import LogbrokerError
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, encode_batch
from logbroker.record.compression import Codec
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header

SEALED = -1
"""`left` of a batch that takes no more records, however small."""


class OutgoingBatch:
    """Records of one partition that are produced as one."""

    __slots__ = (
        "_headers", "_seen", "_timestamps", "_waiters", "deadline_ms", "encoded", "error",
        "expected_offset", "granted_bytes", "in_doubt", "is_overdue", "is_under_way", "keys",
        "left", "lingers_until_ms", "partition", "receipt", "record_count", "sequence",
        "size_bytes", "values",
    )  # fmt: skip

    def __init__(self, partition: int, *, lingers_until_ms: int = 0, deadline_ms: int = 0) -> None:
        self.partition = partition
        self.lingers_until_ms = lingers_until_ms
        self.deadline_ms = deadline_ms
        """When its delivery is given up, monotonic."""
        self.left = 0
        """Bytes that may be added without asking for more room; SEALED when none ever may."""
        self.granted_bytes = 0
        """The room it was given in all, `left` included."""
        self.is_overdue = False
        """It shall go although others are under way: its linger is over, or a flush waits."""
        self.is_under_way = False
        self.in_doubt = False
        """It may be stored although it is unanswered: a connection broke over it."""
        self.sequence: int | None = None
        self.expected_offset: int | None = None
        self.encoded: Batch | None = None
        self.receipt: Receipt | None = None
        self.error: LogbrokerError | None = None
        self.record_count = 0
        self.size_bytes = 0
        """As encoded."""
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        """None while every key is null."""
        self._timestamps: list[int] | None = None
        self._headers: list[tuple[int, Sequence[Header]]] = []
        self._waiters: dict[asyncio.Future[None], int] = {}
        self._seen: set[int] = set()

    @classmethod
    def of_columns(
        cls, partition: int, columns: Columns, size: int, deadline_ms: int
    ) -> "OutgoingBatch":
        """Returns a sealed batch of these columns, which nobody changes any more."""
        batch = cls(partition, deadline_ms=deadline_ms)
        batch.values = list(columns.values)
        batch.keys = list(columns.keys) if columns.keys is not None else None
        batch._timestamps = list(columns.timestamps_ms) if columns.timestamps_ms else None
        batch._headers = list(columns.headers)
        batch.granted_bytes = size
        batch.seal()
        return batch

    @classmethod
    def of_encoded(cls, partition: int, encoded: Batch, deadline_ms: int) -> "OutgoingBatch":
        """Returns a sealed batch that is encoded already."""
        batch = cls(partition, deadline_ms=deadline_ms)
        batch.encoded, batch.size_bytes = encoded, encoded.header.size_bytes
        batch.granted_bytes = batch.size_bytes
        batch.record_count, batch.left = encoded.header.record_count, SEALED
        return batch

    @property
    def is_sealed(self) -> bool:
        """Whether no more records are added."""
        return self.left == SEALED

    @property
    def is_answered(self) -> bool:
        """Whether it is stored or failed."""
        return self.receipt is not None or self.error is not None

    @property
    def is_plain(self) -> bool:
        """Whether values and keys are all there is to add: no record has its own timestamp."""
        return self._timestamps is None

    def add(
        self,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[Header],
        timestamp_ms: int | None,
        now_ms: int,
    ) -> int:
        """Adds a record, whose room is taken already; returns its index."""
        index = len(self.values)
        if key is not None and self.keys is None:
            self.keys = [None] * index
        if timestamp_ms is not None and self._timestamps is None:
            self._timestamps = list(repeat(now_ms, index))
        self.values.append(value)
        if self.keys is not None:
            self.keys.append(key)
        if self._timestamps is not None:
            self._timestamps.append(now_ms if timestamp_ms is None else timestamp_ms)
        if headers:
            self._headers.append((index, headers))
        return index

    def seal(self) -> int:
        """Ends the adding; returns the bytes of its room that were not used."""
        assert self.left != SEALED
        unused, self.left = self.left, SEALED
        self.granted_bytes -= unused
        self.record_count = len(self.values)
        return unused

    def encode(self, codec: Codec, now_ms: int) -> Batch:
        """Returns the batch as sent, but for its producer. Encoded once, then remembered."""
        assert self.left == SEALED
        if self.encoded is None:
            columns = Columns(self.values, self.keys, self._timestamps, self._headers)
            self.encoded = encode_batch(columns, now_ms=now_ms, codec=codec)
            self.size_bytes = self.encoded.header.size_bytes
            self._drop_records()
        return self.encoded

    def answer(self, answer: Receipt | LogbrokerError) -> None:
        """Settles the batch, once, and wakes who waits for it."""
        assert not self.is_answered
        if not self.is_sealed:
            self.seal()
        if isinstance(answer, Receipt):
            self.receipt = answer
        else:
            self.error = answer
        self.encoded = None
        self.is_under_way = False
        self._drop_records()
        for waiter, index in self._waiters.items():
            if not waiter.done():
                self._seen.add(index)
                waiter.set_result(None)
        self._waiters.clear()

    async def wait_answered(self, index: int = -1) -> None:
        """Returns once it is stored or failed. An `index` says whose receipt is awaited."""
        if not self.is_answered:
            waiter = self.add_waiter(index)
            try:
                await waiter
            finally:
                self.drop_waiter(waiter)

    def add_waiter(self, index: int) -> asyncio.Future[None]:
        """Returns a future that is done once the batch is answered."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = index
        return waiter

    def drop_waiter(self, waiter: asyncio.Future[None]) -> None:
        """Forgets a waiter, answered or not."""
        self._waiters.pop(waiter, None)

    def see_error(self, index: int) -> LogbrokerError | None:
        """Returns the error, if there is one, and notes that the record's owner has seen it."""
        if self.error is None:
            return None
        self._seen.add(index)
        return self.error.again()

    @property
    def has_unseen_error(self) -> bool:
        """Whether it failed, and nobody awaited the receipt of one of its records."""
        return self.error is not None and len(self._seen - {-1}) < self.record_count

    def see_errors(self, start: int, end: int) -> None:
        """Notes that the error was told to the owner of these records."""
        self._seen.update(range(start, end))

    def _drop_records(self) -> None:
        self.values, self.keys, self._timestamps, self._headers = [], None, None, []
