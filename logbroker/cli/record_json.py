"""Records as JSON, both ways: what `fetch -o json` prints, `produce --format json` takes. Pure.

One object a line, in ASCII:

    {"partition": 0, "offset": "12", "timestamp_ms": "1782900000000",
     "key": "k", "value": null, "headers": [{"name": "n", "value": "v"}]}

    key, value    text; null is null and "" is empty; as "key_base64", "value_base64"
                  where the bytes are no UTF-8. One of the two names, never both
    headers       a list in the records' order, doubles kept; each value as above
    int64         offset, timestamp_ms: strings, since JSON numbers lose digits in many
                  readers; numbers are taken too

`consume -o json` adds what the group knows of the record: its topic, `delivery_number`,
`failures` and `redrives`.

Given to `produce`, all may be left out: no key is a null key, no timestamp is now.
`offset` is what the record had where it came from, and has no effect; nor has what a group
knew of it.
"""

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, NamedTuple

from logbroker.client.delivered import Delivered
from logbroker.record.record import Header, Record

FIELDS = {
    "topic", "partition", "offset", "timestamp_ms", "key", "key_base64", "value", "value_base64",
    "headers", "delivery_number", "failures", "redrives",
}  # fmt: skip
HEADER_FIELDS = {"name", "value", "value_base64"}
INT64 = range(-(1 << 63), 1 << 63)
INT32 = range(1 << 31)


class RecordDraft(NamedTuple):
    """A record that is to be produced."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None
    """None: now."""
    partition: int | None = None
    """None: by the key."""


def record_to_json(record: Record) -> str:
    """Returns the line, without its end."""
    return json.dumps(_record_fields(record))


def delivered_to_json(record: Delivered) -> str:
    """Returns the line, without its end, with what the record's group knows of it."""
    fields = {
        "topic": record.topic,
        **_record_fields(record),
        "delivery_number": record.delivery_number,
        "failures": record.failures,
        "redrives": record.redrives,
    }
    return json.dumps(fields)


def draft_of_json(line: bytes) -> RecordDraft:
    """Returns the record of a line; ValueError says what is wrong with it."""
    fields = _object_of(line)
    _check_fields(fields, FIELDS, "the record")
    headers = fields.get("headers") or []
    if not isinstance(headers, list):
        raise ValueError("headers must be a list of objects")
    timestamp_ms, partition = fields.get("timestamp_ms"), fields.get("partition")
    return RecordDraft(
        _bytes_of(fields, "value"),
        _bytes_of(fields, "key"),
        tuple(map(_header_of, headers)),
        None if timestamp_ms is None else _int_of(timestamp_ms, "timestamp_ms", INT64),
        None if partition is None else _int_of(partition, "partition", INT32),
    )


def bytes_field(name: str, data: bytes | None) -> dict[str, str | None]:
    """Returns the field of a key or value: as text, or as base64 where it is none."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(data).decode()}


def headers_field(headers: Iterable[Header]) -> list[dict[str, str | None]]:
    """Returns the list of headers."""
    return [{"name": header.name, **bytes_field("value", header.value)} for header in headers]


def _record_fields(record: Record) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": str(record.offset),
        "timestamp_ms": str(record.timestamp_ms),
        **bytes_field("key", record.key),
        **bytes_field("value", record.value),
        "headers": headers_field(record.headers),
    }


def _object_of(line: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except RecursionError:
        raise ValueError("not a record as JSON: nested too deep") from None
    except UnicodeDecodeError:
        raise ValueError("not JSON: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    if not isinstance(fields, dict):
        raise ValueError("not a record as JSON: must be an object")
    return fields


def _header_of(fields: Any) -> Header:
    if not isinstance(fields, dict) or not isinstance(fields.get("name"), str):
        raise ValueError('a header must be an object with a "name" that is text')
    _check_fields(fields, HEADER_FIELDS, "a header")
    _encode(fields["name"], "a header's name")
    return Header(fields["name"], _bytes_of(fields, "value"))


def _check_fields(fields: dict[str, Any], known: set[str], owner: str) -> None:
    if unknown := sorted(fields.keys() - known):
        raise ValueError(
            f"{owner} has no field {unknown[0]!r}; they are {', '.join(sorted(known))}"
        )


def _bytes_of(fields: dict[str, Any], name: str) -> bytes | None:
    text, encoded = fields.get(name), fields.get(f"{name}_base64")
    if text is not None and encoded is not None:
        raise ValueError(f"both {name} and {name}_base64 are given")
    if text is not None:
        if not isinstance(text, str):
            raise ValueError(f"{name} must be text or null; encode JSON as text first")
        return _encode(text, name)
    if encoded is None:
        return None
    try:
        return b64decode(encoded, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ValueError(f"{name}_base64 must be base64") from None


def _encode(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name} holds half a surrogate pair, which is no text") from None


def _int_of(given: Any, name: str, values: range) -> int:
    is_digits = isinstance(given, str) and given.removeprefix("-").isdecimal() and given.isascii()
    is_whole = isinstance(given, int) and not isinstance(given, bool)
    if not ((is_digits and len(given) <= 20) or is_whole) or int(given) not in values:
        rule = f"must be a whole number, {values.start} to {values.stop - 1}"
        raise ValueError(f"{name} {rule}")
    return int(given)
