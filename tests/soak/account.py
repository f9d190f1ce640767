"""What the load knows of its records, and what must be so at the end."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Self

WORK = "work"
ORDERS = ("partition", "key", "none")
WORKING_GROUPS = tuple(f"work-{order}" for order in ORDERS)
WITNESS, REPLAY = "witness", "replay"
"""One that nothing happens to, and one that is reset again and again."""
GROUPS = (*WORKING_GROUPS, WITNESS, REPLAY)


@dataclass(slots=True)
class Account:
    """Counted while it goes on, and at its end."""

    acknowledged_count: int = 0
    """Records of the topic `work` that the broker has taken."""
    unknown_count: int = 0
    """Those that it may have taken."""
    stored_count: int = -1
    """Those that it has, by the high watermarks at the end."""
    unseen_count: int = -1
    """Those that the witness has not been given."""
    unsettled: dict[str, int] = field(default_factory=dict)
    """By group: the lag, at the end."""
    parked: dict[str, int] = field(default_factory=dict)
    """By group: dead letters that are still there after a last redrive of all of them."""
    done: Counter[str] = field(default_factory=Counter)
    """What happened, how often."""
    errors: Counter[str] = field(default_factory=Counter)
    """By what was being done, and the reason."""

    def faults(self) -> list[str]:
        """Returns what should not be so at the end, as sentences."""
        found = []
        most = self.acknowledged_count + self.unknown_count
        if not self.acknowledged_count <= self.stored_count <= most:
            given = f"{self.acknowledged_count} acknowledged, {self.unknown_count} unknown"
            found.append(f"{self.stored_count} records are stored: {given}")
        if self.unseen_count:
            found.append(f"{self.unseen_count} records were never given to the witness")
        for left, what in (
            (self.unsettled, "records are not settled"),
            (self.parked, "dead letters stay"),
        ):
            found += [f"{group}: {count} {what}" for group, count in left.items() if count]
        found += [f"{what}, {count} times" for what, count in self.errors.items()]
        return found

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return values | {"done": dict(self.done), "errors": dict(self.errors)}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Returns the account of plain values."""
        counters = {name: Counter(values[name]) for name in ("done", "errors")}
        return cls(**{**values, **counters})
