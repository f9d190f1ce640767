"""What a seed decides of a run, all of it before the run begins. Pure.

Decided: which records are produced, in which batches and partitions; after how many of them
who joins, leaves, vanishes, is killed or reset; how each delivery of each record to each group
is answered. Not decided, since real processes and disks take the time they take: which member
gets a record, when, what is under way when something is killed, and hence how often a record
is delivered.
"""

from enum import StrEnum
from hashlib import blake2b
from random import Random
from typing import NamedTuple

from .events import Answer, Place


class Plan(NamedTuple):
    """How much there is of everything."""

    record_count: int
    partition_count: int = 4
    member_count: int = 3
    batch_records: int = 20
    records_per_second: int = 1_000
    records_per_step: int = 150
    broker_kills: int = 2
    member_kills: int = 2
    """Of members that are processes of their own."""
    resets: int = 1
    trims: int = 2
    lease_ms: int = 1_000
    fault_chance: float = 0.02
    """That a record is not acknowledged at once."""
    ahead: int = 500
    """So many more records than a step asks for may be produced before it is done."""
    drain_s: float = 60


class What(StrEnum):
    """What happens beside the work."""

    JOIN = "join"
    LEAVE = "leave"
    VANISH = "vanish"
    """A member's stream is cut."""
    KILL_MEMBER = "kill member"
    """A member that is a process joins, and gets SIGKILL a little later."""
    REDRIVE = "redrive"
    RESET = "reset"
    """All members end, the group is moved, others join."""
    TRIM = "trim"
    """What every group has settled is removed from a log."""
    KILL_BROKER = "kill broker"


class Kind(StrEnum):
    """What a member is."""

    WIRE = "wire"
    """A stream, by the generated stub alone: what it notes is what travelled."""
    WORKER = "worker"
    """A Worker of the client."""
    CALLS = "calls"
    """`Lease` and `Settle`, without a stream."""
    PROCESS = "process"
    """As WIRE, in a process of its own."""


class Step(NamedTuple):
    """Something happens once so many records are stored."""

    after: int
    what: What
    group: int
    kind: Kind
    amount: int
    """Of whatever `what` needs a number for."""


class Produced(NamedTuple):
    """Records that are sent together."""

    partition: int
    keys: tuple[bytes | None, ...]


KEYS = (None, *(b"k%d" % at for at in range(8)))
OFTEN = (What.JOIN, What.LEAVE, What.VANISH, What.VANISH, What.REDRIVE)
KINDS = (Kind.WIRE,) * 7 + (Kind.WORKER,) * 2 + (Kind.CALLS,)


class Script:
    """Everything that `seed` decides for a plan and so many groups."""

    def __init__(self, seed: int, plan: Plan, group_count: int) -> None:
        self.seed = seed
        self.plan = plan
        random = Random(seed)
        self.batches = _batches(random, plan)
        self.steps = _steps(random, plan, group_count)
        self.first_kinds = [
            [random.choice(KINDS) for _ in range(plan.member_count)] for _ in range(group_count)
        ]

    def fate(self, group: str) -> "Fate":
        """Returns how a group answers."""
        return Fate(self.seed, group, self.plan.fault_chance)


class Fate:
    """How each delivery of each record is answered by a group, until it is calm."""

    def __init__(self, seed: int, group: str, chance: float) -> None:
        self.seed = seed
        self.chance = chance
        self.poison_chance = 1 / 200
        """That a record fails nearly always: hence dead letters."""
        self._group = group

    def calm(self) -> None:
        """From now on everything is acknowledged."""
        self.chance = 0

    def answer(self, place: Place, redrives: int, number: int) -> Answer | None:
        """Returns the answer to this delivery of a record; None: it stalls past its lease."""
        if not self.chance:
            return Answer.ACKNOWLEDGE
        drawn = self._draw(place, f"{redrives} {number}")
        is_poison = not redrives and self._draw(place, "poison") < self.poison_chance
        chance = 0.95 if is_poison else self.chance
        if drawn >= chance:
            return Answer.ACKNOWLEDGE
        part = drawn / chance
        if part < 0.55:
            return Answer.RETRY
        if part < 0.8:
            return Answer.RELEASE
        return Answer.REJECT if part < 0.96 else None

    def _draw(self, place: Place, what: str) -> float:
        told = f"{self.seed} {self._group} {place} {what}".encode()
        return int.from_bytes(blake2b(told, digest_size=4).digest()) / (1 << 32)


def _batches(random: Random, plan: Plan) -> list[Produced]:
    batches, left = [], plan.record_count
    while left:
        count = min(random.randint(1, plan.batch_records), left)
        keys = tuple(random.choices(KEYS, k=count))
        batches.append(Produced(random.randrange(plan.partition_count), keys))
        left -= count
    return batches


def _steps(random: Random, plan: Plan, group_count: int) -> list[Step]:
    """Returns the rare things at even distances, and the others between them."""
    rare = {
        What.KILL_BROKER: plan.broker_kills,
        What.KILL_MEMBER: plan.member_kills,
        What.RESET: plan.resets,
        What.TRIM: plan.trims,
    }
    wanted = [
        (plan.record_count * (number + random.random()) / count, what)
        for what, count in rare.items()
        for number in range(count)
    ]
    wanted += [
        ((number + random.random()) * plan.records_per_step, random.choice(OFTEN))
        for number in range(plan.record_count // plan.records_per_step)
    ]
    return [
        Step(int(after), what, random.randrange(group_count), random.choice(KINDS),
             random.randint(0, 100))
        for after, what in sorted(wanted)
    ]  # fmt: skip
