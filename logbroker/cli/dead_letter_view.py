"""How dead letters and redrives are shown: in words, and as JSON."""

from typing import Any

from logbroker.cli.moment import show_time
from logbroker.cli.record_json import bytes_field, headers_field
from logbroker.cli.text import SHOWN_BYTES, safe, shown
from logbroker.client.dead_letter_admin import (
    DeadLetterFilter,
    DeadLetterInfo,
    DeadLetterRecord,
    RedriveInfo,
)

LETTER_COLUMNS = (
    "partition", "offset", "state", "source offset", "dead since", "failures", "redrives", "key",
    "reason",
)  # fmt: skip
REDRIVE_COLUMNS = (
    "redrive", "topic", "state", "selected", "redriven", "resolved", "parked again", "started",
    "ended",
)  # fmt: skip
LETTER_INT64 = {
    "offset", "source_offset", "source_append_time_ms", "first_failure_ms", "last_failure_ms",
    "dead_lettered_ms", "timestamp_ms", "value_bytes",
}  # fmt: skip
REASON_CHARS = 80
"""How much of a reason a table shows."""


def letter_row(letter: DeadLetterInfo) -> tuple[str, ...]:
    """Returns the dead letter, in the order of LETTER_COLUMNS."""
    reason = letter.reason
    return (
        str(letter.partition),
        str(letter.offset),
        letter.state,
        str(letter.source_offset),
        show_time(letter.dead_lettered_ms),
        str(letter.failures),
        str(letter.redrives),
        shown(letter.key, limit=40),
        reason if len(reason) <= REASON_CHARS else f"{reason[:REASON_CHARS]}...",
    )


def letter_fields(letter: DeadLetterInfo) -> dict[str, Any]:
    """Returns the dead letter for JSON: int64 as strings."""
    fields: dict[str, Any] = {}
    for name in DeadLetterInfo.__slots__:
        value = getattr(letter, name)
        if name == "key":
            fields |= bytes_field("key", value)
        else:
            fields[name] = str(value) if name in LETTER_INT64 else value
    return fields


def letter_for_people(found: DeadLetterRecord, *, full: bool) -> dict[str, str]:
    """Returns the dead letter and its record, by names in words."""
    letter, limit = found.dead_letter, None if full else SHOWN_BYTES
    headers = {
        f"header {safe(header.name)}": shown(header.value, limit=limit) for header in found.headers
    }
    here = {"partition": str(letter.partition), "offset": str(letter.offset), "state": letter.state}
    came_here = show_time(letter.dead_lettered_ms)
    if letter.dead_letter_topic:
        place = {"dead-letter topic": letter.dead_letter_topic} | here
        place["source topic"] = letter.source_topic
        place["source topic id"] = letter.source_topic_id
        place["source offset"] = str(letter.source_offset)
        place["source appended"] = show_time(letter.source_append_time_ms)
        place["dead since"] = came_here
    else:
        place = {"topic": letter.source_topic} | here
        place["appended"] = show_time(letter.source_append_time_ms)
        place["blocked since"] = came_here
    return {
        **place,
        "failures": str(letter.failures),
        "first failure": show_time(letter.first_failure_ms),
        "last failure": show_time(letter.last_failure_ms),
        "reason": letter.reason,
        "redrives": str(letter.redrives),
        "timestamp": show_time(letter.timestamp_ms),
        "key": shown(letter.key, limit=limit),
        **headers,
        "value": shown(found.value, limit=limit),
    }


def record_fields(found: DeadLetterRecord) -> dict[str, Any]:
    """Returns the dead letter and its record for JSON."""
    return (
        letter_fields(found.dead_letter)
        | bytes_field("value", found.value)
        | {"headers": headers_field(found.headers)}
    )


def redrive_row(redrive: RedriveInfo) -> tuple[str, ...]:
    """Returns the redrive, in the order of REDRIVE_COLUMNS."""
    return (
        redrive.redrive_id,
        redrive.filter.topic + (" (blocked)" if redrive.filter.blocked else ""),
        redrive.state,
        str(redrive.selected_count),
        str(redrive.redriven_count),
        str(redrive.resolved_count),
        str(redrive.parked_again_count),
        show_time(redrive.started_ms),
        show_time(redrive.ended_ms) if redrive.ended_ms else "-",
    )


def redrive_fields(redrive: RedriveInfo) -> dict[str, Any]:
    """Returns the redrive for JSON: int64 as strings."""
    return {
        "redrive_id": redrive.redrive_id,
        "filter": _filter_fields(redrive.filter),
        "state": redrive.state,
        "selected_count": str(redrive.selected_count),
        "redriven_count": str(redrive.redriven_count),
        "resolved_count": str(redrive.resolved_count),
        "parked_again_count": str(redrive.parked_again_count),
        "started_ms": str(redrive.started_ms),
        "ended_ms": str(redrive.ended_ms) if redrive.ended_ms else None,
        "records_per_second": redrive.records_per_second,
    }


def found_fields(redrive: RedriveInfo) -> dict[str, Any]:
    """Returns what a redrive would be about, for JSON: the fields that say something then."""
    names = ("filter", "selected_count", "records_per_second")
    fields = redrive_fields(redrive)
    return {name: fields[name] for name in names}


def _filter_fields(which: DeadLetterFilter) -> dict[str, Any]:
    """Returns what restricts, and only that."""
    fields: dict[str, Any] = {"group": which.group, "topic": which.topic}
    if which.blocked:
        fields["blocked"] = True
    if which.partition is not None:
        fields["partition"] = which.partition
    for name in ("first_offset", "end_offset", "from_ms", "until_ms"):
        if (value := getattr(which, name)) is not None:
            fields[name] = str(value)
    if which.reason_contains:
        fields["reason_contains"] = which.reason_contains
    if which.key is not None:
        fields |= bytes_field("key", which.key)
    if which.limit:
        fields["limit"] = str(which.limit)
    return fields
