"""Which dead letters a command means, as options."""

import re
from typing import Annotated, Any, NamedTuple

import typer

from logbroker.cli.moment import Moment, Place, parse_stop, show_time
from logbroker.cli.output import note
from logbroker.client.client import Client
from logbroker.client.dead_letter_admin import DeadLetterFilter
from logbroker.clock import SystemClock
from logbroker.errors import InvalidError
from logbroker.topic.names import check_name, dead_letter_topic


class Offsets(NamedTuple):
    """From `first` up to, not including, `end`; None: to the end."""

    first: int
    end: int | None


def parse_offsets(text: str) -> Offsets:
    """Returns the offsets of `12`, `12-40`, or `12-`; typer.BadParameter otherwise."""
    match = re.fullmatch(r"([0-9]{1,18})(-([0-9]{1,18})?)?", text.strip())
    if not match or (match[3] and int(match[3]) < int(match[1])):
        raise typer.BadParameter(f"{text!r} must be an offset, or offsets as 12-40 or 12-")
    first = int(match[1])
    if match[2] is None:
        return Offsets(first, first + 1)
    return Offsets(first, int(match[3]) + 1 if match[3] else None)


class Time(NamedTuple):
    """A time, and how it was written."""

    text: str
    moment: Moment


def parse_time(text: str) -> Time:
    """Returns a time written as for `fetch --from`; typer.BadParameter otherwise."""
    rule = f"{text!r} must be a time, such as 2026-07-01T12:00Z or -10m (before now)"
    try:
        place: Place = parse_stop(text, now_ms=SystemClock().now_ms())
    except typer.BadParameter as error:
        raise typer.BadParameter(rule) from error
    if not isinstance(place, Moment):
        raise typer.BadParameter(rule)
    return Time(text, place)


SourceTopicArgument = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic they came from.")
]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, metavar="N", help="Only of this one.")
]
OffsetsOption = Annotated[
    Any,
    typer.Option(
        "--offsets",
        metavar="FIRST[-LAST]",
        parser=parse_offsets,
        help="Only these, of the column `offset`, both included: 12, 12-40, or 12-.",
    ),
]
SinceOption = Annotated[
    Any,
    typer.Option(
        "--since",
        metavar="TIME",
        parser=parse_time,
        help="Only those that came here since, such as -1h.",
    ),
]
UntilOption = Annotated[
    Any,
    typer.Option(
        "--until", metavar="TIME", parser=parse_time, help="Only those that came here before."
    ),
]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Only those whose reason contains this.")
]
KeyOption = Annotated[
    str | None, typer.Option("--key", metavar="TEXT", help="Only those with this key.")
]
LimitOption = Annotated[
    int, typer.Option("--limit", "-n", min=0, metavar="N", help="So many, oldest first; 0: all.")
]
BlockedOption = Annotated[
    bool,
    typer.Option(
        "--blocked", help="Not dead letters: what waits in its place (exhausted = block)."
    ),
]


class Wanted(NamedTuple):
    """What the options say. `filter` makes it what the broker is asked."""

    group: str
    topic: str
    partition: int | None
    offsets: Offsets | None
    since: Time | None
    until: Time | None
    reason: str
    key: str | None
    limit: int
    blocked: bool = False

    def say_none(self, what: str) -> None:
        """Says on stderr that nothing is meant, where an empty answer may puzzle."""
        is_restricted = any(value not in (None, "", 0) for value in self[2:8])
        where = f"group {self.group} in {self.topic}"
        note(f"no {self.noun} of {where} {what}" + (" and matches" if is_restricted else ""))

    @property
    def noun(self) -> str:
        """Returns what is meant, in the singular."""
        return "blocked record" if self.blocked else "dead letter"

    def say_zones(self) -> None:
        """Says on stderr what times without a zone were taken for."""
        for option, time in (("--since", self.since), ("--until", self.until)):
            if time and time.moment.assumed_utc:
                shown = show_time(time.moment.ms)
                note(f"{option} {time.text} names no zone and means {shown} (UTC)")

    async def filter(self, client: Client) -> DeadLetterFilter:
        """Returns the filter. InvalidError for a bad name, or offsets of several partitions."""
        dead_letter_topic(check_name(self.topic), check_name(self.group))
        if self.offsets and self.partition is None:
            count = (await client.admin.get_topic(self.topic)).topic.partition_count
            if count > 1:
                message = f"an offset is of one partition of {count}: say which (-p)"
                raise InvalidError("INVALID_ARGUMENT", message)
        return DeadLetterFilter(
            group=self.group,
            topic=self.topic,
            partition=self.partition,
            first_offset=self.offsets.first if self.offsets else None,
            end_offset=self.offsets.end if self.offsets else None,
            from_ms=self.since.moment.ms if self.since else None,
            until_ms=self.until.moment.ms if self.until else None,
            reason_contains=self.reason,
            key=None if self.key is None else self.key.encode("utf-8", "surrogateescape"),
            limit=self.limit,
            blocked=self.blocked,
        )
