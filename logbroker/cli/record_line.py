"""Records as lines for people: safe for a terminal, long values cut. Pure.

    PARTITION      OFFSET  TIMESTAMP                 KEY  VALUE
            0          12  2026-07-01T12:00:00.000Z  k    v  {trace=abc, retry=(null)}

Null and empty are `(null)` and `(empty)`; a value that says so itself looks the same, and
JSON tells them apart.
"""

import re
from collections.abc import Callable

import typer

from logbroker.cli.moment import show_time
from logbroker.cli.text import SHOWN_BYTES, safe, shown
from logbroker.client.delivered import Delivered
from logbroker.record.record import Record

TITLES = f"{'PARTITION':>9}  {'OFFSET':>10}  {'TIMESTAMP':<24}  KEY  VALUE"
FIELDS = ("partition", "offset", "time", "timestamp_ms", "key", "value", "headers", "size")
DELIVERED_TITLES = f"{'TOPIC':<12}  {TITLES.removesuffix('KEY  VALUE')}{'DELIVERY':>8}  KEY  VALUE"
DELIVERED_FIELDS = (*FIELDS, "topic", "delivery_number", "failures", "redrives")
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}

_FIELD = re.compile(r"\{([^{}]*)\}")
_ESCAPE = re.compile(r"\\[nt\\]")


def record_line(record: Record, *, full: bool) -> str:
    """Returns the line, without its end."""
    return f"{_place(record)}  {_content(record, full=full)}"


def delivered_line(record: Delivered, *, full: bool) -> str:
    """Returns the line, without its end, with its topic and how often it has been delivered."""
    delivery = f"{record.delivery_number:>8}"
    return f"{record.topic:<12}  {_place(record)}  {delivery}  {_content(record, full=full)}"


def line_template(
    template: str, *, full: bool, fields: tuple[str, ...] = FIELDS
) -> Callable[[Record], str]:
    r"""Returns what prints records by a template: `{offset} {key}\n`.

    typer.BadParameter for a field there is not. Without a line end in it, it gets one.
    """
    limit = None if full else SHOWN_BYTES
    text = _ESCAPE.sub(lambda match: ESCAPES[match[0]], template)
    if unknown := [name for name in _FIELD.findall(text) if name not in fields]:
        raise typer.BadParameter(f"no field {unknown[0]!r}; they are {', '.join(fields)}")
    if not text.endswith("\n"):
        text += "\n"

    def line(record: Record) -> str:
        return _FIELD.sub(lambda match: _field(record, match[1], limit), text)

    return line


def _place(record: Record) -> str:
    return f"{record.partition:>9}  {record.offset:>10}  {show_time(record.timestamp_ms):<24}"


def _content(record: Record, *, full: bool) -> str:
    limit = None if full else SHOWN_BYTES
    line = f"{shown(record.key, limit=limit)}  {shown(record.value, limit=limit)}"
    return f"{line}  {{{_headers(record, limit)}}}" if record.headers else line


def _field(record: Record, name: str, limit: int | None) -> str:
    match name:
        case "time":
            return show_time(record.timestamp_ms)
        case "key":
            return shown(record.key, limit=limit)
        case "value":
            return shown(record.value, limit=limit)
        case "headers":
            return _headers(record, limit)
        case "size":
            return str(len(record.value or b""))
        case _:
            return str(getattr(record, name))


def _headers(record: Record, limit: int | None) -> str:
    return ", ".join(
        f"{safe(header.name)}={shown(header.value, limit=limit)}" for header in record.headers
    )
