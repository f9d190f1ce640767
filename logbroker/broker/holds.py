"""Ends what dead letters hold, once they are resolved (`after_dead_letter` is `hold`).

A ledger knows its dead letters by their place in the source; where their copies lie is read
from the dead-letter topic, once, and only for ledgers in which something is held.
"""

import asyncio

import structlog

from logbroker.broker.dead_letter_view import DeadLetterView
from logbroker.broker.groups import Groups
from logbroker.errors import LogbrokerError
from logbroker.group.events import LedgerId
from logbroker.group.ledger import Ledger
from logbroker.topic.topic import Topic

AGAIN_MS = 5_000

log = structlog.get_logger()


class Holds:
    """Watches the dead letters of ledgers in which something is held."""

    def __init__(self, groups: Groups, view: DeadLetterView) -> None:
        self._groups = groups
        self._view = view
        self._concerned: dict[LedgerId, None] = {}
        """Source ledgers to look at."""
        self._has_concerned = asyncio.Event()
        self._places: dict[LedgerId, dict[int, int]] = {}
        """By source ledger: where the copy of a dead letter lies that holds something."""
        self._read_to: dict[LedgerId, int] = {}
        """By dead-letter ledger: how far its topic has been read for that."""
        groups.on_resolved = self.resolved
        for ledger_id, ledger in groups.state.all().items():
            if ledger.state.held:
                self._look_at(ledger_id)

    def resolved(self, ledger_id: LedgerId) -> None:
        """Takes note that dead letters were settled in their ledger."""
        group = self._groups.state.catalog.find(ledger_id.group)
        for topic in group.topics if group else ():
            if topic.dead_letter_topic_id == ledger_id.topic_id:
                source = ledger_id._replace(topic_id=topic.topic_id)
                ledger = self._groups.state.get(source)
                if ledger and ledger.state.held:
                    self._look_at(source)

    async def run(self) -> None:
        """Lets go of what is held no more, until it is cancelled."""
        clock = self._groups.clock
        while True:
            await self._has_concerned.wait()
            self._has_concerned.clear()
            while self._concerned:
                ledger_id = next(iter(self._concerned))
                del self._concerned[ledger_id]
                try:
                    await self._let_go(ledger_id)
                except LogbrokerError as error:
                    log.warning("hold not ended", ledger=ledger_id, reason=error.reason)
                    self._look_at(ledger_id)
                    await clock.wait_until(clock.monotonic_ms() + AGAIN_MS)

    def _look_at(self, ledger_id: LedgerId) -> None:
        self._concerned[ledger_id] = None
        self._has_concerned.set()

    async def _let_go(self, ledger_id: LedgerId) -> None:
        groups = self._groups
        group = groups.state.catalog.find(ledger_id.group)
        read = group.topic(ledger_id.topic_id) if group else None
        target = groups.topics.find(read.dead_letter_topic_id) if read else None
        if target is None:
            return
        parked_id = ledger_id._replace(topic_id=target.topic_id)
        await self._find_places(ledger_id, parked_id, target)
        ledger, parked = groups.state.get(ledger_id), groups.state.get(parked_id)
        if ledger is None or parked is None:
            return
        places = self._places.get(ledger_id, {})
        for offset in list(ledger.state.held):
            place = places.get(offset)
            if place is not None and _is_settled(parked, place):
                done = groups.commit_in(ledger_id, ledger.decide_release_key(offset))
                places.pop(offset, None)
                await done

    async def _find_places(self, ledger_id: LedgerId, parked_id: LedgerId, target: Topic) -> None:
        """Reads on where copies lie, as far as there are any."""
        partition_log = self._groups.partition(parked_id).log
        bounds = partition_log.bounds()
        first = max(self._read_to.get(parked_id, 0), bounds.log_start_offset)
        end = bounds.high_watermark
        places = self._places.setdefault(ledger_id, {})
        held = self._groups.ledger(ledger_id).state.held
        reading = self._view.read(ledger_id.group, target, ledger_id.partition, first, end)
        async for letter in reading:
            if letter.letter.topic_id == ledger_id.topic_id and letter.letter.offset in held:
                places[letter.letter.offset] = letter.record.offset
        self._read_to[parked_id] = end


def _is_settled(ledger: Ledger, offset: int) -> bool:
    return offset < ledger.state.committed or offset in ledger.state.settled
