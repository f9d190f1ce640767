"""The settings of a topic as options of commands, and of the broker whose defaults they are."""

from typing import Annotated

import typer

from logbroker.cli.units import (
    duration_ms,
    duration_or_unlimited_ms,
    size_bytes,
    size_or_unlimited_bytes,
)
from logbroker.config import Durability

DurabilityOption = Annotated[
    Durability | None, typer.Option("--durability", help="What a receipt promises.")
]
RetentionOption = Annotated[
    int | None,
    typer.Option(
        "--retention",
        metavar="DURATION|unlimited",
        parser=duration_or_unlimited_ms,
        help="How long records are kept after their append time, such as 7d.",
    ),
]
RetentionBytesOption = Annotated[
    int | None,
    typer.Option(
        "--retention-bytes",
        metavar="SIZE|unlimited",
        parser=size_or_unlimited_bytes,
        help="How much a partition keeps, such as 10GiB.",
    ),
]
SegmentBytesOption = Annotated[
    int | None,
    typer.Option(
        "--segment-bytes",
        metavar="SIZE",
        parser=size_bytes,
        help="A segment of this size is closed and the next one begun.",
    ),
]
SegmentAgeOption = Annotated[
    int | None,
    typer.Option(
        "--segment-age",
        metavar="DURATION",
        parser=duration_ms,
        help="A segment whose first batch is this old is closed and the next one begun.",
    ),
]
FlushIntervalOption = Annotated[
    int | None,
    typer.Option(
        "--flush-interval",
        metavar="DURATION",
        parser=duration_ms,
        help="The longest a batch of a `written` topic waits for the disk.",
    ),
]
