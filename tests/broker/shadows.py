"""All that a group must know, by the models: what its members hold, and what becomes of it.

What members do changes the models at once; what time does when `pass_time` is called, which
must be just before and just at each deadline.
"""

from collections import Counter

from logbroker.group.record_state import State
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order
from tests.group.model import Model

from .shadow import Shadow

Place = tuple[str, int]
"""A topic and a partition."""


class Shadows:
    """The ledgers of one group, by topic and partition."""

    def __init__(self, order: Order, policy: RetryPolicy) -> None:
        self.order = order
        self.policy = policy
        self.by_place: dict[Place, Shadow] = {}
        self.leases: dict[int, tuple[Place, str, int]] = {}
        """By token: where, whose, until when."""
        self.dead: Counter[tuple[int, int]] = Counter()
        """How often records, by partition and offset, became dead letters."""
        self.done: Counter[str] = Counter()
        """How often what happened."""

    def add(self, place: Place, *, is_dead_letter_topic: bool) -> None:
        """Begins to follow a partition."""
        hopeless = State.PARKED if is_dead_letter_topic else State.SETTLED
        model = Model(
            self.order,
            self.policy.max_failures,
            hopeless,
            parks_from_birth=is_dead_letter_topic,
        )
        self.by_place[place] = Shadow(model)

    def __getitem__(self, place: Place) -> Shadow:
        return self.by_place[place]

    # Leases

    def lease(self, token: int, name: str, place: Place, offsets: list[int], now_ms: int) -> None:
        """Takes note of a delivery; AssertionError if it must not be."""
        model = self[place].model
        holders = {model.members[entry.token] for entry in model.entries if entry.token}
        assert self.order is not Order.PARTITION or holders <= {name}, "two members of a partition"
        others = [self[where].model.entries[at] for where, at in self.held_by(name)]
        assert not any(entry.is_marked for entry in others), "something beside a suspect"
        is_suspect = any(model.entries[at].is_marked for at in offsets)
        assert not (is_suspect and others), "a suspect beside something"
        self[place].lease(token, name, offsets, now_ms)
        self.done["delivered"] += len(offsets)

    def check_owners(self, owners: dict[int, str]) -> None:
        """Checks that nobody holds anything of what is another one's by now."""
        for token, (place, name, _) in self.leases.items():
            is_call = name.startswith("call ")  # what it has, it keeps
            if not is_call and owners.get(place[1], name) != name:
                held = self[place].model.held_by(token)
                assert not held, f"{name} holds {held} of {place}, which is another one's"

    def held_by(self, name: str) -> list[tuple[Place, int]]:
        """Returns all that a member holds."""
        return [
            (place, at)
            for place, shadow in self.by_place.items()
            for at in shadow.model.held_of(name)
        ]

    def end(self, name: str, *, has_vanished: bool, now_ms: int) -> None:
        """Takes note of a member's end."""
        held = self.held_by(name)
        for place, at in held:
            model = self[place].model
            if has_vanished and len(held) == 1:
                self.fail(place, at, now_ms, is_marked=True)
                self.done["vanished alone"] += 1
            else:
                model.entries[at].is_marked |= has_vanished
                model.free(at)
                self.done["suspects" if has_vanished else "released"] += 1

    def end_all(self) -> None:
        """Takes note of the broker's end, in order: everything is given back."""
        for shadow in self.by_place.values():
            for at, entry in enumerate(shadow.model.entries):
                if entry.token:
                    shadow.model.free(at)

    def fail(
        self,
        place: Place,
        at: int,
        now_ms: int,
        *,
        is_marked: bool = False,
        counts: bool = True,
        delay_ms: int | None = None,
    ) -> None:
        """Takes note of a failure; its back-off is at least half of what it may be."""
        shadow = self[place]
        failures = shadow.model.entries[at].failures + 1
        grown = self.policy.initial_ms * self.policy.multiplier ** (failures - 1)
        least_ms = int(min(grown, self.policy.max_ms)) // 2
        due_ms = now_ms + (least_ms if delay_ms is None else delay_ms)
        shadow.fail(at, due_ms, is_marked=is_marked, counts=counts)
        if shadow.ends.get(at) == "dead":
            self.dead[place[1], at] += 1
            self.done["dead letters"] += 1

    # Time

    def deadlines(self) -> set[int]:
        """Returns when leases end."""
        return {until_ms for *_, until_ms in self.leases.values()}

    def pass_time(self, now_ms: int) -> None:
        """Ends what has expired, as the broker must have done by now."""
        for place, shadow in self.by_place.items():
            held = sorted(
                at
                for token, (where, _, until_ms) in self.leases.items()
                if where == place and until_ms <= now_ms
                for at in shadow.model.held_by(token)
            )
            if self.order is Order.PARTITION:
                del held[1:]
            for at in held:
                entry = shadow.model.entries[at]
                shadow.told[entry.token].add(at)
                self.fail(place, at, now_ms, is_marked=entry.is_marked)
                self.done["expired"] += 1
            if self.order is Order.PARTITION and held:
                for behind in range(held[0], len(shadow.model.entries)):
                    if shadow.model.entries[behind].token:
                        shadow.lose(behind)

    # What a crash may leave

    def note(self) -> None:
        """Takes note that what is so now may be what a crash leaves."""
        for shadow in self.by_place.values():
            shadow.note()

    def note_durable(self) -> None:
        """Takes note that no crash takes back what is so now."""
        for shadow in self.by_place.values():
            shadow.note_durable()
