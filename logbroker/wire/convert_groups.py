"""Group settings, settlements and the like to values and back; for server and client alike."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, TypeVar

from logbroker.errors import InvalidError
from logbroker.group.group import Group
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import Exhausted
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order, OutOfRange, Start
from logbroker.v1 import consume_service_pb2, group_pb2

E = TypeVar("E", bound=StrEnum)

ORDERS = {
    group_pb2.ORDER_PARTITION: Order.PARTITION,
    group_pb2.ORDER_KEY: Order.KEY,
    group_pb2.ORDER_NONE: Order.NONE,
}
EXHAUSTED = {
    group_pb2.EXHAUSTED_DEAD_LETTER: Exhausted.DEAD_LETTER,
    group_pb2.EXHAUSTED_BLOCK: Exhausted.BLOCK,
    group_pb2.EXHAUSTED_DISCARD: Exhausted.DISCARD,
}
AFTER_DEAD_LETTER = {
    group_pb2.AFTER_DEAD_LETTER_CONTINUE: AfterDeadLetter.CONTINUE,
    group_pb2.AFTER_DEAD_LETTER_HOLD: AfterDeadLetter.HOLD,
}
OUT_OF_RANGE = {
    group_pb2.OUT_OF_RANGE_EARLIEST: OutOfRange.EARLIEST,
    group_pb2.OUT_OF_RANGE_LATEST: OutOfRange.LATEST,
    group_pb2.OUT_OF_RANGE_ERROR: OutOfRange.ERROR,
}
CAUSES = {
    consume_service_pb2.OUTCOME_ACKNOWLEDGE: Cause.ACKNOWLEDGE,
    consume_service_pb2.OUTCOME_RETRY: Cause.RETRY,
    consume_service_pb2.OUTCOME_RELEASE: Cause.RELEASE,
    consume_service_pb2.OUTCOME_REJECT: Cause.REJECT,
}
OUTCOMES = {cause: number for number, cause in CAUSES.items()}
PLAIN = ("lease_ms", "max_unsettled", "group_retention_ms")
RETRY = {
    "retry_initial_ms": "initial_ms",
    "retry_multiplier": "multiplier",
    "retry_max_ms": "max_ms",
    "max_failures": "max_failures",
}
"""Fields of the message, and of the policy."""


def group_settings_to_proto(settings: GroupSettings) -> group_pb2.GroupSettings:
    """Returns the message, everything told."""
    retry = settings.retry
    return group_pb2.GroupSettings(
        order=_number(ORDERS, settings.order),  # type: ignore[arg-type]  # a number of this enum
        exhausted=_number(EXHAUSTED, retry.exhausted),  # type: ignore[arg-type]
        after_dead_letter=_number(AFTER_DEAD_LETTER, settings.after_dead_letter),  # type: ignore[arg-type]
        out_of_range=_number(OUT_OF_RANGE, settings.out_of_range),  # type: ignore[arg-type]
        start=_start_to_proto(settings),
        **{name: getattr(settings, name) for name in PLAIN},
        **{name: getattr(retry, field) for name, field in RETRY.items()},
    )


def group_settings_of(
    message: group_pb2.GroupSettings, known: GroupSettings | None = None
) -> GroupSettings:
    """Returns `known`, or the defaults, with what the message says. InvalidError."""
    known = known or GroupSettings()
    retry: dict[str, Any] = {
        field: getattr(message, name) for name, field in RETRY.items() if message.HasField(name)
    }
    if message.exhausted:
        retry["exhausted"] = _value("exhausted", EXHAUSTED, message.exhausted)
    changes: dict[str, Any] = {
        name: getattr(message, name) for name in PLAIN if message.HasField(name)
    }
    if retry:
        changes["retry"] = replace(known.retry, **retry)
    if message.order:
        changes["order"] = _value("order", ORDERS, message.order)
    if message.after_dead_letter:
        number = message.after_dead_letter
        changes["after_dead_letter"] = _value("after_dead_letter", AFTER_DEAD_LETTER, number)
    if message.out_of_range:
        changes["out_of_range"] = _value("out_of_range", OUT_OF_RANGE, message.out_of_range)
    match message.start.WhichOneof("start"):
        case "earliest":
            changes["start"] = Start.EARLIEST
        case "latest":
            changes["start"] = Start.LATEST
        case "offset":
            changes |= {"start": Start.OFFSET, "start_offset": message.start.offset}
        case "timestamp_ms":
            changes |= {"start": Start.TIME, "start_time_ms": message.start.timestamp_ms}
    return replace(known, **changes)


def group_to_proto(group: Group) -> group_pb2.Group:
    """Returns the message."""
    return group_pb2.Group(
        group=group.group,
        settings=group_settings_to_proto(group.settings),
        created_ms=group.created_ms,
        topics=[topic.topic for topic in group.topics],
    )


def topic_partitions(pairs: Iterable[tuple[str, int]]) -> list[group_pb2.TopicPartition]:
    """Returns messages for topics and partitions."""
    return [group_pb2.TopicPartition(topic=topic, partition=number) for topic, number in pairs]


def _start_to_proto(settings: GroupSettings) -> group_pb2.GroupStart:
    match settings.start:
        case Start.EARLIEST:
            return group_pb2.GroupStart(earliest=True)
        case Start.LATEST:
            return group_pb2.GroupStart(latest=True)
        case Start.OFFSET:
            return group_pb2.GroupStart(offset=settings.start_offset)
        case Start.TIME:
            return group_pb2.GroupStart(timestamp_ms=settings.start_time_ms)


def _number(numbers: Mapping[Any, E], value: E) -> int:
    return next(int(number) for number, known in numbers.items() if known is value)


def _value(name: str, numbers: Mapping[Any, E], number: int) -> E:
    found = numbers.get(number)
    if found is None:
        message = f"{name} {number} is none of {', '.join(map(str, numbers))}"
        raise InvalidError("INVALID_SETTING", message, setting=name, value=number)
    return found
