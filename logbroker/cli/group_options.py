"""The settings of a group as options of commands, and what is asked for by them."""

from typing import Annotated, Any, cast

import typer

from logbroker.cli.moment import Moment, Place, parse_place
from logbroker.cli.units import duration_ms, duration_or_unlimited_ms
from logbroker.client.group_admin import GroupChanges
from logbroker.client.partition_stream import Timestamp
from logbroker.clock import SystemClock
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order, OutOfRange, Start

RETRY_FIELDS = {
    "retry_initial_ms": "initial_ms",
    "retry_multiplier": "multiplier",
    "retry_max_ms": "max_ms",
    "max_failures": "max_failures",
    "exhausted": "exhausted",
}
"""What belongs to the retry policy: the change, and the policy's field."""


def place_now(text: str) -> Place:
    """Returns the place, times before now counted from when the command began."""
    return parse_place(text, now_ms=SystemClock().now_ms())


OrderOption = Annotated[
    Order | None,
    typer.Option("--order", help="Which records wait for which: those of a partition or key."),
]
LeaseOption = Annotated[
    int | None,
    typer.Option(
        "--lease",
        metavar="DURATION",
        parser=duration_ms,
        help="How long a delivery may be held without an extension, such as 30s.",
    ),
]
RetryInitialOption = Annotated[
    int | None,
    typer.Option(
        "--retry-initial",
        metavar="DURATION",
        parser=duration_ms,
        help="The wait after the first failure.",
    ),
]
RetryMultiplierOption = Annotated[
    float | None,
    typer.Option("--retry-multiplier", metavar="NUMBER", help="What the wait grows by, 1 to 10."),
]
RetryMaxOption = Annotated[
    int | None,
    typer.Option("--retry-max", metavar="DURATION", parser=duration_ms, help="The longest wait."),
]
MaxFailuresOption = Annotated[
    int | None,
    typer.Option(
        "--max-failures", min=1, metavar="N", help="At this failure a record is exhausted."
    ),
]
ExhaustedOption = Annotated[
    Exhausted | None, typer.Option("--exhausted", help="What becomes of an exhausted record.")
]
AfterDeadLetterOption = Annotated[
    AfterDeadLetter | None,
    typer.Option("--after-dead-letter", help="Whether later ones of its key go on or wait."),
]
MaxUnsettledOption = Annotated[
    int | None,
    typer.Option(
        "--max-unsettled", min=1, metavar="N", help="How many of a partition may be open at once."
    ),
]
StartOption = Annotated[
    Any,
    typer.Option(
        "--start",
        metavar="PLACE",
        parser=place_now,
        help="Where it begins in a topic: earliest, latest, an offset, or a time as of fetch.",
    ),
]
OutOfRangeOption = Annotated[
    OutOfRange | None,
    typer.Option("--out-of-range", help="Where it goes on if its place is not there any more."),
]
GroupRetentionOption = Annotated[
    int | None,
    typer.Option(
        "--group-retention",
        metavar="DURATION|unlimited",
        parser=duration_or_unlimited_ms,
        help="A group without members is forgotten after so long.",
    ),
]


def given(**options: Any) -> GroupChanges:
    """Returns what was given of the options, by the names of the settings."""
    changes = {name: value for name, value in options.items() if value is not None}
    if isinstance(start := changes.get("start"), Moment):
        changes["start"] = Timestamp(start.ms)
    return cast(GroupChanges, changes)


def settings_of(changes: GroupChanges) -> GroupSettings:
    """Returns the settings of a new group. InvalidError for what cannot be."""
    plain: dict[str, Any] = dict(changes)
    retry = {field: plain.pop(name) for name, field in RETRY_FIELDS.items() if name in plain}
    match plain.pop("start", None):
        case Timestamp(timestamp_ms):
            plain |= {"start": Start.TIME, "start_time_ms": timestamp_ms}
        case int(offset):
            plain |= {"start": Start.OFFSET, "start_offset": offset}
        case str(bound):
            plain["start"] = Start(bound)
    return GroupSettings(retry=RetryPolicy(**retry), **plain)
