"""The headers a dead letter carries beside the record's own. Pure.

They have names with PREFIX, so they can be told apart from the user's; a record that is
dead-lettered again (copied elsewhere, failed there) has them replaced, not piled up.
"""

from collections.abc import Iterable
from typing import NamedTuple

from logbroker.errors import DataLossError
from logbroker.group.failing import cut
from logbroker.group.last_failures import Failure
from logbroker.record.record import Header

PREFIX = "logbroker-dead-letter-"


class DeadLetter(NamedTuple):
    """Where a dead letter came from, and why."""

    topic: str
    topic_id: str
    partition: int
    offset: int
    append_time_ms: int
    """In the source topic."""
    group: str
    failures: int
    first_failure_ms: int
    last_failure_ms: int
    """Of the failure, or the reject, that was the last."""
    reason: str
    redrives: int = 0
    """How often it had been redriven before it came here."""


TEXTS = frozenset({"topic", "topic_id", "group", "reason"})
FIELD_NAMES = {field: PREFIX + field.replace("_", "-") for field in DeadLetter._fields}
FIELDS = {name: field for field, name in FIELD_NAMES.items()}


def with_dead_letter(headers: Iterable[Header], letter: DeadLetter) -> tuple[Header, ...]:
    """Returns the record's own headers, in their order, then ours. Older ones of ours are gone."""
    told = letter._replace(reason=cut(letter.reason))._asdict()
    ours = (Header(FIELD_NAMES[field], str(value).encode()) for field, value in told.items())
    return (*own_headers(headers), *ours)


def own_headers(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Returns the headers that the record had before it became a dead letter."""
    return tuple(header for header in headers if not header.name.startswith(PREFIX))


def dead_letter_of(headers: Iterable[Header]) -> DeadLetter:
    """Returns what our headers say; DataLossError where they do not say it all."""
    found = {
        FIELDS[header.name]: (header.value or b"").decode("utf-8", "replace")
        for header in headers
        if header.name in FIELDS
    }
    try:
        values = {
            field: found[field] if field in TEXTS else int(found[field])
            for field in DeadLetter._fields
        }
    except (KeyError, ValueError) as error:
        raise DataLossError(
            "DAMAGED_BATCH", f"not the headers of a dead letter: {error}"
        ) from error
    return DeadLetter(**values)  # type: ignore[arg-type]  # each read as its field's type


def with_last_failure(letter: DeadLetter, failure: Failure | None) -> DeadLetter:
    """Returns it as it stands now: the headers tell of the time before any redrive."""
    if failure is None:
        return letter
    return letter._replace(
        failures=failure.failures, last_failure_ms=failure.at_ms, reason=failure.reason
    )


def is_dead_letter(headers: Iterable[Header]) -> bool:
    """Returns whether the record carries our headers."""
    return any(header.name in FIELDS for header in headers)


def is_dead_letter_of(headers: Iterable[Header], topic_id: str) -> bool:
    """Returns whether the record came from this incarnation of a topic."""
    return Header(FIELD_NAMES["topic_id"], topic_id.encode()) in headers
