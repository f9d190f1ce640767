"""One Consume stream: what it is told, what is delivered to it, its end.

The stream asks for what comes `next`, again and again, and passes on what the client sends.
Answers to settlements and extensions come in the order of the requests, each once it is true.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from logbroker.broker.groups import Groups
from logbroker.broker.holding import Holding, TakenBack
from logbroker.broker.leasing import Delivery, Leasing, Limits, is_worthwhile, share_of
from logbroker.broker.settle import Settle, Settled, Settlement, SettleResult
from logbroker.errors import InvalidError, LogbrokerError
from logbroker.group.assignment import TopicPartition
from logbroker.group.events import LedgerId
from logbroker.group.progress import has_nothing_to_give
from logbroker.group.record_state import Cause
from logbroker.group.settings import GroupSettings, Order

MAX_RECORDS = 1_000
MAX_BYTES = 16 << 20
CAUGHT_UP_DELAY_MS = 30
"""So long what it is told may wait for an answer to go with, while the client holds records."""


class Joined(NamedTuple):
    """Who the member is, and what its group is set to."""

    member_id: str
    settings: GroupSettings


class News(NamedTuple):
    """What a member is told besides deliveries; nothing at all: that the stream lives."""

    joined: Joined | None = None
    assigned: tuple[tuple[str, int], ...] | None = None
    """Topics and partitions: all that is its own now."""
    taken_back: tuple[TakenBack, ...] = ()
    settled: tuple[SettleResult, ...] = ()
    extended: tuple[LogbrokerError | None, ...] = ()
    caught_up: tuple[tuple[str, int], ...] = ()

    @property
    def goes_ahead(self) -> bool:
        """Returns whether the client must know it before it gets more."""
        return self.joined is not None or self.assigned is not None or bool(self.taken_back)


NOTHING = News()


class Answer(NamedTuple):
    """What became of settlements, and where records may come again by them."""

    settled: Settled
    reopened: tuple[TopicPartition, ...]


class Member:
    """Made by `Membership.join`."""

    def __init__(
        self,
        groups: Groups,
        leasing: Leasing,
        settle: Settle,
        group: str,
        holding: Holding,
        *,
        client_id: str,
        instance_id: str,
        response_bytes: int,
        heartbeat_ms: int,
        on_return: Callable[[], None],
    ) -> None:
        self.group = group
        self.holding = holding
        self.client_id = client_id
        self.instance_id = instance_id
        self.joined_ms = groups.clock.now_ms()
        self.max_records = MAX_RECORDS
        self.max_bytes = MAX_BYTES
        self.heard_ms = groups.clock.monotonic_ms()
        """When it last settled, extended, or asked for more."""
        self.late_in: set[TopicPartition] = set()
        """Where it has let a lease run out."""
        self.is_silent = False
        """It has let a lease run out, and was not heard since; `on_return` is called then."""
        self.failure: LogbrokerError | None = None
        """What the stream ends with."""
        self._groups = groups
        self._live = groups.live_group(group)
        self._leasing = leasing
        self._settle = settle
        self._response_bytes = response_bytes
        self._heartbeat_ms = heartbeat_ms
        self._on_return = on_return
        settings = groups.state.catalog.get(group).settings
        self._joined: Joined | None = Joined(holding.name, settings)
        self._assigned: tuple[TopicPartition, ...] | None = None
        self._answers: deque[Answer | list[LogbrokerError | None]] = deque()
        self._caught_up: set[TopicPartition] = set()
        """Where all was delivered."""
        self._untold: dict[TopicPartition, None] = {}
        """Of these, where the client has not been told so."""
        self._tell_at_ms = 0
        """When it is told at the latest, by the monotonic clock."""
        self._delivered_from: LedgerId | None = None
        """Where the last delivery is from, until it is known whether that was all."""

    @property
    def called(self) -> str:
        """Returns what its partitions belong to: the instance, or this stream alone.

        They cannot be taken for one another: the name of a stream is printable.
        """
        return f"\0{self.instance_id}" if self.instance_id else self.holding.name

    # What the client says

    def limit(self, max_records: int | None, max_bytes: int | None) -> None:
        """Changes how much may be outstanding; None: the default."""
        records = MAX_RECORDS if max_records is None else max_records
        size = MAX_BYTES if max_bytes is None else max_bytes
        if records < 0 or size < 0:
            raise InvalidError("INVALID_ARGUMENT", "limits must be at least 0")
        self.max_records, self.max_bytes = records, size
        if records:
            self._hear()
        self.holding.has_news.set()

    async def settle(self, settlements: list[Settlement]) -> None:
        """Takes answers; what becomes of them comes with `next`."""
        self._hear()
        tokens = [one.token for one in settlements if one.cause is not Cause.ACKNOWLEDGE]
        found = dict.fromkeys(self._live.ledger_of(token) for token in tokens)
        reopened = tuple(self._live.place_of(ledger_id) for ledger_id in found if ledger_id)
        settled = await self._settle.settle(self.group, settlements, self.holding.name)
        self._answers.append(Answer(settled, reopened))
        settled.call_when_done(self.holding.has_news)
        self.holding.has_news.set()

    def extend(self, extensions: list[tuple[int, int]]) -> None:
        """Moves deadlines; what becomes of them comes with `next`."""
        self._hear()
        self._answers.append(self._settle.extend(self.group, extensions, self.holding.name))
        self.holding.has_news.set()

    # What the broker says

    def assign(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Tells it all that is its own now."""
        self._assigned = partitions
        for place in self._caught_up - set(partitions):
            self._forget_caught_up(place)  # so does the client
        self.holding.has_news.set()

    def end(self, failure: LogbrokerError) -> None:
        """Ends the stream with this error."""
        self.failure = self.failure or failure
        self.holding.has_news.set()

    async def next(self) -> tuple[News, Delivery | None]:
        """Returns what to tell the client next, once there is anything, or a heartbeat is due.

        Answers go with a delivery where there is one; what concerns leases goes before it.
        Whether a delivery was all there is, is looked into once that is on its way. Raises
        what the stream ends with.
        """
        if self._delivered_from and not self.failure:
            self._look_behind(self._delivered_from)
        while True:
            self.holding.has_news.clear()
            if self.failure:
                raise self.failure.again()
            news = self._news()
            if news.goes_ahead:
                return news, None
            try:
                delivery = await self._lease()
            except LogbrokerError as error:
                self.end(error)
                delivery = None
            if delivery:
                return self._with_caught_up(news), delivery
            if news is not NOTHING:
                return self._with_caught_up(news), None
            if self.failure:
                continue
            wait_ms = self._heartbeat_ms
            if self._untold:
                wait_ms = self._tell_at_ms - self._groups.clock.monotonic_ms()
                if wait_ms <= 0 or not (self.holding.record_count or self._answers):
                    return self._with_caught_up(NOTHING), None
            try:
                waiting = self.holding.has_news.wait()
                await self._groups.clock.wait_for(waiting, wait_ms)
            except TimeoutError:
                return self._with_caught_up(NOTHING), None

    def _hear(self) -> None:
        self.heard_ms = self._groups.clock.monotonic_ms()
        if self.is_silent:
            self.is_silent = False
            self._on_return()

    def _news(self) -> News:
        """Returns what there is to tell; NOTHING itself where that is nothing."""
        told = self._joined, self.holding.taken_back, self._answers
        if self._assigned is None and not any(told):
            return NOTHING
        joined, self._joined = self._joined, None
        assigned, self._assigned = self._assigned, None
        taken_back, self.holding.taken_back = self.holding.taken_back, []
        settled: list[SettleResult] = []
        extended: list[LogbrokerError | None] = []
        while self._answers:
            first = self._answers[0]
            if isinstance(first, Answer):
                if not first.settled.is_done:
                    break
                settled += first.settled.results()
                self._reopen(first.reopened)
            else:
                extended += first
            self._answers.popleft()
        self._reopen(one.place for one in taken_back)
        news = News(
            joined,
            None if assigned is None else self._named(assigned),
            tuple(taken_back),
            tuple(settled),
            tuple(extended),
        )
        return NOTHING if news == NOTHING else news

    def _with_caught_up(self, news: News) -> News:
        """Returns news that tell also which partitions are caught up, if some are since then."""
        if not self._untold:
            return news
        for ledger_id in self.holding.ledgers:  # there is more by now
            self._forget_caught_up(self._live.place_of(ledger_id))
        untold, self._untold = self._untold, {}
        return news._replace(caught_up=self._named(untold)) if untold else news

    async def _lease(self) -> Delivery | None:
        """Returns the next delivery, from one ledger after the other."""
        holding = self.holding
        tried: set[LedgerId] = set()
        while True:
            ledger_id = self._next_ledger()
            if ledger_id is None or ledger_id in tried or (room := self._room()) is None:
                return None
            tried.add(ledger_id)
            holding.forget(ledger_id)
            delivery = await self._leasing.lease(ledger_id, holding, room)
            if delivery:
                self._forget_caught_up(self._live.place_of(ledger_id))
                holding.forget(ledger_id)
                self._delivered_from = ledger_id
                return delivery
            if self._has_given_all(ledger_id):
                self._note_given(ledger_id)
            else:
                self._forget_caught_up(self._live.place_of(ledger_id))

    def _look_behind(self, ledger_id: LedgerId) -> None:
        """Finds out whether a delivery from a ledger was all there is."""
        self._delivered_from = None
        if self._has_given_all(ledger_id):
            self._note_given(ledger_id)
        else:
            self.holding.look_into(ledger_id)

    def _next_ledger(self) -> LedgerId | None:
        """Returns where to look next; None: nowhere, or not while it holds anything."""
        if self._live.has_suspects:
            suspects = self._live.suspects_for(self.holding)
            if suspects is not None:
                return None if self.holding.record_count else suspects
        for ledger_id in self.holding.ledgers:
            return ledger_id
        return None

    def _room(self) -> Limits | None:
        """Returns how much may go now; None: nothing."""
        holding = self.holding
        records = self.max_records - holding.record_count
        size = self.max_bytes - holding.byte_count
        if holding.suspects or records < 1:
            return None
        if size < 1 and (holding.byte_count or not self.max_bytes):
            return None
        if not is_worthwhile(records, self.max_records, holding.record_count):
            return None
        return Limits(min(records, share_of(self.max_records)), size, self._response_bytes)

    def _note_given(self, ledger_id: LedgerId) -> None:
        """Takes note that all of a ledger was delivered: perhaps its partition is caught up."""
        live = self._live
        place = live.place_of(ledger_id)
        if place in self._caught_up or not live.may_take(self.holding, ledger_id):
            return
        for one in live.of_partition(place):
            if one != ledger_id and not self._has_given_all(one):
                return
        self._caught_up.add(place)
        if not self._untold:
            self._tell_at_ms = self._groups.clock.monotonic_ms() + CAUGHT_UP_DELAY_MS
        self._untold[place] = None

    def _has_given_all(self, ledger_id: LedgerId) -> bool:
        """Returns whether all was delivered, and sees to it that more is noticed."""
        mark = self._groups.watch(ledger_id)
        ledger = self._groups.state.get(ledger_id)
        if ledger is None or mark is None:
            is_ours = ledger_id.topic_id in self.holding.topic_ids
            return not is_ours or self._groups.is_damaged(ledger_id)
        if ledger_id in self.holding.ledgers:
            return False
        if ledger.settings.order is not Order.NONE:
            return has_nothing_to_give(ledger, mark)
        if ledger.state.is_parked_from_birth:
            return ledger.state.taken.next_gap(ledger.state.committed) >= mark
        return ledger.state.delivered_end >= mark

    def _reopen(self, places: Iterable[TopicPartition]) -> None:
        """Takes note that the client no longer takes partitions to be caught up."""
        live = self._live
        for place in places:
            self._forget_caught_up(place)
            for ledger_id in live.of_partition(place)[:1]:  # all of them are thought of then
                if live.may_take(self.holding, ledger_id):
                    self.holding.look_into(ledger_id)

    def _forget_caught_up(self, place: TopicPartition) -> None:
        self._caught_up.discard(place)
        self._untold.pop(place, None)

    def _named(self, partitions: Iterable[TopicPartition]) -> tuple[tuple[str, int], ...]:
        find = self._groups.topics.find
        found = [(find(one.topic_id), one.partition) for one in partitions]
        return tuple([(topic.topic, partition) for topic, partition in found if topic])
