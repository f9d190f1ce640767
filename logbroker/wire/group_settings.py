"""Group settings to messages and back; for server and client alike."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal, TypeVar

from logbroker.errors import InvalidError
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order, OutOfRange, Start
from logbroker.v1 import group_pb2 as pb

E = TypeVar("E", bound=StrEnum)
Plain = Literal["lease_ms", "max_unsettled", "group_retention_ms"]
OfRetry = Literal["retry_initial_ms", "retry_multiplier", "retry_max_ms", "max_failures"]

ORDERS = {Order.PARTITION: pb.ORDER_PARTITION, Order.KEY: pb.ORDER_KEY, Order.NONE: pb.ORDER_NONE}
EXHAUSTED = {
    Exhausted.DEAD_LETTER: pb.EXHAUSTED_DEAD_LETTER,
    Exhausted.BLOCK: pb.EXHAUSTED_BLOCK,
    Exhausted.DISCARD: pb.EXHAUSTED_DISCARD,
}
AFTER_DEAD_LETTER = {
    AfterDeadLetter.CONTINUE: pb.AFTER_DEAD_LETTER_CONTINUE,
    AfterDeadLetter.HOLD: pb.AFTER_DEAD_LETTER_HOLD,
}
OUT_OF_RANGE = {
    OutOfRange.EARLIEST: pb.OUT_OF_RANGE_EARLIEST,
    OutOfRange.LATEST: pb.OUT_OF_RANGE_LATEST,
    OutOfRange.ERROR: pb.OUT_OF_RANGE_ERROR,
}
PLAIN: tuple[Plain, ...] = "lease_ms", "max_unsettled", "group_retention_ms"
OF_RETRY: tuple[tuple[OfRetry, str], ...] = (
    ("retry_initial_ms", "initial_ms"),
    ("retry_multiplier", "multiplier"),
    ("retry_max_ms", "max_ms"),
    ("max_failures", "max_failures"),
)


def order_to_proto(order: Order) -> pb.Order:
    """Returns the enum's value."""
    return ORDERS[order]


def group_settings_to_proto(settings: GroupSettings) -> pb.GroupSettings:
    """Returns the message, with every field set."""
    retry = settings.retry
    start = pb.GroupStart()
    match settings.start:
        case Start.EARLIEST:
            start.earliest = True
        case Start.LATEST:
            start.latest = True
        case Start.OFFSET:
            start.offset = settings.start_offset
        case Start.TIME:
            start.timestamp_ms = settings.start_time_ms
    return pb.GroupSettings(
        order=ORDERS[settings.order],
        lease_ms=settings.lease_ms,
        retry_initial_ms=retry.initial_ms,
        retry_multiplier=retry.multiplier,
        retry_max_ms=retry.max_ms,
        max_failures=retry.max_failures,
        exhausted=EXHAUSTED[retry.exhausted],
        after_dead_letter=AFTER_DEAD_LETTER[settings.after_dead_letter],
        max_unsettled=settings.max_unsettled,
        start=start,
        out_of_range=OUT_OF_RANGE[settings.out_of_range],
        group_retention_ms=settings.group_retention_ms,
    )


def group_settings_of(
    message: pb.GroupSettings, over: GroupSettings | None = None
) -> GroupSettings:
    """Returns what is set, over `over` (or the defaults). InvalidError for what cannot be."""
    base = over or GroupSettings()
    retry: dict[str, Any] = {
        mine: getattr(message, theirs) if message.HasField(theirs) else getattr(base.retry, mine)
        for theirs, mine in OF_RETRY
    }
    given: dict[str, Any] = {
        name: getattr(message if message.HasField(name) else base, name) for name in PLAIN
    }
    exhausted = _enum("exhausted", EXHAUSTED, message.exhausted, base.retry.exhausted)
    return GroupSettings(
        order=_enum("order", ORDERS, message.order, base.order),
        retry=RetryPolicy(exhausted=exhausted, **retry),
        after_dead_letter=_enum(
            "after_dead_letter", AFTER_DEAD_LETTER, message.after_dead_letter,
            base.after_dead_letter,
        ),
        out_of_range=_enum("out_of_range", OUT_OF_RANGE, message.out_of_range, base.out_of_range),
        **given,
        **_start(message, base),
    )  # fmt: skip


def _start(message: pb.GroupSettings, base: GroupSettings) -> dict[str, Any]:
    match message.start.WhichOneof("start") if message.HasField("start") else "":
        case "earliest" | None:
            return {"start": Start.EARLIEST}
        case "latest":
            return {"start": Start.LATEST}
        case "offset":
            return {"start": Start.OFFSET, "start_offset": message.start.offset}
        case "timestamp_ms":
            return {"start": Start.TIME, "start_time_ms": message.start.timestamp_ms}
    return {
        "start": base.start,
        "start_offset": base.start_offset,
        "start_time_ms": base.start_time_ms,
    }


def _enum(name: str, numbers: Mapping[E, int], number: int, default: E) -> E:
    if number == 0:
        return default
    for value, its_number in numbers.items():
        if its_number == number:
            return value
    message = f"{name}: {number} is none of {', '.join(numbers)}"
    raise InvalidError("INVALID_SETTING", message, setting=name, value=number)
