"""How a member of a group reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from logbroker.errors import InvalidError
from logbroker.group.settings import GroupSettings, Order

COUNTS = "max_outstanding_records", "max_outstanding_bytes"


class Settle(StrEnum):
    """When a record is settled, seen from its handling."""

    AFTER = "after"
    """At-least-once: what is not settled when its reader dies is delivered again."""
    BEFORE = "before"
    """At-most-once: a batch is settled before it is handed out, and never delivered again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """What a consumer asks of the broker, and what it does by itself."""

    group: str
    """Made, if there is none, when the consumer joins it."""
    topics: tuple[str, ...]
    """At least one."""
    order: Order | None = None
    """PreconditionError on joining if the group has another one. None: whatever it has."""
    settings: GroupSettings | None = None
    """For a group that is made by joining; otherwise not used."""
    auto_settle: bool = True
    """Whether a record counts as done when the next one is asked for."""
    settle: Settle = Settle.AFTER
    max_outstanding_records: int = 20_000
    """How many records may be delivered and not settled. A batch is delivered whole."""
    max_outstanding_bytes: int = 16 << 20
    """Of batches; one is delivered however large."""
    client_id: str = ""
    """A name by which people tell members apart; at most 200 printable characters."""
    instance_id: str = ""
    """A fixed identity: back soon under the same one, a member gets its partitions again."""
    follow: bool = True
    """Whether to wait for new records; else iterating ends when all there was is delivered.

    In the orders `partition` and `key` that includes what is to be tried again.
    """
    max_processing_ms: int = 300_000
    """Leases are extended while something happens at least this often."""

    def __post_init__(self) -> None:
        if not self.topics:
            raise InvalidError("INVALID_ARGUMENT", "a consumer needs at least one topic")
        for name in COUNTS:
            if not 0 <= getattr(self, name) < 1 << 31:
                raise InvalidError("INVALID_ARGUMENT", f"{name} must be 0 to 2,147,483,647")
        if self.max_processing_ms < 1:
            raise InvalidError("INVALID_ARGUMENT", "max_processing_ms must be at least 1")


def topics_of(topics: str | Sequence[str]) -> tuple[str, ...]:
    """Returns one topic, or some, as a tuple without repetitions."""
    return (topics,) if isinstance(topics, str) else tuple(dict.fromkeys(topics))


def order_of(order: Order | str | None) -> Order | None:
    """Returns the order of this name; InvalidError if there is none."""
    if order is None or order in list(Order):
        return None if order is None else Order(order)
    message = f"order must be one of {', '.join(Order)}, not {order!r}"
    raise InvalidError("INVALID_ARGUMENT", message, field="order")


def settle_of(settle: Settle | str) -> Settle:
    """Returns the moment of this name; InvalidError if there is none."""
    if settle in list(Settle):
        return Settle(settle)
    message = f"settle must be after or before, not {settle!r}"
    raise InvalidError("INVALID_ARGUMENT", message, field="settle")
