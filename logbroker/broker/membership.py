"""Who is a member of which group: joins, ends, and in `partition` order whose is which partition.

Joins and ends within a short window are one change of the assignment. What moves is taken
back first: its leases are free before anybody else may have it. An instance that may come
back within `lease_ms` keeps its partitions meanwhile.
"""

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
from logbroker.broker.settle import Settle
from logbroker.errors import ConflictError, InvalidError, LogbrokerError, NotFoundError
from logbroker.group import assignment
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.settings import GroupSettings, Order
from logbroker.limits import RESPONSE_BYTES
from logbroker.topic.names import check_label
from logbroker.topic.topic import Topic

GATHER_MS = 150
"""How long joins and ends are gathered."""
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
        self._away: dict[str, dict[str, tuple[int, frozenset[str]]]] = {}
        """By group, instances that may come back: until when, and what they read."""
        self._gathering: set[str] = set()

    def members(self, group: str) -> list[Member]:
        """Returns the members of a group, the oldest first."""
        return list(self._members.get(group, {}).values())

    def assignment_of(self, member: Member) -> list[tuple[str, int]]:
        """Returns topics and partitions that belong to it, in `partition` order."""
        live = self._groups.live.get(member.group)
        if live is None:
            return []
        owned = [one for one, owner in live.owners.items() if owner == member.holding.name]
        topics = self._groups.topics
        return [
            (topic.topic, one.partition)
            for one in sorted(owned)
            if (topic := topics.find(one.topic_id))
        ]

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
        )
        member.limit(spec.max_records, spec.max_bytes)
        self._fence_instance(spec)
        live.holdings[name] = member.holding
        self._members.setdefault(spec.group, {})[name] = member
        log.info("member joined", group=spec.group, member=name, instance=spec.instance_id)
        if live.order is not Order.PARTITION:
            for ledger_id in live.ledgers_of(topic_ids):
                member.holding.look_into(ledger_id)
            return member
        away = self._away.get(spec.group, {}).pop(member.called, None)
        if away and away[1] == topic_ids and member.called in live.assignment:
            mine = live.assignment[member.called]
            for one in mine:
                live.owners[one] = name
                for ledger_id in live.of_partition(one):
                    member.holding.look_into(ledger_id)
            member.assign(mine)
        else:
            self._gather(spec.group)
        return member

    async def leave(self, member: Member, *, has_vanished: bool) -> None:
        """Ends a member. What it holds is free: released or, where it vanished, suspect."""
        members = self._members.get(member.group, {})
        if members.pop(member.holding.name, None) is None:
            return
        log.info(
            "member left", group=member.group, member=member.holding.name, vanished=has_vanished
        )
        live = self._groups.live.get(member.group)
        if live is None:
            return
        held = member.holding.record_count
        live.holdings.pop(member.holding.name, None)
        for one in [one for one, owner in live.owners.items() if owner == member.holding.name]:
            live.owners[one] = ""
        if live.order is Order.PARTITION:
            self._keep_place(live, member)
        try:
            await self._free(live, member, held, has_vanished=has_vanished)
        except LogbrokerError as error:  # then they expire
            log.warning("leases not freed", group=member.group, reason=error.reason)

    def rebalance(self, group: str) -> None:
        """Assigns the partitions of a group anew, now."""
        live = self._groups.live.get(group)
        if live is None or live.order is not Order.PARTITION:
            return
        members = {member.called: member for member in self.members(group)}
        wanting = [
            assignment.Member(called, member.holding.topic_ids)
            for called, member in members.items()
        ]
        wanting += [
            assignment.Member(called, topic_ids)
            for called, (_, topic_ids) in self._away.get(group, {}).items()
        ]
        here = {called: member.holding.name for called, member in members.items()}
        for name, (revoked, mine) in live.assign(wanting, here).items():
            member = self._members[group][name]
            for one in revoked:
                for ledger_id in live.of_partition(one):
                    self._release(ledger_id, name)
                    member.holding.forget(ledger_id)
            member.assign(mine)
        for one, owner in live.owners.items():
            if owner:
                for ledger_id in live.of_partition(one):
                    live.holdings[owner].look_into(ledger_id)
        log.info("assignment changed", group=group, member_count=len(members))

    def refresh(self, group: str) -> None:
        """Lets members see new partitions."""
        live = self._groups.live.get(group)
        if live is None:
            return
        live.refresh()
        if live.order is Order.PARTITION:
            self._gather(group)
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
            self._release(ledger_id, member.holding.name)
        if live.order is Order.PARTITION:
            self._away.setdefault(member.group, {})[member.called] = (
                self._groups.clock.monotonic_ms(),
                member.holding.topic_ids,
            )

    def _release(self, ledger_id: LedgerId, name: str) -> None:
        ledger = self._groups.state.get(ledger_id)
        if ledger and (released := ledger.decide_release(name)):
            self._groups.commit_in(ledger_id, released)

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
                self._release(ledger_id, name)
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

    def _keep_place(self, live: LiveGroup, member: Member) -> None:
        if not member.instance_id:
            self._gather(member.group)
            return
        lease_ms = self._groups.state.catalog.get(member.group).settings.lease_ms
        until_ms = self._groups.clock.monotonic_ms() + lease_ms
        away = self._away.setdefault(member.group, {})
        away[member.called] = (until_ms, member.holding.topic_ids)
        self._groups.spawn(self._give_place_up(member.group, member.called, until_ms))

    async def _give_place_up(self, group: str, called: str, until_ms: int) -> None:
        await self._groups.clock.wait_until(until_ms)
        away = self._away.get(group, {})
        if called in away and away[called][0] <= until_ms:
            del away[called]
            self.rebalance(group)

    def _gather(self, group: str) -> None:
        if group not in self._gathering:
            self._gathering.add(group)
            self._groups.spawn(self._rebalance_soon(group))

    async def _rebalance_soon(self, group: str) -> None:
        clock = self._groups.clock
        await clock.wait_until(clock.monotonic_ms() + GATHER_MS)
        self._gathering.discard(group)
        self.rebalance(group)
