"""The living part of a group: who takes records now, and in `partition` order which of them whose.

in `partition` order a ledger is looked into by the owner of its partition alone, and by
`Lease` calls where it has none; in the other orders by whoever wants its topic
a dead-letter partition belongs to whom its source partition belongs
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from logbroker.broker.holding import Holding, TakenBack
from logbroker.group import assignment
from logbroker.group.assignment import Assignment, TopicPartition
from logbroker.group.dispatch import next_suspect
from logbroker.group.group import TopicRead
from logbroker.group.group_events import LedgerId
from logbroker.group.ledgers import Ledgers
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import Range
from logbroker.topic.catalog import TopicCatalog

FEW_TOKENS = 1_000
"""Up to so many it is not looked which of them nobody remembers."""


class Sizes(NamedTuple):
    """What to expect of the next ones."""

    record_bytes: int
    """On the average, with the share of its batch."""
    batch_bytes: int
    """Of the largest batch."""


class LiveGroup:
    """Who holds what, by name; whose is which token."""

    def __init__(self, group: str, state: Ledgers, topics: TopicCatalog) -> None:
        self.group = group
        self.holdings: dict[str, Holding] = {}
        self.assignment: Assignment = {}
        """In `partition` order: by member, or by instance id."""
        self.owners: dict[TopicPartition, str] = {}
        """The same, the other way round, by the names of those who are here."""
        self.watched: set[LedgerId] = set()
        """Where somebody waits for the high watermark to move."""
        self.order = Order.PARTITION
        self.sizes: dict[LedgerId, Sizes] = {}
        """Of what was last read for a ledger."""
        self._state = state
        self._topics = topics
        self._read: dict[str, TopicRead] = {}
        """What the group reads, by the ids of topics and of their dead-letter topics."""
        self._ledgers: dict[str, list[LedgerId]] = {}
        """By topic, those of its dead-letter topic among them."""
        self._by_place: dict[TopicPartition, list[LedgerId]] = {}
        self._places: dict[LedgerId, TopicPartition] = {}
        """The same, the other way round."""
        self._with_suspects: dict[LedgerId, None] = {}
        """In the order in which they had one: a set of them would be in another at each start."""
        self._ledger_ids: dict[int, LedgerId] = {}
        """By token."""
        self._prune_at = FEW_TOKENS
        self.refresh()

    def refresh(self) -> None:
        """Takes note of what the group reads, and how, after that has changed."""
        group = self._state.catalog.get(self.group)
        self.order = group.settings.order
        self._read = {topic.topic_id: topic for topic in group.topics}
        self._read |= {
            topic.dead_letter_topic_id: topic
            for topic in group.topics
            if topic.dead_letter_topic_id
        }
        self._ledgers = {topic.topic_id: [] for topic in group.topics}
        self._by_place, self._places = {}, {}
        self.sizes.clear()
        for ledger_id in self._state.of(self.group):
            place = self._places[ledger_id] = self.place_of(ledger_id)
            self._ledgers.setdefault(place.topic_id, []).append(ledger_id)
            self._by_place.setdefault(place, []).append(ledger_id)
            ledger = self._state.get(ledger_id)
            if ledger and ledger.state.suspects:
                self._with_suspects[ledger_id] = None

    def ledger_of(self, token: int) -> LedgerId | None:
        """Returns where a lease is, or was not too long ago."""
        return self._ledger_ids.get(token)

    def topic_read(self, topic_id: str) -> TopicRead | None:
        """Returns what the group reads of this id, or with dead letters in the topic of this id."""
        return self._read.get(topic_id)

    def source_of(self, topic_id: str) -> str:
        """Returns the topic whose dead letters are in this one; itself if it is no such topic."""
        found = self._read.get(topic_id)
        return found.topic_id if found else topic_id

    def ledgers_of(self, topic_ids: Iterable[str]) -> list[LedgerId]:
        """Returns the ledgers of topics and of their dead-letter topics."""
        return [one for topic_id in topic_ids for one in self._ledgers.get(topic_id, ())]

    def place_of(self, ledger_id: LedgerId) -> TopicPartition:
        """Returns the partition a ledger is of, or the one its dead letters come from."""
        known = self._places.get(ledger_id)
        return known or TopicPartition(self.source_of(ledger_id.topic_id), ledger_id.partition)

    def owner_of(self, ledger_id: LedgerId) -> str | None:
        """Returns whose it is, in `partition` order; None: nobody's."""
        return self.owners.get(self.place_of(ledger_id))

    def may_take(self, holding: Holding, ledger_id: LedgerId) -> bool:
        """Returns whether it is here, and this ledger is one of its own."""
        place = self.place_of(ledger_id)
        is_here = self.holdings.get(holding.name) is holding
        if not is_here or place.topic_id not in holding.topic_ids:
            return False
        if self.order is not Order.PARTITION:
            return True
        return self.owners.get(place) == (holding.name if holding.is_stream else None)

    def look_into(self, ledger_id: LedgerId) -> None:
        """Tells those whose ledger this is that there may be something."""
        ledger = self._state.get(ledger_id)
        if ledger and ledger.state.suspects:
            self._with_suspects[ledger_id] = None
        if self.order is Order.PARTITION:
            owner = self.owner_of(ledger_id)
            if owner is not None:
                if holding := self.holdings.get(owner):
                    holding.look_into(ledger_id)
                return
        for holding in self.holdings.values():
            if self.may_take(holding, ledger_id):
                holding.look_into(ledger_id)

    def watching(self, ledger_id: LedgerId) -> Callable[[], None]:
        """Returns what to call, once, when there may be more in the log of this ledger."""

        def look() -> None:
            self.watched.discard(ledger_id)
            self.look_into(ledger_id)

        self.watched.add(ledger_id)
        return look

    @property
    def has_suspects(self) -> bool:
        """Returns whether there is any ledger to ask `suspects_for` about."""
        return bool(self._with_suspects)

    def suspects_for(self, holding: Holding) -> LedgerId | None:
        """Returns where a suspect waits for this one, which must hold nothing when it gets it.

        Of those who hold something that is the one who holds least, and gets nothing more until
        it is free: else suspects would wait for ever where there is always something to do.
        """
        for ledger_id in list(self._with_suspects):
            ledger = self._state.get(ledger_id)
            if not ledger or not ledger.state.marks:
                del self._with_suspects[ledger_id]
            elif (
                ledger.state.suspects
                and self.may_take(holding, ledger_id)
                and next_suspect(ledger.state, self.order) is not None
                and (not holding.record_count or self._is_nearly_free(holding, ledger_id))
            ):
                return ledger_id
        return None

    def _is_nearly_free(self, holding: Holding, ledger_id: LedgerId) -> bool:
        busy = (one for one in self.holdings.values() if one.record_count)
        able = (one for one in busy if self.may_take(one, ledger_id))
        return holding is min(able, key=lambda one: one.record_count)

    # What becomes of leases

    def granted(
        self, ledger_id: LedgerId, token: int, name: str, record_count: int, *, is_suspect: bool
    ) -> None:
        """Takes note of a lease."""
        if len(self._ledger_ids) >= self._prune_at:
            self._prune()
        self._ledger_ids[token] = ledger_id
        if holding := self.holdings.get(name):
            holding.granted(token, record_count, is_suspect=is_suspect)
        if is_suspect:  # nobody else need be free for it
            for other in self.holdings.values():
                other.has_news.set()

    def gave(self, name: str, token: int, record_count: int, *, is_over: bool) -> None:
        """Takes note that a lease holds less."""
        holding = self.holdings.get(name)
        if holding is None:
            return
        holding.gave(token, record_count, is_over=is_over)

    def take_back(
        self, name: str, ledger_id: LedgerId, token: int, ranges: Sequence[Range]
    ) -> None:
        """Tells a member that it does not hold these any more."""
        if holding := self.holdings.get(name):
            taken_back = TakenBack(self.place_of(ledger_id), token, tuple(ranges))
            holding.taken_back.append(taken_back)
            holding.has_news.set()

    # Assignment

    def assign(
        self, members: Iterable[assignment.Member], here: dict[str, str]
    ) -> dict[str, tuple[list[TopicPartition], tuple[TopicPartition, ...]]]:
        """Balances; returns by name what is revoked from it, and what is its own now.

        `here` gives the names of those who are here by what `members` call them. Whoever is
        expected back keeps what it owns, which waits for it.
        """
        counts = {
            topic.topic_id: found.partition_count
            for topic in self._state.catalog.get(self.group).topics
            if (found := self._topics.find(topic.topic_id))
        }
        before = self.assignment
        self.assignment = assignment.assign(members, counts, before)
        self.owners = {
            one: here.get(called, "") for called, mine in self.assignment.items() for one in mine
        }
        changed = {}
        for called, mine in self.assignment.items():
            old = before.get(called)
            if called in here and (old is None or set(old) != set(mine)):
                changed[here[called]] = (sorted(set(old or ()) - set(mine)), mine)
        return changed

    def of_partition(self, one: TopicPartition) -> list[LedgerId]:
        """Returns the ledgers of a partition and of its dead letters."""
        return self._by_place.get(one, [])

    def _prune(self) -> None:
        """Forgets the tokens of leases that their ledgers have forgotten."""
        known: dict[int, LedgerId] = {}
        for token, ledger_id in self._ledger_ids.items():
            ledger = self._state.get(ledger_id)
            if ledger and ledger.state.leases.knows(token):
                known[token] = ledger_id
        self._ledger_ids = known
        self._prune_at = 2 * len(known) + FEW_TOKENS
