"""Who is a member of which group: joins and ends, and what becomes of leases then."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from logbroker.broker.beginning import Beginning, check_order
from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.groups import Groups
from logbroker.broker.holding import Holding
from logbroker.broker.leasing import Leasing
from logbroker.broker.live_group import LiveGroup
from logbroker.broker.member import Member
from logbroker.broker.ownership import Ownership
from logbroker.broker.settle import Settle
from logbroker.errors import ConflictError, InvalidError, LogbrokerError, NotFoundError
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.settings import GroupSettings, Order
from logbroker.limits import RESPONSE_BYTES
from logbroker.topic.names import check_label
from logbroker.topic.topic import Topic

FIELDS_BYTES = 64 << 10
"""The room in a ConsumeResponse for everything but its batches."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSpec:
    """Who wants to join."""

    group: str
    topics: tuple[str, ...]
    settings: GroupSettings | None = None
    order: Order | None = None
    """What the member takes the group's order to be."""
    client_id: str = ""
    instance_id: str = ""
    max_records: int | None = None
    max_bytes: int | None = None
    max_response_bytes: int = 0

    def __post_init__(self) -> None:
        check_label("client_id", self.client_id)
        check_label("instance_id", self.instance_id)
        if self.max_response_bytes and self.max_response_bytes < 2 * FIELDS_BYTES:
            message = f"max_response_bytes must be at least {2 * FIELDS_BYTES}"
            raise InvalidError("INVALID_ARGUMENT", message, given=self.max_response_bytes)


class Membership:
    """The members of all groups."""

    def __init__(
        self,
        groups: Groups,
        beginning: Beginning,
        leasing: Leasing,
        settle: Settle,
        dead_letters: DeadLetters,
        heartbeat_ms: int,
    ) -> None:
        self._groups = groups
        self._beginning = beginning
        self._leasing = leasing
        self._settle = settle
        self._dead_letters = dead_letters
        self._heartbeat_ms = heartbeat_ms
        self._members: dict[str, dict[str, Member]] = {}
        """By group, then by name."""
        self.ownership = Ownership(groups, self.members)
        groups.journal.on_failure = self._end_all

    def members(self, group: str) -> list[Member]:
        """Returns the members of a group, the oldest first."""
        return list(self._members.get(group, {}).values())

    @property
    def count(self) -> int:
        """Returns how many members there are, of all groups."""
        return sum(map(len, self._members.values()))

    def groups_in_use(self) -> list[str]:
        """Returns the groups that have members."""
        return [group for group, members in self._members.items() if members]

    async def join(self, spec: MemberSpec) -> Member:
        """Returns a new member. Raises as `Beginning.begin` does, or for another order."""
        group, topics = await self._beginning.begin(spec.group, spec.topics, spec.settings)
        if spec.order and spec.order is not group.settings.order:
            check_order(group, GroupSettings(order=spec.order))
        live = self._groups.live_group(spec.group)
        name = f"{spec.client_id or 'member'}-{self._groups.new_token()}"
        topic_ids = frozenset(topic.topic_id for topic in topics)
        member = Member(
            self._groups,
            self._leasing,
            self._settle,
            spec.group,
            Holding(name, topic_ids, is_stream=True),
            client_id=spec.client_id,
            instance_id=spec.instance_id,
            response_bytes=(spec.max_response_bytes or RESPONSE_BYTES) - FIELDS_BYTES,
            heartbeat_ms=self._heartbeat_ms,
            on_return=lambda: self.ownership.gather(spec.group),
        )
        member.limit(spec.max_records, spec.max_bytes)
        self._fence_instance(spec)
        live.holdings[name] = member.holding
        self._members.setdefault(spec.group, {})[name] = member
        log.info("member joined", group=spec.group, member=name, instance=spec.instance_id)
        if live.order is Order.PARTITION:
            self.ownership.welcome(live, member)
        else:
            for ledger_id in live.ledgers_of(topic_ids):
                member.holding.look_into(ledger_id)
        return member

    async def leave(self, member: Member, *, has_vanished: bool) -> None:
        """Ends a member. What it holds is free: released or, where it vanished, suspect."""
        members = self._members.get(member.group, {})
        if members.pop(member.holding.name, None) is None:
            return
        if not members:
            del self._members[member.group]
        log.info(
            "member left", group=member.group, member=member.holding.name, vanished=has_vanished
        )
        live = self._groups.live.get(member.group)
        if live is None:
            return
        held = member.holding.record_count
        live.holdings.pop(member.holding.name, None)
        self.ownership.bid_farewell(live, member)
        try:
            await self._free(live, member, held, has_vanished=has_vanished)
        except LogbrokerError as error:  # then they expire
            log.warning("leases not freed", group=member.group, reason=error.reason)

    def refresh(self, group: str) -> None:
        """Lets members see new partitions."""
        live = self._groups.live.get(group)
        if live is None:
            return
        live.refresh()
        if live.order is Order.PARTITION:
            self.ownership.gather(group)
            return
        for member in self.members(group):
            for ledger_id in live.ledgers_of(member.holding.topic_ids):
                member.holding.look_into(ledger_id)

    def fence(self, group: str, failure: LogbrokerError) -> None:
        """Ends all members of a group, and calls that wait for its records."""
        for member in self.members(group):
            member.end(failure)
        if live := self._groups.live.get(group):
            for holding in live.holdings.values():
                holding.end(failure)

    def _end_all(self, failure: LogbrokerError) -> None:
        """Ends all members, and waits of calls, of all groups."""
        for group in list(self._groups.live):
            self.fence(group, failure)

    async def topic_grown(self, topic: Topic) -> None:
        """Starts the groups that read it in its new partitions."""
        for group in self._groups.state.catalog.reading(topic.topic_id):
            await self._beginning.start(group.group, topic)
            self.refresh(group.group)

    async def topic_deleted(self, topic: Topic) -> None:
        """Ends streams and calls that read it, and forgets what groups knew of it."""
        message = f"topic {topic.topic!r} is deleted"
        failure = NotFoundError("TOPIC_NOT_FOUND", message, topic=topic.topic)
        for group in list(self._members):
            for member in self.members(group):
                if topic.topic_id in member.holding.topic_ids:
                    member.end(failure)
        readers = self._groups.state.catalog.reading(topic.topic_id)
        await self._groups.forget_topic(topic.topic_id)
        for reader in readers:
            if live := self._groups.live.get(reader.group):
                for holding in live.holdings.values():
                    if topic.topic_id in holding.topic_ids:
                        holding.end(failure)

    def _fence_instance(self, spec: MemberSpec) -> None:
        for other in self.members(spec.group):
            if spec.instance_id and other.instance_id == spec.instance_id:
                message = f"another member has joined as instance {spec.instance_id!r}"
                other.end(ConflictError("MEMBER_FENCED", message, instance_id=spec.instance_id))
                self._drop(other)

    def _drop(self, member: Member) -> None:
        """Takes a fenced instance out at once; the one that comes takes its place."""
        live = self._groups.live_group(member.group)
        del self._members[member.group][member.holding.name]
        live.holdings.pop(member.holding.name, None)
        for ledger_id in live.ledgers_of(member.holding.topic_ids):
            self._groups.release(ledger_id, member.holding.name)
        self.ownership.replace(live, member)

    async def _free(
        self, live: LiveGroup, member: Member, held: int, *, has_vanished: bool
    ) -> None:
        name = member.holding.name
        groups = self._groups
        for ledger_id in live.ledgers_of(member.holding.topic_ids):
            ledger = groups.state.get(ledger_id)
            if ledger is None or not ledger.state.leases.count_of(name):
                continue
            if not has_vanished:
                groups.release(ledger_id, name)
                continue
            elsewhere = held - ledger.state.leases.count_of(name)
            decided = await self._dead_letters.decided(self._vanished(ledger_id, name, elsewhere))
            groups.commit(decided)

    def _vanished(
        self, ledger_id: LedgerId, name: str, elsewhere: int
    ) -> Callable[[], list[InLedger]]:
        groups = self._groups

        def decide() -> list[InLedger]:
            decided = groups.ledger(ledger_id).decide_vanish(
                name, groups.moment(), groups.random, held_elsewhere=elsewhere
            )
            return [InLedger(ledger_id, event) for event in decided]

        return decide
