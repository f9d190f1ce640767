"""Whose is which partition, in `partition` order.

Joins and ends within a short window are one change of the assignment. What moves is taken
back first: its leases are free before anybody else may have it. An instance that may come
back within `lease_ms` keeps its partitions meanwhile.

Alive is one thing, making progress another: a member that lets a lease run out loses that
partition to the others, if there are any. If nothing else was heard of it for `lease_ms`
either, or it asks for nothing more, it loses all of them, until it is heard again.
"""

from collections.abc import Callable

import structlog

from logbroker.broker.groups import Groups
from logbroker.broker.live_group import LiveGroup
from logbroker.broker.member import Member
from logbroker.group import assignment
from logbroker.group.group_events import LedgerId
from logbroker.group.settings import Order

GATHER_MS = 150
"""How long joins and ends are gathered."""

log = structlog.get_logger()


class Ownership:
    """Gives partitions to members, and takes them away."""

    def __init__(self, groups: Groups, members: Callable[[str], list[Member]]) -> None:
        self._groups = groups
        self._members = members
        self._away: dict[str, dict[str, tuple[int, frozenset[str]]]] = {}
        """By group, instances that may come back: until when, and what they read."""
        self._gathering: set[str] = set()

    def owned_by(self, member: Member) -> list[tuple[str, int]]:
        """Returns the topics and partitions of a member."""
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

    def welcome(self, live: LiveGroup, member: Member) -> None:
        """Gives a member that has joined what waited for it, or soon its share."""
        away = self._away.get(member.group, {}).pop(member.called, None)
        topic_ids = member.holding.topic_ids
        if not away or away[1] != topic_ids or member.called not in live.assignment:
            self.gather(member.group)
            return
        mine = live.assignment[member.called]
        for one in mine:
            live.owners[one] = member.holding.name
            for ledger_id in live.of_partition(one):
                member.holding.look_into(ledger_id)
        member.assign(mine)

    def bid_farewell(self, live: LiveGroup, member: Member) -> None:
        """Takes note that a member is gone: others get what it owned, soon or, later, if it has
        an instance id and does not come back."""
        for one in [one for one, owner in live.owners.items() if owner == member.holding.name]:
            live.owners[one] = ""
        if live.order is not Order.PARTITION:
            return
        if not member.instance_id:
            self.gather(member.group)
            return
        lease_ms = self._groups.state.catalog.get(member.group).settings.lease_ms
        until_ms = self._groups.clock.monotonic_ms() + lease_ms
        self._expect(member, until_ms)
        self._groups.spawn(self._give_place_up(member.group, member.called, until_ms))

    def replace(self, live: LiveGroup, member: Member) -> None:
        """Takes note that another one is about to join in the place of this instance."""
        if live.order is Order.PARTITION:
            self._expect(member, self._groups.clock.monotonic_ms())

    def lease_expired(self, ledger_id: LedgerId, name: str) -> None:
        """Hears that a member let a lease run out."""
        live = self._groups.live.get(ledger_id.group)
        members = self._members(ledger_id.group)
        member = next((one for one in members if one.holding.name == name), None)
        if live is None or live.order is not Order.PARTITION or member is None:
            return
        group = self._groups.state.catalog.get(ledger_id.group)
        quiet_ms = self._groups.clock.monotonic_ms() - member.heard_ms
        member.late_in.add(live.place_of(ledger_id))
        member.is_silent = quiet_ms >= group.settings.lease_ms or not member.max_records
        if len(members) == 1:
            return
        log.warning(
            "lease expired, its partition goes to another member",
            group=ledger_id.group, member=name, partition=ledger_id.partition,
            is_silent=member.is_silent,
        )  # fmt: skip
        for one in _late_in(live, member):
            if live.owners.get(one) == name:
                live.owners[one] = ""  # nothing is delivered until it is another's
        self.gather(ledger_id.group)

    def gather(self, group: str) -> None:
        """Assigns the partitions of a group anew, soon."""
        if group not in self._gathering:
            self._gathering.add(group)
            self._groups.spawn(self._rebalance_soon(group))

    def rebalance(self, group: str) -> None:
        """Assigns the partitions of a group anew, now."""
        live = self._groups.live.get(group)
        if live is None or live.order is not Order.PARTITION:
            return
        members = {member.called: member for member in self._members(group)}
        wanting = [
            assignment.Member(called, member.holding.topic_ids, _late_in(live, member))
            for called, member in members.items()
        ]
        wanting += [
            assignment.Member(called, topic_ids)
            for called, (_, topic_ids) in self._away.get(group, {}).items()
        ]
        here = {called: member.holding.name for called, member in members.items()}
        by_name = {member.holding.name: member for member in members.values()}
        changed = live.assign(wanting, here)
        for name, (revoked, mine) in changed.items():
            for one in revoked:
                for ledger_id in live.of_partition(one):
                    self._groups.release(ledger_id, name)
                    by_name[name].holding.forget(ledger_id)
            by_name[name].assign(mine)
        for one, owner in live.owners.items():
            if owner:
                for ledger_id in live.of_partition(one):
                    live.holdings[owner].look_into(ledger_id)
        if changed:
            log.info("assignment changed", group=group, member_count=len(members))

    def _expect(self, member: Member, until_ms: int) -> None:
        away = self._away.setdefault(member.group, {})
        away[member.called] = (until_ms, member.holding.topic_ids)

    async def _give_place_up(self, group: str, called: str, until_ms: int) -> None:
        await self._groups.clock.wait_until(until_ms)
        away = self._away.get(group, {})
        if called in away and away[called][0] <= until_ms:
            del away[called]
            self.rebalance(group)

    async def _rebalance_soon(self, group: str) -> None:
        clock = self._groups.clock
        await clock.wait_until(clock.monotonic_ms() + GATHER_MS)
        self._gathering.discard(group)
        self.rebalance(group)


def _late_in(live: LiveGroup, member: Member) -> set[assignment.TopicPartition]:
    if not member.is_silent:
        return member.late_in
    return {live.place_of(ledger_id) for ledger_id in live.ledgers_of(member.holding.topic_ids)}
