"""What a group must know of one partition, beside what its broker knows of it.

A naive model, and for each record everything it has been since something later was
confirmed as durable: any of that may be what a crash leaves.
"""

from typing import NamedTuple

from logbroker.group.record_state import State
from tests.group.model import Entry, Model


class Facts(NamedTuple):
    """What outlives a restart."""

    state: str
    """`acknowledged`, `dead`, `skipped`, `parked` or `open`."""
    deliveries: int = 0
    failures: int = 0
    is_marked: bool = False
    redrives: int = 0
    due_ms: int = 0
    """Until when it waits at least; 0 if it does not."""


class Shadow:
    """One ledger's."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.ends: dict[int, str] = {}
        """How settled records ended."""
        self.told: dict[int, set[int]] = {}
        """By token, what its member has been, or must be, told to be taken back."""
        self._versions: list[list[Facts]] = []

    def write(self, keys: list[bytes | None]) -> None:
        """Takes in records that can be read now."""
        self.model.write(keys)
        self.note()

    def facts(self, at: int) -> Facts:
        """Returns what is so of a record now."""
        entry = self.model.entries[at]
        if entry.state is State.SETTLED:
            return Facts(self.ends[at])
        state = "parked" if entry.state is State.PARKED else "open"
        due_ms = entry.due_ms if entry.state is State.WAITING else 0
        return Facts(
            state, entry.deliveries, entry.failures, entry.is_marked, entry.redrives, due_ms
        )

    def note(self) -> None:
        """Takes note of what is so: a crash may leave it."""
        for at in range(len(self.model.entries)):
            if at == len(self._versions):
                self._versions.append([])
            facts = self.facts(at)
            if facts not in self._versions[at][-1:]:
                self._versions[at].append(facts)

    def note_possible(self, at: int, *, redrives: int) -> None:
        """Takes note that a parked record may soon be redriven so many times more."""
        facts = self.facts(at)
        fresh = facts._replace(state="open", failures=0, redrives=facts.redrives + redrives)
        self._versions[at].append(fresh)

    def note_durable(self) -> None:
        """Takes note that a crash leaves no less than what is so now."""
        self._versions = [[self.facts(at)] for at in range(len(self.model.entries))]

    def after_crash(self, at: int, found: Facts) -> Facts:
        """Takes what a restart has found; AssertionError if that was never so."""
        possible = [one for one in self._versions[at] if one._replace(due_ms=0) == found]
        assert possible, f"{at} is {found} after a crash, was {self._versions[at]}"
        facts = possible[-1]
        if facts.state in ("open", "parked"):
            state = State.PARKED if facts.state == "parked" else State.AVAILABLE
            if facts.due_ms:
                state = State.WAITING
            elif facts.is_marked and state is State.AVAILABLE:
                state = State.SUSPECT
            self.ends.pop(at, None)
        else:
            state = State.SETTLED
            self.ends[at] = facts.state
        self.model.entries[at] = Entry(
            state,
            facts.deliveries,
            facts.failures,
            due_ms=facts.due_ms,
            is_marked=facts.is_marked,
            redrives=facts.redrives,
        )
        return facts

    def possible_ends(self, at: int) -> set[str]:
        """Returns how a record may have ended that is settled."""
        return {facts.state for facts in self._versions[at]} - {"open", "parked"}

    # What happens

    def lease(self, token: int, member: str, offsets: list[int], now_ms: int) -> None:
        """Takes note of a delivery; AssertionError if it must not be."""
        for at in offsets:
            entry = self.model.entries[at]
            if entry.state is State.WAITING:
                assert entry.due_ms <= now_ms, f"{at} is back {entry.due_ms - now_ms} ms too soon"
                self.model.free(at)
        self.model.lease(token, member, offsets)
        self.told[token] = set()

    def settle(self, offsets: list[int], how: str) -> None:
        """Takes note of the end of records."""
        for at in offsets:
            self.model.settle(at)
            self.ends[at] = how

    def fail(self, at: int, due_ms: int, *, is_marked: bool, counts: bool = True) -> None:
        """Takes note of a failure, or a rejection."""
        self.model.fail(at, due_ms, is_marked=is_marked, counts=counts)
        if self.model.entries[at].state is State.SETTLED:
            self.ends[at] = "dead"

    def lose(self, at: int) -> None:
        """Takes note that a record is taken back, of which its member must be told."""
        self.told[self.model.entries[at].token].add(at)
        self.model.free(at)

    def take_back_behind(self, offsets: list[int]) -> None:
        """Takes back, in partition order, what lies behind a record that is still open."""
        before = {at: entry.token for at, entry in enumerate(self.model.entries) if entry.token}
        self.model.take_back_behind(offsets)
        for at, token in before.items():
            if not self.model.entries[at].token:
                self.told[token].add(at)

    def reset(self, offset: int) -> None:
        """Takes note that the group goes on there."""
        for at, entry in enumerate(self.model.entries):
            if entry.token:
                self.told[entry.token].add(at)
            if at >= offset:
                self.ends.pop(at, None)
            elif entry.state is not State.SETTLED:
                self.ends[at] = "skipped"
        self.model.reset(offset)

    def commit(self, offset: int) -> None:
        """Takes note that all below it is settled."""
        for at in range(offset):
            entry = self.model.entries[at]
            if entry.token:
                self.told[entry.token].add(at)
            if entry.state is not State.SETTLED:
                self.settle([at], "skipped")
