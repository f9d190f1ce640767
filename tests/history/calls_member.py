"""One who calls `Lease` and `Settle` again and again, without a stream."""

import asyncio
from contextlib import suppress

import grpc

from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.consume_service_pb2_grpc import ConsumeServiceStub

from .events import Answer, Answered, Begun, Confirmed, Ended, How, Refused
from .noting import Notes
from .script import Fate
from .wire_member import UNSURE, Entry, Held, joined, offsets_of, settlement


class Unsure(Exception):
    """An answer was neither taken nor refused."""


class CallsMember:
    """One loop. It ends with the broker; what it holds then, or when it vanishes, expires."""

    def __init__(self, name: str, group: str, topic: str, address: str, notes: Notes, fate: Fate):
        self.name = name
        self.is_over = False
        self._group = group
        self._topic = topic
        self._notes = notes
        self._fate = fate
        self._channel = grpc.aio.insecure_channel(address)
        self._stub = ConsumeServiceStub(self._channel)
        self._is_leaving = False
        self._task = asyncio.create_task(self._run(), name=name)

    async def leave(self) -> None:
        """Ends when all is answered that it has leased."""
        self._is_leaving = True
        await self._task

    async def vanish(self) -> None:
        """Ends at once."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def wait_over(self) -> None:
        """Returns once it has ended; raises what it should not have met."""
        await self._task

    async def _run(self) -> None:
        how = How.LOST
        request = pb.LeaseRequest(
            group=self._group, topics=[self._topic], max_records=20, wait_ms=200
        )
        try:
            while not self._is_leaving:
                response = await self._stub.Lease(request)
                if response.HasField("delivery"):
                    held = Held(response.delivery)
                    assert list(held.told) == list(offsets_of(response.batches))
                    for event in held.received(self.name):
                        self._notes.note(event)
                    await self._handle(held)
            how = How.LEFT
        except (grpc.aio.AioRpcError, Unsure):
            pass
        finally:
            self.is_over = True
            self._notes.note(Ended(self.name, how))
            await self._channel.close()

    async def _handle(self, held: Held) -> None:
        note, token = self._notes.note, held.token
        done: list[Entry] = []
        for offset, told in held.told.items():
            place = held.place(offset)
            answer: Answer | None = Answer.RELEASE
            if not held.is_old:
                note(Begun(self.name, token, place))
                answer = self._fate.answer(place, told.redrives, told.delivery_number)
            if answer is None:
                await self._settle(held, done)
                done = []
                await held.stall()
                answer = Answer.ACKNOWLEDGE
            note(Answered(self.name, token, place, answer))
            done.append(Entry(token, offset, offset + 1, answer))
        await self._settle(held, done)

    async def _settle(self, held: Held, entries: list[Entry]) -> None:
        for entry, is_good in await self._ask(joined(entries)):
            singles = [Entry(entry.token, at, at + 1, entry.answer) for at in entry.offsets]
            answers = [(one, True) for one in singles]
            if not is_good:  # perhaps not all of it is lost
                answers = await self._ask(singles)
            for (token, first, _, answer), is_taken in answers:
                place = held.place(first)
                if is_taken:
                    self._notes.note(Confirmed(self.name, token, place, answer))
                else:
                    self._notes.note(Refused(self.name, token, place))

    async def _ask(self, entries: list[Entry]) -> list[tuple[Entry, bool]]:
        """Returns the entries, and whether each was taken."""
        if not entries:
            return []
        request = pb.SettleRequest(group=self._group, settlements=map(settlement, entries))
        results = (await self._stub.Settle(request)).results
        if any(result.error.reason in UNSURE for result in results):
            raise Unsure
        for result in results:
            assert result.error.reason in ("", "LEASE_LOST"), result.error
        taken = [not result.HasField("error") for result in results]
        return list(zip(entries, taken, strict=True))
