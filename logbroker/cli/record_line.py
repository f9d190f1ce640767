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
from logbroker.record.record import Record

TITLES = f"{'PARTITION':>9}  {'OFFSET':>10}  {'TIMESTAMP':<24}  KEY  VALUE"
FIELDS = ("partition", "offset", "time", "timestamp_ms", "key", "value", "headers", "size")
ESCAPES = {"\\n": "\n", "\\t": "\t", "\\\\": "\\"}

_FIELD = re.compile(r"\{([^{}]*)\}")
_ESCAPE = re.compile(r"\\[nt\\]")


def record_line(record: Record, *, full: bool) -> str:
    """Returns the line, without its end."""
    limit = None if full else SHOWN_BYTES
    key, value = shown(record.key, limit=limit), shown(record.value, limit=limit)
    time = show_time(record.timestamp_ms)
    line = f"{record.partition:>9}  {record.offset:>10}  {time:<24}  {key}  {value}"
    return f"{line}  {{{_headers(record, limit)}}}" if record.headers else line


def line_template(template: str, *, full: bool) -> Callable[[Record], str]:
    r"""Returns what prints records by a template: `{offset} {key}\n`.

    typer.BadParameter for a field there is not. Without a line end in it, it gets one.
    """
    limit = None if full else SHOWN_BYTES
    text = _ESCAPE.sub(lambda match: ESCAPES[match[0]], template)
    if unknown := [name for name in _FIELD.findall(text) if name not in FIELDS]:
        raise typer.BadParameter(f"no field {unknown[0]!r}; they are {', '.join(FIELDS)}")
    if not text.endswith("\n"):
        text += "\n"

    def line(record: Record) -> str:
        return _FIELD.sub(lambda match: _field(record, match[1], limit), text)

    return line


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
