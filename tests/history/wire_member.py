"""A member by the generated stub alone: what it notes is what travelled."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import grpc

from logbroker.limits import BATCH_BYTES_CEILING
from logbroker.record.batch import CODEC_BITS
from logbroker.record.compression import Codec, decompress
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.consume_service_pb2_grpc import ConsumeServiceStub
from logbroker.v1.records_pb2 import Records
from logbroker.v1.stored_batch_pb2 import StoredBatch

from .events import (
    Answer,
    Answered,
    Begun,
    Confirmed,
    Ended,
    How,
    Place,
    Received,
    Refused,
    TakenBack,
)
from .noting import Notes
from .script import Fate

LEAVE_S = 5
UNSURE = "STORAGE_FAILED", "DISK_FULL"
"""Reasons that tell nothing of a lease."""
OUTCOMES = {
    Answer.ACKNOWLEDGE: pb.OUTCOME_ACKNOWLEDGE,
    Answer.RETRY: pb.OUTCOME_RETRY,
    Answer.RELEASE: pb.OUTCOME_RELEASE,
    Answer.REJECT: pb.OUTCOME_REJECT,
}


class Entry(NamedTuple):
    """An answer for a range."""

    token: int
    first: int
    end: int
    answer: Answer

    @property
    def offsets(self) -> range:
        """Returns the offsets of the range."""
        return range(self.first, self.end)


class Held:
    """A delivery, and what of it is neither answered nor taken back."""

    def __init__(self, delivery: pb.Delivery) -> None:
        self.token = delivery.token
        self.lease_s = delivery.lease_ms / 1_000
        self._came = asyncio.get_running_loop().time()
        self._topic = delivery.dead_letter_topic or delivery.topic
        self._partition = delivery.partition
        self.told = {
            offset: one
            for one in delivery.ranges
            for offset in range(one.first_offset, one.end_offset)
        }
        """What was told of each record, by offset."""
        self.offsets = set(self.told)

    @property
    def is_old(self) -> bool:
        """Returns whether the lease may soon be over: too late to begin with anything."""
        return asyncio.get_running_loop().time() - self._came > self.lease_s / 2

    async def stall(self) -> None:
        """Takes longer than the lease lasts."""
        await asyncio.sleep(self.lease_s * 1.4)

    def place(self, offset: int) -> Place:
        """Returns where a record lies."""
        return Place(self._topic, self._partition, offset)

    def received(self, name: str) -> list[Received]:
        """Returns what to note of it."""
        return [
            Received(
                name, self.token, self.place(offset), one.delivery_number, one.failures,
                one.redrives,
            )
            for offset, one in self.told.items()
        ]  # fmt: skip


class WireMember:
    """One stream. It ends with the broker."""

    def __init__(self, name: str, group: str, topic: str, address: str, notes: Notes, fate: Fate):
        self.name = name
        self.is_over = False
        self._notes = notes
        self._fate = fate
        self._channel = grpc.aio.insecure_channel(address)
        self._call = ConsumeServiceStub(self._channel).Consume()
        self._deliveries: deque[Held] = deque()
        self._held: dict[int, Held] = {}
        self._taken_back: set[tuple[int, int]] = set()
        self._sent: deque[Entry] = deque()
        self._again: list[Entry] = []
        """Of a range that was refused as a whole, to be asked one by one."""
        self._news = asyncio.Event()
        self._is_leaving = False
        self._is_unsure = False
        """An answer was neither taken nor refused: the broker's disk has failed, or is full."""
        self._task = asyncio.create_task(self._run(group, topic), name=name)

    async def leave(self) -> None:
        """Ends in order."""
        self._is_leaving = True
        self._news.set()
        await self._task

    async def vanish(self) -> None:
        """Ends without a word, as a killed process does."""
        self._end(How.VANISHED)
        self._call.cancel()
        await self._channel.close()
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def wait_over(self) -> None:
        """Returns once it has ended; raises what it should not have met."""
        await self._task

    async def _run(self, group: str, topic: str) -> None:
        reading: asyncio.Task[None] | None = None
        how = How.LOST
        try:
            limits = pb.FlowLimits(max_outstanding_records=200)
            opening = pb.OpenConsume(
                group=group, topics=[topic], client_id=self.name, limits=limits
            )
            await self._call.write(pb.ConsumeRequest(open=opening))
            reading = asyncio.create_task(self._read())
            await self._handle(reading)
            if (
                self._is_leaving and not self._is_unsure
            ):  # what is on its way still comes, and is noted
                await asyncio.wait({reading}, timeout=LEAVE_S)
                is_whole = reading.done() and await self._call.code() is grpc.StatusCode.OK
                how = How.LEFT if is_whole else How.LOST
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            pass
        finally:
            self._end(how)
            if reading is not None:
                if reading.done():
                    reading.result()
                reading.cancel()
            await self._channel.close()

    def _end(self, how: How) -> None:
        if not self.is_over:
            self.is_over = True
            self._notes.note(Ended(self.name, how))
            self._notes.flush()

    async def _read(self) -> None:
        try:
            while (response := await self._call.read()) is not grpc.aio.EOF:
                if self.is_over:
                    return
                self._take(response)
                self._notes.flush()
                self._news.set()
                if self._is_unsure:
                    break
        except grpc.aio.AioRpcError:
            pass
        finally:
            self._news.set()

    def _take(self, response: pb.ConsumeResponse) -> None:
        note, name = self._notes.note, self.name
        for one in response.taken_back:
            held = self._held[one.token]
            for offset in range(one.first_offset, one.end_offset):
                note(TakenBack(name, one.token, held.place(offset)))
                self._taken_back.add((one.token, offset))
                held.offsets.discard(offset)
        for result in response.settled:
            token, first, end, answer = self._sent.popleft()
            for offset in range(first, end):
                place = self._held[token].place(offset)
                if not result.HasField("error"):
                    note(Confirmed(name, token, place, answer))
                elif result.error.reason in UNSURE:
                    self._is_unsure = True
                elif end - first == 1:
                    assert result.error.reason == "LEASE_LOST", result.error
                    note(Refused(name, token, place, (token, offset) in self._taken_back))
                else:
                    self._again.append(Entry(token, offset, offset + 1, answer))
        if response.HasField("delivery"):
            held = self._held[response.delivery.token] = Held(response.delivery)
            for event in held.received(name):
                note(event)
            assert list(held.told) == list(offsets_of(response.batches)), "ranges are not batches"
            self._deliveries.append(held)

    async def _handle(self, reading: "asyncio.Task[None]") -> None:
        while not reading.done():
            if self._again:
                again, self._again = self._again, []
                await self._send(again)
            elif self._is_leaving and not self._sent:
                await self._call.write(pb.ConsumeRequest(leave=pb.LeaveConsume()))
                return
            elif self._deliveries and not self._is_leaving:
                await self._handle_one(self._deliveries.popleft(), reading)
            else:
                self._news.clear()
                await self._news.wait()

    async def _handle_one(self, held: Held, reading: "asyncio.Task[None]") -> None:
        note, token = self._notes.note, held.token
        done: list[Entry] = []
        for offset, told in held.told.items():
            if offset not in held.offsets:
                continue  # taken back meanwhile
            place = held.place(offset)
            answer: Answer | None = Answer.RELEASE
            if not held.is_old:
                note(Begun(self.name, token, place))
                answer = self._fate.answer(place, told.redrives, told.delivery_number)
            if answer is None:
                await self._settle(done)
                done = []
                await held.stall()
                answer = Answer.ACKNOWLEDGE
            note(Answered(self.name, token, place, answer))
            held.offsets.discard(offset)
            done.append(Entry(token, offset, offset + 1, answer))
            if answer is Answer.ACKNOWLEDGE:
                continue
            await self._settle(done)
            done = []
            while self._sent and not reading.done():  # what is behind it may be taken back now
                self._news.clear()
                await self._news.wait()
            if reading.done():
                return
        await self._settle(done)

    async def _settle(self, entries: Sequence[Entry]) -> None:
        await self._send(joined(entries))

    async def _send(self, entries: Sequence[Entry]) -> None:
        if entries:
            self._sent += entries
            self._notes.flush()
            settlements = pb.Settlements(settlements=map(settlement, entries))
            await self._call.write(pb.ConsumeRequest(settle=settlements))


def joined(entries: Iterable[Entry]) -> list[Entry]:
    """Returns equal answers side by side as one."""
    found: list[Entry] = []
    for entry in entries:
        last = found[-1] if found else None
        if last and (last.token, last.end, last.answer) == (entry.token, entry.first, entry.answer):
            found[-1] = last._replace(end=entry.end)
        else:
            found.append(entry)
    return found


def settlement(entry: Entry) -> pb.Settlement:
    """Returns the message."""
    token, first, end, answer = entry
    return pb.Settlement(
        token=token,
        first_offset=first,
        end_offset=end,
        outcome=OUTCOMES[answer],
        reason="drawn",
    )


def offsets_of(batches: Iterable[StoredBatch]) -> Iterable[int]:
    """Yields the offsets of the records in batches."""
    for batch in batches:
        codec = Codec(batch.attributes & CODEC_BITS)
        records = Records.FromString(decompress(batch.records, codec, BATCH_BYTES_CEILING))
        for delta in records.offset_deltas or range(len(records.values)):
            yield batch.base_offset + delta
