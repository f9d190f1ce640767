"""Why a group is not given a record, or what became of it: asked by people, one at a time."""

from typing import Any, NamedTuple

from logbroker.broker.groups import Groups
from logbroker.broker.letter_search import find_copy
from logbroker.broker.membership import Membership
from logbroker.broker.parked_records import FoundLetter, ParkedRecords, Shelf
from logbroker.errors import NotFoundError
from logbroker.group.events import LedgerId
from logbroker.group.explain import Explanation, Why, explain
from logbroker.group.ledger import Ledger
from logbroker.storage.engine import Bounds


class Explained(NamedTuple):
    """The answer: a short constant, a sentence for people, and every value of it."""

    state: str
    message: str
    details: dict[str, Any]


class Explain:
    """Looks into a ledger and, for what was given up, into the dead-letter topic."""

    def __init__(self, groups: Groups, membership: Membership, parked: ParkedRecords) -> None:
        self._groups = groups
        self._membership = membership
        self._parked = parked

    async def explain(self, group: str, topic: str, partition: int, offset: int) -> Explained:
        """Returns why the group is not given a record. NotFoundError."""
        groups = self._groups
        groups.state.catalog.get(group)
        found, place = groups.topics.partition(topic, "", partition)
        ledger_id = LedgerId(group, found.topic_id, partition)
        ledger = groups.state.get(ledger_id)
        if ledger is None:
            message = f"group {group!r} does not read {topic!r}"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic=topic, group=group)
        told = self.look(ledger_id, ledger, offset, groups.partitions.get(place).log.bounds())
        if told.why is Why.PARKED and ledger.state.is_parked_from_birth:
            shelf = self._parked.shelf_of(ledger_id)
            if shelf and (letter := await self._parked.find(shelf, partition, offset)):
                return _parked(letter)
        if told.why is Why.SETTLED and ledger.state.counters.dead_letters:
            if groups.letters.find(ledger_id, offset):
                return Explained(Why.DEAD_LETTERED, ON_ITS_WAY, {})
            shelf = self._parked.shelf(group, topic)
            if shelf:
                searched = await find_copy(self._parked, shelf, partition, offset)
                if searched.letter:
                    return _dead_lettered(searched.letter)
                if searched.first is not None:
                    return _not_found(shelf, searched.first)
        return _explained(told)

    def look(self, ledger_id: LedgerId, ledger: Ledger, offset: int, bounds: Bounds) -> Explanation:
        """Returns what the ledger alone says of a record."""
        live = self._groups.live.get(ledger_id.group)
        source = live.source_of(ledger_id.topic_id) if live else ledger_id.topic_id
        members = self._membership.members(ledger_id.group)
        return explain(
            ledger,
            offset,
            self._groups.moment(),
            log_start_offset=bounds.log_start_offset,
            high_watermark=bounds.high_watermark,
            has_members=any(source in member.holding.topic_ids for member in members),
        )


def _parked(letter: FoundLetter) -> Explained:
    """Returns the answer for a record that is asked for by its place in the dead-letter topic."""
    details = {
        "source_topic": letter.letter.topic,
        "source_partition": letter.partition,
        "source_offset": letter.letter.offset,
        "failures": letter.letter.failures,
        "redrives": letter.redrives,
        "reason": letter.letter.reason,
    }
    return Explained(Why.PARKED, PARKED.format(**details), _told(details))


def _dead_lettered(letter: FoundLetter) -> Explained:
    details = {
        "dead_letter_topic": letter.dead_letter_topic,
        "dead_letter_partition": letter.partition,
        "dead_letter_offset": letter.record.offset,
        "dead_letter_state": letter.state,
        "failures": letter.letter.failures,
        "redrives": letter.redrives,
        "reason": letter.letter.reason,
    }
    is_done = letter.state == "resolved"
    state = Why.SETTLED if is_done else Why.DEAD_LETTERED
    sentence = RESOLVED if is_done else SENTENCES[state]
    return Explained(state, sentence.format(**details), _told(details))


def _not_found(shelf: Shelf, searched_from: int) -> Explained:
    details = {
        "dead_letter_topic": shelf.topic.topic,
        "searched_from_offset": searched_from,
    }
    return Explained(Why.SETTLED, NOT_FOUND.format(**details), details)


def _explained(found: Explanation) -> Explained:
    values = found._asdict()
    details = _told({name: value for name, value in values.items() if name != "why"})
    return Explained(found.why, SENTENCES[found.why].format(**values), details)


def _told(details: dict[str, Any]) -> dict[str, Any]:
    """Returns what says something; offsets and partitions do so at 0, too."""
    return {
        name: value
        for name, value in details.items()
        if value not in (None, "") and (value or name.endswith(("_offset", "_partition")))
    }


ON_ITS_WAY = "the group gave it up; it is about to be written to its dead-letter topic"
RESOLVED = (
    "the group gave it up; its dead letter, offset {dead_letter_offset} of partition "
    "{dead_letter_partition} of {dead_letter_topic}, is resolved"
)
NOT_FOUND = (
    "the group is done with it, or began behind it; it may be a dead letter, too, older than "
    "those that were searched, from offset {searched_from_offset} of {dead_letter_topic} on"
)
PARKED = (
    "a dead letter, from offset {source_offset} of partition {source_partition} of "
    "{source_topic}; it stays here until an operator redrives or resolves it: {reason}"
)
SENTENCES = {
    Why.AVAILABLE: "the next member that has room gets it",
    Why.NO_MEMBER: "it can be delivered, but no member of the group is there to take it",
    Why.SETTLED: "the group is done with it, or began behind it",
    Why.DEAD_LETTERED: "the group gave it up: it is offset {dead_letter_offset} of partition "
    "{dead_letter_partition} of {dead_letter_topic}, {dead_letter_state} there: {reason}",
    Why.LEASED: "{member} holds it for another {left_ms} ms",
    Why.WAITING: "it waits another {left_ms} ms after failure {failures}: {reason}",
    Why.SUSPECT: "its member vanished; it is delivered alone, to a member that holds nothing else",
    Why.PARKED: "the group gave it up; it stays here until an operator redrives or resolves it: "
    "{reason}",
    Why.BEHIND_RECORD: "record {behind_offset} of its partition comes first, which is {behind_why}",
    Why.BEHIND_KEY: "record {behind_offset} of its key comes first, which is {behind_why}",
    Why.HELD: "the dead letter from offset {behind_offset} holds it until that is resolved",
    Why.WINDOW_FULL: "as many records are open as `max_unsettled` allows",
    Why.KEY_UNKNOWN: "nobody has asked for records that far yet",
    Why.BELOW_START: "it was removed, or the log began behind it",
    Why.BEYOND_END: "it is not written yet, or cannot be read yet",
}
assert set(SENTENCES) == set(Why), "each has its sentence"
