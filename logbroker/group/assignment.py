"""Partition order: which member owns which partition. Balanced, sticky. Pure.

every partition of a topic that anyone wants has one owner, who wants the topic
nobody owns a partition in which it is late while another wants it who is not
where all members want the same topics and none is late, no member owns two more than another
of all such assignments it is one that moves the fewest partitions
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition, as far as an assignment cares."""

    topic_id: str
    partition: int


class Member(NamedTuple):
    """Who wants what."""

    member: str
    """Or its instance id, if it has one: whoever comes back under it owns what it owned."""
    topic_ids: frozenset[str]
    late: Collection[TopicPartition] = ()
    """Where it let a lease run out: others come first there."""


Assignment = dict[str, tuple[TopicPartition, ...]]
"""By member; members without partitions too. Ascending."""


def assign(
    members: Iterable[Member],
    partitions: Mapping[str, int],
    before: Mapping[str, Collection[TopicPartition]],
) -> Assignment:
    """Returns the owners. `partitions` is the count by topic id, `before` who owns what now."""
    wants = Wants(members)
    everything = [
        TopicPartition(topic_id, partition)
        for topic_id, count in sorted(partitions.items())
        for partition in range(count)
    ]
    owned: dict[str, set[TopicPartition]] = {name: set() for name in sorted(wants.topics)}
    known, taken = set(everything), set()
    for name in owned:
        for one in before.get(name, ()):
            if one in known and one not in taken and wants.may_have(name, one):
                owned[name].add(one)
                taken.add(one)
    for one in everything:
        wanting = [] if one in taken else [name for name in owned if wants.may_have(name, one)]
        if wanting:
            owned[min(wanting, key=lambda name: (len(owned[name]), name))].add(one)
    while path := _uphill(owned, wants):
        for giver, taker in pairwise(path):
            _give(owned[giver], owned[taker], wants, taker)
    return {name: tuple(sorted(mine)) for name, mine in owned.items()}


class Wants:
    """Who may have what."""

    def __init__(self, members: Iterable[Member]) -> None:
        found = list(members)
        self.topics = {member.member: member.topic_ids for member in found}
        self.barred: dict[str, set[TopicPartition]] = {}
        """By member, where another comes first. Left out: members without any such place."""
        late = {member.member: set(member.late) for member in found if member.late}
        for name, places in late.items():
            barred = {
                one
                for one in places
                if any(
                    one.topic_id in topic_ids and one not in late.get(other, ())
                    for other, topic_ids in self.topics.items()
                )
            }
            if barred:
                self.barred[name] = barred

    def may_have(self, name: str, one: TopicPartition) -> bool:
        """Returns whether the member wants this partition, and no other comes first."""
        return one.topic_id in self.topics[name] and one not in self.barred.get(name, ())

    def may_get_any(
        self, name: str, ones: Collection[TopicPartition], topic_ids: Collection[str]
    ) -> bool:
        """Returns whether the member may have one of these, which are of these topics."""
        if self.topics[name].isdisjoint(topic_ids):
            return False
        return name not in self.barred or any(self.may_have(name, one) for one in ones)


def _uphill(owned: Mapping[str, set[TopicPartition]], wants: Wants) -> list[str]:
    """Returns the shortest way from a member to one that owns at least two less; or nothing.

    Each on the way can give the next one something that it wants. One step is the rule; more
    are needed only where members want different topics.
    """
    topics = {name: {one.topic_id for one in mine} for name, mine in owned.items()}
    for start in sorted(owned, key=lambda name: (-len(owned[name]), name)):
        paths, seen = [[start]], {start}
        while paths:
            ends = []
            for path in paths:
                giver = path[-1]
                reached = [
                    name
                    for name in owned
                    if name not in seen and wants.may_get_any(name, owned[giver], topics[giver])
                ]
                seen.update(reached)
                ends += [[*path, name] for name in reached]
            best = min(ends, key=lambda path: (len(owned[path[-1]]), path[-1]), default=None)
            if best and len(owned[best[-1]]) <= len(owned[start]) - 2:
                return best
            paths = ends
    return []


def _give(mine: set[TopicPartition], theirs: set[TopicPartition], wants: Wants, taker: str) -> None:
    one = max(one for one in mine if wants.may_have(taker, one))
    mine.remove(one)
    theirs.add(one)
