"""Groups and their ledgers: what is decided is journaled, applied, and told to whom it concerns.

No `await` lies between a decision and its `commit`. Events whose answer must wait are
journaled at once; deliveries with the next of these, or a moment later. A journal that
refuses leaves everything as it was.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable, Coroutine, Sequence
from random import Random
from typing import Any

import structlog

from logbroker.broker.groups_journal import GroupsJournal
from logbroker.broker.ledger_timer import LedgerTimer
from logbroker.broker.live_effects import Answered, LiveEffects
from logbroker.broker.live_group import LiveGroup
from logbroker.broker.partitions import Partition, Partitions
from logbroker.broker.pending_letters import PendingLetters
from logbroker.clock import Clock
from logbroker.errors import LogbrokerError, NotFoundError, OffsetOutOfRangeError, UnavailableError
from logbroker.group.assignment import TopicPartition
from logbroker.group.commits import decide_lost_tail
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.group_events import TokensReserved
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import GivenUp, LedgerEvent, Moment, Released
from logbroker.group.ledger_state import ENDLESS
from logbroker.group.ledgers import Ledgers
from logbroker.storage.engine import Engine
from logbroker.topic.catalog import TopicCatalog

TOKENS_RESERVED_AT_ONCE = 1_000_000

log = structlog.get_logger()


class Groups:
    """The state of all groups, and the live ones among them."""

    def __init__(
        self,
        journal: GroupsJournal,
        topics: TopicCatalog,
        partitions: Partitions,
        clock: Clock,
        random: Random,
    ) -> None:
        self.state = Ledgers()
        self.live: dict[str, LiveGroup] = {}
        """Those that have had a member, or a lease, since the start."""
        self.topics = topics
        self.partitions = partitions
        self.clock = clock
        self.random = random
        self.timer = LedgerTimer(clock)
        self.letters = PendingLetters()
        self.on_letter: Callable[[], None] = lambda: None
        self.effects = LiveEffects(self.state, self.live, self.timer, self.partition)
        self.journal = journal
        self.decided_count = 0
        """Of commits: as long as it stays the same, so does what is decided."""
        self._next_token = 1
        self._tokens_end = 1
        """Tokens below are durably reserved."""
        self._tasks: asyncio.TaskGroup | None = None
        self._spawned: set[asyncio.Task[None]] = set()

    @classmethod
    async def open(
        cls, engine: Engine, topics: TopicCatalog, partitions: Partitions, clock: Clock
    ) -> "Groups":
        """Replays the journal. What was leased before is available."""
        journal = await GroupsJournal.open(engine, clock)
        groups = cls(journal, topics, partitions, clock, Random())
        now = groups.moment()
        for event in await journal.replay():
            if isinstance(event, InLedger):
                groups.letters.note(event, None, groups.state)
            else:
                groups.letters.forget(event)
            groups.state.apply(event, now)
        for ledger_id in groups.letters.ledger_ids():
            known = groups.state.get(ledger_id)
            written = known.state.counters.letters_written if known else ENDLESS
            groups.letters.remove_written(ledger_id, written)
        await groups.forget_lost_topics()
        groups._next_token = groups.state.catalog.reserved_end
        await groups._reserve_tokens()
        await groups._step_back()
        for ledger_id, ledger in groups.state.all().items():
            groups.timer.arm(ledger_id, ledger.next_deadline_ms())
        return groups

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begins to watch the time; `tasks` takes what runs in the background from now on."""
        self._tasks = tasks
        self.journal.start(self.spawn)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs work in the background, until it is done or the broker stops."""
        assert self._tasks, "groups have started"
        task = self._tasks.create_task(work)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)
        return task

    def stop(self) -> None:
        """Ends what runs in the background."""
        for task in self._spawned:
            task.cancel()

    async def close(self) -> None:
        """Writes what may be written later, and shortens the journal if that is worth it."""
        self.journal.flush()
        if self.journal.wants_snapshot:
            await self.journal.shorten(self._known)

    def moment(self) -> Moment:
        """Returns now."""
        return Moment(self.clock.monotonic_ms(), self.clock.now_ms())

    def check(self) -> None:
        """Raises UnavailableError (STORAGE_FAILED) once the journal has failed, for good."""
        if self.journal.failure:
            raise self.journal.failure.again()

    # Who is who

    def ledger(self, ledger_id: LedgerId) -> Ledger:
        """Returns a ledger; NotFoundError where the group, or its topic, is gone."""
        found = self.state.get(ledger_id)
        if found is None:
            message = f"group {ledger_id.group!r} does not read this partition"
            raise NotFoundError("PARTITION_NOT_FOUND", message, partition=ledger_id.partition)
        return found

    def partition(self, ledger_id: LedgerId) -> Partition:
        """Returns the partition a ledger is of; NotFoundError where its topic is gone."""
        found = self.partitions.find(ledger_id.topic_id, ledger_id.partition)
        if found is not None:
            return found
        topic = self.topics.find(ledger_id.topic_id)
        if topic is None:
            message = f"topic {ledger_id.topic_id} is gone"
            raise NotFoundError("TOPIC_NOT_FOUND", message, topic_id=ledger_id.topic_id)
        return self.partitions.get(topic.partition(ledger_id.partition))

    def is_damaged(self, ledger_id: LedgerId) -> bool:
        """Returns whether the partition a ledger is of waits for an operator (TOPIC_DAMAGED)."""
        try:
            self.partition(ledger_id)
        except LogbrokerError as error:
            return error.reason == "TOPIC_DAMAGED"
        return False

    def live_group(self, group: str) -> LiveGroup:
        """Returns the live part of a group that is there."""
        found = self.live.get(group)
        if found is None:
            self.state.catalog.get(group)
            found = self.live[group] = LiveGroup(group, self.state, self.topics)
        return found

    def new_token(self) -> int:
        """Returns a token that no lease ever had."""
        token = self._next_token
        if token >= self._tokens_end:
            raise UnavailableError("STORAGE_FAILED", "the journal of groups is behind")
        self._next_token += 1
        if self._tokens_end - self._next_token == TOKENS_RESERVED_AT_ONCE // 2:
            self.spawn(self._try_reserve_tokens())
        return token

    def watch(self, ledger_id: LedgerId) -> int | None:
        """Sees to it that those concerned look into the ledger when there is more to read.

        Returns the high watermark now; None where the partition is gone.
        """
        live = self.live_group(ledger_id.group)
        try:
            partition_log = self.partition(ledger_id).log
            mark = partition_log.bounds().high_watermark
            if ledger_id not in live.watched:
                partition_log.call_beyond(mark, live.watching(ledger_id))
        except LogbrokerError:
            return None
        return mark

    # Changing

    def commit(
        self,
        decided: Sequence[Event],
        answered: Answered | None = None,
        now: Moment | None = None,
    ) -> "Future[Any]":
        """Journals and applies events; what it returns is done once they are as durable as need be.

        So is then what was decided before: an answer that changes nothing may rest on that.
        `now` is for who has just asked.
        Raises what the journal does, and nothing has changed then.
        """
        done = self.journal.keep(decided)
        self.decided_count += 1
        now = now or self.moment()
        effects, note_letter = self.effects, self.letters.note
        tried = []
        for event in decided:
            if isinstance(event, InLedger):
                letter = note_letter(event, done, self.state)
                effects.apply(event, now, answered)
                if isinstance(event.event, GivenUp):
                    effects.say_given_up(event.ledger, event.event)
                if letter:
                    tried.append(letter.is_tried)
            else:
                self._forget_letters(event)
                self.state.apply(event, now)
        if self.journal.wants_snapshot:
            self.journal.shorten_soon(self._known)
        if tried:
            self.on_letter()
            all_done = asyncio.gather(done, *tried)
            all_done.add_done_callback(_seen)  # the journal says why; not all callers wait
            return all_done
        return done

    def commit_in(
        self,
        ledger_id: LedgerId,
        decided: Sequence[LedgerEvent],
        answered: Answered | None = None,
        now: Moment | None = None,
    ) -> "Future[Any]":
        """Does the same for events of one ledger."""
        return self.commit([InLedger(ledger_id, event) for event in decided], answered, now)

    def release(self, ledger_id: LedgerId, member: str) -> None:
        """Gives back all that a member holds of a ledger, uncounted."""
        ledger = self.state.get(ledger_id)
        if ledger and (released := ledger.decide_release(member)):
            self.commit_in(ledger_id, released)

    async def forget_lost_topics(self) -> None:
        """Drops what is known of topics that are not there any more."""
        known = {
            topic_id: name
            for group in self.state.catalog.groups()
            for topic in group.topics
            for topic_id, name in (
                (topic.topic_id, topic.topic),
                (topic.dead_letter_topic_id, topic.dead_letter_topic),
            )
        }
        for topic_id, name in known.items():
            is_lost = topic_id and not self.topics.find(topic_id)
            if is_lost and name not in self.topics.damaged_topics:
                await self.forget_topic(topic_id)

    async def forget_topic(self, topic_id: str) -> None:
        """Drops what is known of a topic that is deleted: read by groups, or of dead letters."""
        catalog = self.state.catalog
        concerned = [
            group.group
            for group in catalog.groups()
            if any(topic_id in (one.topic_id, one.dead_letter_topic_id) for one in group.topics)
        ]
        events: list[Event] = []
        places: list[tuple[LiveGroup, TopicPartition]] = []
        for name in concerned:
            live = self.live.get(name)
            for ledger_id, ledger in self.state.of(name, topic_id).items():
                if not ledger.state.is_parked_from_birth:
                    continue  # who reads it is told that it is gone
                if live:
                    places.append((live, live.place_of(ledger_id)))
                self.effects.on_resolved(ledger_id)
                for lease in ledger.state.leases.all():  # so that members have room again
                    released = Released(lease.token, tuple(lease.held.ranges()))
                    events.append(InLedger(ledger_id, released))
        events += [*catalog.decide_unlink(topic_id), *catalog.decide_forget_topic(topic_id)]
        done = self.commit(events)
        for name in concerned:
            if live := self.live.get(name):
                live.refresh()
        for live, place in places:  # nobody waits for its dead letters any more
            for ledger_id in live.of_partition(place):
                live.look_into(ledger_id)
        await done

    async def _step_back(self) -> None:
        """Lets no group be ahead of a log that lost its tail: it would miss what comes there."""
        decided = []
        for ledger_id, ledger in self.state.all().items():
            if ledger.state.is_parked_from_birth:
                continue
            known = max(ledger.state.committed, ledger.state.delivered_end)
            try:
                start, end, _ = self.partition(ledger_id).log.bounds()
                events_here = decide_lost_tail(ledger, start, end)
            except OffsetOutOfRangeError as error:
                log.error("group is ahead of its log", ledger=ledger_id, error=str(error))
                continue
            except LogbrokerError:  # it could not be opened, which was said
                continue
            if events_here:
                decided += [InLedger(ledger_id, event) for event in events_here]
                log.error("group was ahead of its log", ledger=ledger_id, offset=known, end=end)
        await self.commit(decided)

    def _forget_letters(self, event: Event) -> None:
        gone = self.letters.forget(event)
        if gone and self._tasks:
            name, why = gone[0].ledger_id.group, type(event).__name__
            log.error("dead letters not written, and lost", group=name, why=why, count=len(gone))

    def _known(self) -> list[Event]:
        """Returns what a snapshot says: of dead letters under way, too."""
        return [*self.state.snapshot(), *self.letters.events()]

    async def _reserve_tokens(self) -> None:
        end = self._next_token + TOKENS_RESERVED_AT_ONCE
        await self.commit([TokensReserved(end)])
        self._tokens_end = end

    async def _try_reserve_tokens(self) -> None:
        try:
            await self._reserve_tokens()
        except LogbrokerError as error:
            log.warning("tokens not reserved", reason=error.reason)


def _seen(done: "Future[Any]") -> None:
    if not done.cancelled():
        done.exception()
