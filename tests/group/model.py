"""A ledger as anyone would write it first: an entry for every offset. Slow, and easy to trust."""

from dataclasses import dataclass, field

from logbroker.group.record_state import State
from logbroker.group.settings import Order


@dataclass
class Entry:
    """What is known of one record."""

    state: State = State.AVAILABLE
    deliveries: int = 0
    failures: int = 0
    token: int = 0
    due_ms: int = 0
    is_marked: bool = False
    redrives: int = 0


@dataclass
class Model:
    """Every record of a partition, for one group."""

    order: Order
    max_failures: int
    hopeless: State
    holds: bool = False
    parks_from_birth: bool = False
    """Of a dead-letter topic: what is parked is in nobody's way."""
    keys: list[bytes | None] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    members: dict[int, str] = field(default_factory=dict)
    acknowledged: dict[int, set[int]] = field(default_factory=dict)
    held: set[int] = field(default_factory=set)

    def write(self, keys: list[bytes | None]) -> None:
        self.keys += keys
        state = State.PARKED if self.parks_from_birth else State.AVAILABLE
        self.entries += [Entry(state) for _ in keys]

    def held_by(self, token: int) -> list[int]:
        return [at for at, entry in enumerate(self.entries) if entry.token == token != 0]

    def held_of(self, member: str) -> list[int]:
        return [
            at
            for at, entry in enumerate(self.entries)
            if entry.token and self.members[entry.token] == member
        ]

    def committed(self) -> int:
        for at, entry in enumerate(self.entries):
            if entry.state is not State.SETTLED:
                return at
        return len(self.entries)

    def must_wait(self, at: int) -> bool:
        """Returns whether this order forbids to deliver the record now."""
        before = self.entries[:at]
        if self.order is Order.NONE:
            return False
        if self.parks_from_birth:
            return self._must_wait_among_dead_letters(at)
        if self.order is Order.PARTITION:
            return any(other < at for other in self.held) or any(
                entry.state not in (State.SETTLED, State.LEASED) for entry in before
            )
        key = self.keys[at]
        if key is not None and any(self.keys[other] == key for other in self.held):
            return True
        same = [entry for entry, other in zip(before, self.keys, strict=False) if other == key]
        return key is not None and any(entry.state is not State.SETTLED for entry in same)

    def _must_wait_among_dead_letters(self, at: int) -> bool:
        if self.order is Order.KEY:
            same = [entry for entry, key in zip(self.entries, self.keys, strict=True)
                    if key is not None and key == self.keys[at]]  # fmt: skip
            return any(entry.state is State.LEASED for entry in same)
        passed = State.SETTLED, State.LEASED, State.PARKED
        return any(entry.state not in passed for entry in self.entries[:at])

    def redrive(self, at: int) -> None:
        """Makes a parked record available, with fresh failures."""
        entry = self.entries[at]
        assert entry.state is State.PARKED, "only what is parked is redriven"
        entry.state, entry.failures, entry.is_marked = State.AVAILABLE, 0, False
        entry.redrives += 1

    def lease(self, token: int, member: str, offsets: list[int]) -> None:
        self.members[token] = member
        for at in offsets:
            entry = self.entries[at]
            assert entry.state in (State.AVAILABLE, State.SUSPECT), "leased once at a time"
            assert not self.must_wait(at), "the order is kept"
            assert entry.state is State.AVAILABLE or offsets == [at], "a suspect is alone"
            entry.state, entry.token = State.LEASED, token
            entry.deliveries += 1

    def settle(self, at: int) -> None:
        self.entries[at] = Entry(State.SETTLED, self.entries[at].deliveries)

    def free(self, at: int) -> None:
        entry = self.entries[at]
        entry.state = State.SUSPECT if entry.is_marked else State.AVAILABLE
        entry.token = 0

    def fail(self, at: int, due_ms: int, *, is_marked: bool, counts: bool = True) -> None:
        entry = self.entries[at]
        entry.failures += counts
        entry.token, entry.is_marked = 0, is_marked
        if entry.failures >= self.max_failures or not counts:
            if self.hopeless is State.SETTLED:
                self.settle(at)
                if self.holds and (self.order is Order.PARTITION or self.keys[at] is not None):
                    self.held.add(at)
            else:
                entry.state, entry.is_marked = State.PARKED, False
                if self.parks_from_birth:
                    entry.failures = 0
        else:
            entry.state, entry.due_ms = State.WAITING, due_ms

    def take_back_behind(self, offsets: list[int]) -> None:
        """Frees what is held behind the first of these that is not settled."""
        left = [
            at for at in offsets if self.entries[at].state is not State.SETTLED or at in self.held
        ]
        if self.order is Order.PARTITION and left:
            for at in range(min(left), len(self.entries)):
                if self.entries[at].token:
                    self.free(at)

    def reset(self, offset: int) -> None:
        self.held.clear()
        self.entries = [
            Entry(State.SETTLED) if at < offset else Entry() for at in range(len(self.entries))
        ]
