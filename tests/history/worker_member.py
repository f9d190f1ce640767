"""A Worker of the client, as applications use it. It outlives the broker's restarts."""

import asyncio

from logbroker.client import Client, Delivered, Reject, Retry
from logbroker.client.delivered import DeliveredBatch
from logbroker.client.lease import Lease

from .events import Answer, Answered, Begun, Ended, How, Place, Received, Refused
from .noting import Notes
from .script import Fate


class WorkerMember:
    """One worker. It does not tell which answers were confirmed, only which came too late."""

    def __init__(self, name: str, group: str, topic: str, address: str, notes: Notes, fate: Fate):
        self.name = name
        self.is_over = False
        self._notes = notes
        self._fate = fate
        self._client = Client(address)
        self._worker = self._client.worker(
            group, topic, self._handler, concurrency=4, max_outstanding_records=200
        )
        self._listen()
        self._task = asyncio.create_task(self._run(), name=name)

    async def leave(self) -> None:
        """Ends in order."""
        self._worker.stop()
        await self._task

    async def vanish(self) -> None:
        """Ends in order too: a worker that is dropped closes its stream."""
        await self.leave()

    async def wait_over(self) -> None:
        """Returns once it has ended; raises what it should not have met."""
        await self._task

    async def _run(self) -> None:
        try:
            await self._worker.run()
        finally:
            self.is_over = True
            self._notes.note(Ended(self.name, How.LOST))
            await self._client.close()

    def _listen(self) -> None:
        """Notes what the worker is told."""
        take, note_lost = self._worker.take, self._worker.note_lost
        note = self._notes.note

        def noting_take(batch: DeliveredBatch) -> None:
            for record in batch:
                note(
                    Received(
                        self.name,
                        batch.lease.token,
                        _place(batch.lease, record.ledger_offset),
                        record.delivery_number,
                        record.failures,
                        record.redrives,
                    )
                )
            take(batch)

        def noting_lost(lease: Lease, range_: tuple[int, int]) -> None:
            for offset in range(*range_):
                note(Refused(self.name, lease.token, _place(lease, offset), was_told=None))
            note_lost(lease, range_)

        self._worker.take, self._worker.note_lost = noting_take, noting_lost  # type: ignore[method-assign]

    async def _handler(self, record: Delivered) -> None:
        lease = record.run.lease
        place = _place(lease, record.ledger_offset)
        self._notes.note(Begun(self.name, lease.token, place))
        answer = self._fate.answer(place, record.redrives, record.delivery_number) or Answer.RETRY
        if answer is Answer.RELEASE:  # a worker does not release by itself: it takes its time
            await asyncio.sleep(0.01)
            answer = Answer.ACKNOWLEDGE
        self._notes.note(Answered(self.name, lease.token, place, answer))
        if answer is Answer.RETRY:
            raise Retry(reason="drawn")
        if answer is Answer.REJECT:
            raise Reject("drawn")


def _place(lease: Lease, offset: int) -> Place:
    return Place(lease.dead_letter_topic or lease.topic, lease.partition, offset)
