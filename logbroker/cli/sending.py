"""Sends drafts to a topic and accounts for them.

Records go in the order of their lines. A line that is malformed or over a limit ends it:
what stands before that line is stored, it and all behind it are not sent.
"""

from collections import deque
from typing import Any, NoReturn

from logbroker.cli.drafts import BadLine, Drafts
from logbroker.cli.output import counted
from logbroker.client.producer import Producer
from logbroker.client.receipts import PendingReceipts
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.record.receipt import Receipt

PENDING_MOST = 64
"""How many bulks are open before the oldest is waited for."""


class Stored:
    """What a partition got."""

    def __init__(self, first_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = first_offset
        self.record_count = 0


class Sending:
    """Records on their way through one producer."""

    def __init__(self, producer: Producer) -> None:
        self.record_count = 0
        """How many are stored."""
        self.partitions: dict[int, Stored] = {}
        self.durabilities: set[str] = set()
        self._producer = producer
        self._pending: deque[tuple[Drafts, PendingReceipts]] = deque()

    async def send(self, drafts: Drafts) -> None:
        """Sends them; InvalidError naming the line of the first that cannot be stored."""
        if not drafts.values:
            return
        try:
            pending = await self._producer.send_many(
                drafts.values, drafts.keys, drafts.timestamps_ms, drafts.headers, drafts.partition
            )
        except InvalidError:
            await self._send_one_by_one(drafts)
            return
        self._pending.append((drafts, pending))
        while len(self._pending) > PENDING_MOST or (self._pending and self._pending[0][1].done()):
            await self._settle()

    async def finish(self) -> None:
        """Returns once everything is stored; raises the first error, naming its lines."""
        while self._pending:
            await self._settle()

    async def refuse(self, bad: BadLine) -> NoReturn:
        """Waits for what stands before the line, then raises InvalidError for it."""
        await self.finish()
        message = f"line {bad.line_number}: {bad.why}; {self._stored()}"
        raise InvalidError("INVALID_ARGUMENT", message, line=bad.line_number)

    async def _send_one_by_one(self, drafts: Drafts) -> None:
        """Sends up to the record that is refused, to know which one it is."""
        for index, number in enumerate(drafts.line_numbers):
            try:
                receipts = await self._producer.send_many(
                    drafts.values[index : index + 1],
                    drafts.keys and drafts.keys[index : index + 1],
                    drafts.timestamps_ms and drafts.timestamps_ms[index : index + 1],
                    drafts.headers and drafts.headers[index : index + 1],
                    drafts.partition,
                )
            except InvalidError as error:
                await self.finish()
                message = f"line {number}: {error}; {self._stored()}"
                raise InvalidError(error.reason, message, line=number) from error
            self._pending.append((_line(drafts, index), receipts))

    async def _settle(self) -> None:
        drafts, pending = self._pending.popleft()
        try:
            receipts = await pending
        except LogbrokerError as error:
            first, last = drafts.line_numbers[0], drafts.line_numbers[-1]
            lines = f"line {first}" if first == last else f"lines {first} to {last}"
            details: dict[str, Any] = {**error.details, "line": first}
            message = f"{lines}: {error}; {self._stored()}, later ones may be"
            raise type(error)(error.reason, message, **details) from error
        for receipt in receipts:
            self._count(receipt)

    def _count(self, receipt: Receipt) -> None:
        stored = self.partitions.setdefault(receipt.partition, Stored(receipt.base_offset))
        stored.record_count += receipt.record_count
        end_offset = receipt.base_offset + receipt.record_count
        stored.last_offset = max(stored.last_offset, end_offset - 1)
        stored.first_offset = min(stored.first_offset, receipt.base_offset)
        self.record_count += receipt.record_count
        self.durabilities.add(receipt.durability)

    def _stored(self) -> str:
        return f"stored before it: {counted(self.record_count, 'record')}"


def _line(drafts: Drafts, index: int) -> Drafts:
    return Drafts([drafts.line_numbers[index]], drafts.values[index : index + 1])
