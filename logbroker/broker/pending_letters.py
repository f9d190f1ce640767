"""Dead letters that are settled in their source and not yet in their topic, by ledger, in order."""

import asyncio
from asyncio import Future
from collections import deque
from itertools import islice
from typing import Any, NamedTuple

from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.group_events import GroupDeleted, TopicDetached
from logbroker.group.ledger_events import GivenUp, LetterPending
from logbroker.group.ledger_state import ENDLESS
from logbroker.group.ledgers import Ledgers
from logbroker.group.retry_policy import Exhausted
from logbroker.record.partition_id import PartitionId


class Letter(NamedTuple):
    """What was given up in one step: some records of one ledger, for one reason."""

    ledger_id: LedgerId
    sequence: int
    """How many dead letters the ledger had before."""
    event: GivenUp
    is_durable: "Future[Any] | None"
    """Done once the journal holds it; None: it does."""
    is_tried: "Future[None]"
    """Done once it is written, or could not be for now."""

    @property
    def end(self) -> int:
        """Returns how many the ledger has with these."""
        return self.sequence + sum(end - first for first, end in self.event.ranges)

    def holds(self, offset: int) -> bool:
        """Returns whether this record of the source is among them."""
        return any(first <= offset < end for first, end in self.event.ranges)

    def tried(self) -> None:
        """Lets those go on who wait for it to be tried."""
        if not self.is_tried.done():
            self.is_tried.set_result(None)


class PendingLetters:
    """Appended to as they are decided; taken off as they are written."""

    def __init__(self) -> None:
        self._letters: dict[LedgerId, deque[Letter]] = {}

    def add(self, letter: Letter) -> None:
        """Takes one in, behind those of its ledger."""
        self._letters.setdefault(letter.ledger_id, deque()).append(letter)

    def note(self, told: InLedger, done: "Future[Any] | None", state: Ledgers) -> Letter | None:
        """Takes in the dead letters that an event makes, before it is applied; None: it makes none.

        `done` is done once the journal holds the event; None: it does.
        """
        ledger_id, event = told
        if isinstance(event, LetterPending):
            sequence, event = event
        elif isinstance(event, GivenUp) and event.outcome is Exhausted.DEAD_LETTER:
            ledger = state.get(ledger_id)
            sequence = ledger.state.counters.dead_letters if ledger else 0
        else:
            return None
        is_tried = asyncio.get_running_loop().create_future()
        letter = Letter(ledger_id, sequence, event, done, is_tried)
        self.add(letter)
        return letter

    def forget(self, event: Event) -> list[Letter]:
        """Drops and returns those whose group, or whose records, an event removes."""
        match event:
            case GroupDeleted(name):
                gone = self.of_group(name)
            case TopicDetached(name, topic_id):
                gone = self.of_group(name, topic_id)
            case _:
                return []
        for letter in gone:
            self.remove(letter)
        return gone

    def events(self) -> list[Event]:
        """Returns the events that make an empty one equal to this one."""
        return [
            InLedger(ledger_id, LetterPending(letter.sequence, letter.event))
            for ledger_id, letters in self._letters.items()
            for letter in letters
        ]

    def ledger_ids(self) -> list[LedgerId]:
        """Returns where there are any."""
        return list(self._letters)

    def of(self, ledger_id: LedgerId, max_count: int | None = None) -> list[Letter]:
        """Returns those of a ledger, at most so many, in order."""
        return list(islice(self._letters.get(ledger_id, ()), max_count))

    def find(self, ledger_id: LedgerId, offset: int) -> Letter | None:
        """Returns the one that this record of the source is on its way with."""
        letters = self._letters.get(ledger_id, ())
        return next((letter for letter in letters if letter.holds(offset)), None)

    def of_group(self, group: str, topic_id: str | None = None) -> list[Letter]:
        """Returns those of a group, of one of its topics perhaps."""
        return [
            letter
            for ledger_id, letters in self._letters.items()
            if ledger_id.group == group and topic_id in (None, ledger_id.topic_id)
            for letter in letters
        ]

    def below(self, topic_id: str, partition: int, offset: int) -> list[Letter]:
        """Returns those, of all groups, with records of a partition below this offset."""
        return [
            letter
            for ledger_id, letters in self._letters.items()
            if (ledger_id.topic_id, ledger_id.partition) == (topic_id, partition)
            for letter in letters
            if letter.event.ranges[0][0] < offset
        ]

    def needed_from(self, partition: PartitionId) -> int | None:
        """Returns the first record of a partition that is yet to be copied, of whatever group."""
        letters = self.below(partition.topic_id, partition.partition, ENDLESS)
        return min([letter.event.ranges[0][0] for letter in letters], default=None)

    def groups(self) -> set[str]:
        """Returns which groups have any."""
        return {ledger_id.group for ledger_id in self._letters}

    def untried(self, group: str) -> "list[Future[None]]":
        """Returns what ends once a group's dead letters are written, or could not be for now."""
        return [one.is_tried for one in self.of_group(group) if not one.is_tried.done()]

    def untried_of(self, topic_id: str) -> "list[Future[None]]":
        """Returns the same for those that all groups have of a topic."""
        return [
            letter.is_tried
            for ledger_id, letters in self._letters.items()
            if ledger_id.topic_id == topic_id
            for letter in letters
            if not letter.is_tried.done()
        ]

    def remove(self, letter: Letter) -> None:
        """Drops one, written or not; nothing if it is not there any more."""
        letters = self._letters.get(letter.ledger_id, deque())
        if letter in letters:
            letters.remove(letter)
        if not letters:
            self._letters.pop(letter.ledger_id, None)
        letter.tried()

    def remove_written(self, ledger_id: LedgerId, end: int) -> None:
        """Drops those of a ledger of which the last is known to be in its topic."""
        for letter in self.of(ledger_id):
            if letter.end <= end:
                self.remove(letter)

    def __bool__(self) -> bool:
        return bool(self._letters)
