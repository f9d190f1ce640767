"""Ends what dead letters hold, once they are resolved (`after_dead_letter` is `hold`).

A ledger knows its dead letters by their place in the source; where their copies lie is read
from the dead-letter topic, once, and only for ledgers in which something is held. What is
nowhere holds nothing either: a dead letter that retention or damage took, or that went with
its topic.
"""

import asyncio

import structlog

from logbroker.broker.groups import Groups
from logbroker.broker.parked_records import ParkedRecords, Shelf
from logbroker.errors import LogbrokerError
from logbroker.group.events import LedgerId
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import LedgerEvent
from logbroker.group.parked import decide_release_key
from logbroker.record.offset_ranges import OffsetRanges

AGAIN_MS = 5_000
"""How often to look at what is held: nobody tells what retention removed."""

log = structlog.get_logger()


class Holds:
    """Watches the dead letters of ledgers in which something is held."""

    def __init__(self, groups: Groups, parked: ParkedRecords) -> None:
        self._groups = groups
        self._parked_records = parked
        self._concerned: dict[LedgerId, None] = {}
        """Source ledgers to look at."""
        self._has_concerned = asyncio.Event()
        self._places: dict[LedgerId, dict[int, int]] = {}
        """By dead-letter ledger: by place in the source, where the copy lies, if it is held."""
        self._read_to: dict[LedgerId, int] = {}
        """By dead-letter ledger: how far its topic has been read for that."""
        groups.effects.on_resolved = self.resolved

    def resolved(self, ledger_id: LedgerId) -> None:
        """Takes note that dead letters were settled in their ledger, or are gone with it."""
        group = self._groups.state.catalog.find(ledger_id.group)
        for topic in group.topics if group else ():
            if topic.dead_letter_topic_id == ledger_id.topic_id:
                self._look_at(ledger_id._replace(topic_id=topic.topic_id))

    async def run(self) -> None:
        """Lets go of what is held no more, until it is cancelled."""
        clock = self._groups.clock
        self._look_at_all()
        while True:
            while self._concerned:
                ledger_id = next(iter(self._concerned))
                del self._concerned[ledger_id]
                try:
                    await self._let_go(ledger_id)
                except LogbrokerError as error:  # tried again with all others
                    log.warning("hold not ended", ledger=ledger_id, reason=error.reason)
            self._has_concerned.clear()
            try:
                await clock.wait_for(self._has_concerned.wait(), AGAIN_MS)
            except TimeoutError:
                self._look_at_all()

    def _look_at_all(self) -> None:
        ledgers = self._groups.state.all()
        for parked_id in [one for one in self._read_to if one not in ledgers]:
            del self._read_to[parked_id], self._places[parked_id]
        for ledger_id in ledgers:
            self._look_at(ledger_id)

    def _look_at(self, ledger_id: LedgerId) -> None:
        ledger = self._groups.state.get(ledger_id)
        if ledger and ledger.state.held:
            self._concerned[ledger_id] = None
            self._has_concerned.set()

    async def _let_go(self, ledger_id: LedgerId) -> None:
        groups = self._groups
        ledger = groups.state.get(ledger_id)
        group = groups.state.catalog.find(ledger_id.group)
        read = group.topic(ledger_id.topic_id) if group else None
        if ledger is None or read is None:
            return
        pending = OffsetRanges(
            run for letter in groups.letters.of(ledger_id) for run in letter.event.ranges
        )
        written = [offset for offset in ledger.state.held if offset not in pending]
        places: dict[int, int] = {}
        parked: Ledger | None = None
        if read.dead_letter_topic_id:
            shelf = self._parked_records.shelf(ledger_id.group, read.topic)
            if shelf is None:
                return  # being deleted, or damaged
            parked_id = shelf.ledger_id(ledger_id.partition)
            await self._find_places(ledger_id, parked_id, shelf)
            places, parked = self._places[parked_id], groups.state.get(parked_id)
            if groups.state.get(ledger_id) is not ledger or parked is None:
                return
            start = groups.partition(parked_id).log.bounds().log_start_offset
            places = {offset: place for offset, place in places.items() if place >= start}
        decided: list[LedgerEvent] = []
        for offset in written:
            place = places.get(offset)
            if place is None:
                log.warning("a dead letter that holds others is gone", ledger=ledger_id, at=offset)
            elif parked and not _is_settled(parked, place):
                continue
            decided += decide_release_key(ledger, offset)
        await groups.commit_in(ledger_id, decided)

    async def _find_places(self, ledger_id: LedgerId, parked_id: LedgerId, shelf: Shelf) -> None:
        """Reads on where copies lie, as far as there are any."""
        bounds = self._groups.partition(parked_id).log.bounds()
        first = max(self._read_to.get(parked_id, 0), bounds.log_start_offset)
        end = bounds.high_watermark
        held = self._groups.ledger(ledger_id).state.held
        known = self._places.get(parked_id, {})
        places = {offset: place for offset, place in known.items() if offset in held}
        reading = self._parked_records.read(shelf, ledger_id.partition, [(first, end)])
        async for part in reading:
            for letter in part.letters:
                origin = letter.letter
                if origin.topic_id == ledger_id.topic_id and origin.offset in held:
                    places[origin.offset] = letter.record.offset
        self._places[parked_id], self._read_to[parked_id] = places, end


def _is_settled(ledger: Ledger, offset: int) -> bool:
    return offset < ledger.state.committed or offset in ledger.state.settled
