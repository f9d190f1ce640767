"""What a seed decides before anything happens: how much there is, and what goes wrong. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Self

from logbroker.group.settings import Order


class Trouble(StrEnum):
    """A kind of thing that goes wrong."""

    CRASHES = "crashes"
    """The broker is stopped, killed, loses power; also while it starts."""
    NETWORK = "network"
    """Messages are late, connections drop or fall silent, nobody can connect."""
    DISK = "disk"
    """Calls fail, tear, and are slow; the disk is full; a sync fails and forgets."""
    MEMBERS = "members"
    """Members join, leave, vanish, are killed; groups are reset, letters redriven, logs trimmed."""
    FLIPS = "flips"
    """Bits of what lies on the disk change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run."""

    troubles: frozenset[Trouble]
    orders: tuple[Order, ...]
    partition_count: int
    record_count: int
    """Of each producer."""
    burst: int
    value_bytes: int
    member_count: int
    lease_ms: int
    fault_chance: float
    segment_bytes: int
    pause_s: float
    """The mean time between two things that go wrong."""
    max_unsettled: int

    @classmethod
    def drawn(cls, random: Random) -> Self:
        """Returns one of many."""
        likely = [each for each in Trouble if random.random() < 0.55]
        orders = random.sample(list(Order), random.randint(1, 3))
        return cls(
            troubles=frozenset(likely or [random.choice(list(Trouble))]),
            orders=tuple(orders),
            partition_count=random.randint(1, 3),
            record_count=random.randint(20, 100),
            burst=random.choice([1, 5, 12]),
            value_bytes=random.choice([0, 0, 40, 700]),
            member_count=random.randint(1, 3),
            lease_ms=random.choice([400, 1_000, 2_500]),
            fault_chance=random.choice([0.02, 0.1, 0.25]),
            segment_bytes=random.choice([4 << 10, 4 << 10, 8 << 10, 1 << 20]),
            pause_s=random.choice([0.3, 1.0, 2.5]),
            max_unsettled=random.choice([5, 50, 10_000]),
        )
