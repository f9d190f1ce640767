"""What `send` gives: where a record is, once that is known.

A receipt is its batch and an index. It costs no more than that, however many there are,
and everything it tells is the batch's.
"""

import asyncio
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.config import Durability
from logbroker.errors import LogbrokerError
from logbroker.record.receipt import Receipt


class PendingReceipt:
    """The receipt of one record. Await it to know that the record is stored.

    Awaiting gives the receipt itself, at once if it is there, or raises why the record is
    not stored, or OutcomeUnknownError where that is not known. It may be awaited as often
    as one likes, or never; cancelling who awaits changes nothing for the record.
    Attributes raise asyncio.InvalidStateError until `done()`, and the error where there is one.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: OutgoingBatch, index: int) -> None:
        self._batch = batch
        self._index = index

    def __await__(self) -> Generator[Any, None, "PendingReceipt"]:
        batch = self._batch
        if batch.receipt is None:
            if batch.error is None:
                waiter = batch.add_waiter(self._index)
                try:
                    yield from waiter
                finally:
                    batch.drop_waiter(waiter)
            if error := batch.see_error(self._index):
                raise error
        return self

    @property
    def place(self) -> tuple[OutgoingBatch, int]:
        """The batch that the record travels in, and its number there."""
        return self._batch, self._index

    def done(self) -> bool:
        """Tells whether the record is stored or failed."""
        return self._batch.is_answered

    def error(self) -> LogbrokerError | None:
        """Returns why the record is not stored, or may not be; None if it is stored or open."""
        return self._batch.see_error(self._index)

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._receipt().topic

    @property
    def topic_id(self) -> str:
        """The topic's incarnation."""
        return self._receipt().topic_id

    @property
    def partition(self) -> int:
        """Where it was put; known from the start."""
        return self._batch.partition

    @property
    def offset(self) -> int:
        """The record's place in its partition."""
        return (self._batch.receipt or self._receipt()).base_offset + self._index

    @property
    def append_time_ms(self) -> int:
        """When the broker took it, in ms since 1970."""
        return self._receipt().append_time_ms

    @property
    def durability(self) -> Durability:
        """What was true when the broker answered."""
        return self._receipt().durability

    @property
    def duplicate(self) -> bool:
        """It had been stored before; nothing was stored again."""
        return self._receipt().duplicate

    def __repr__(self) -> str:
        if self._batch.receipt:
            return f"<PendingReceipt {self.topic}/{self.partition} offset {self.offset}>"
        return f"<PendingReceipt partition {self.partition} {self._batch.error or 'open'}>"

    def _receipt(self) -> Receipt:
        if error := self._batch.see_error(self._index):
            raise error
        if self._batch.receipt is None:
            raise asyncio.InvalidStateError("the record is not answered yet: await its receipt")
        return self._batch.receipt


class Part(NamedTuple):
    """Records of one `send_many` that follow one another in a batch."""

    batch: OutgoingBatch
    start: int
    end: int

    def receipt(self) -> Receipt:
        """Returns theirs, of a batch that is stored."""
        receipt = self.batch.receipt
        assert receipt
        if self.end - self.start == receipt.record_count:
            return receipt
        base_offset = receipt.base_offset + self.start
        return receipt._replace(base_offset=base_offset, record_count=self.end - self.start)


class Parts:
    """Finds the parts of a `send_many` while its records are added to batches one by one."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: dict[OutgoingBatch, list[list[int]]] = {}

    def add(self, batch: OutgoingBatch, index: int) -> None:
        """Notes the place of the next record. Others may have added some of theirs before it."""
        runs = self._runs.get(batch)
        if runs is None:
            self._runs[batch] = [[index, index + 1]]
        elif runs[-1][1] == index:
            runs[-1][1] = index + 1
        else:
            runs.append([index, index + 1])

    def pending(self) -> "PendingReceipts":
        """Returns the receipts of all that was noted."""
        return PendingReceipts(
            [Part(batch, start, end) for batch, runs in self._runs.items() for start, end in runs]
        )


class PendingReceipts:
    """The receipts of one `send_many`, a receipt for each batch that its records are in.

    Awaiting gives them in the order in which the batches were begun, or raises the first
    error among them; `errors()` then tells all.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def __await__(self) -> Generator[Any, None, list[Receipt]]:
        return self._wait().__await__()

    def done(self) -> bool:
        """Tells whether every record is stored or failed."""
        return all(part.batch.is_answered for part in self._parts)

    def errors(self) -> list[LogbrokerError]:
        """Returns the errors of those batches that failed."""
        return [part.batch.error.again() for part in self._parts if part.batch.error]

    async def _wait(self) -> list[Receipt]:
        for batch, _, _ in self._parts:
            if not batch.is_answered:
                await batch.wait_answered()
        failed = [part for part in self._parts if part.batch.error]
        for batch, start, end in failed:
            batch.see_errors(start, end)
        if failed:
            error = failed[0].batch.error
            assert error
            raise error.again()
        return [part.receipt() for part in self._parts]
