"""A small file of one JSON object: its line, and one with the CRC-32C of that line. Pure.

{"format":1, ...}
crc32c 0a1b2c3d
"""

import json
from typing import Any

from crc32c import crc32c


def encode(values: dict[str, Any]) -> bytes:
    """Returns the bytes of the file; `values` have a `format`."""
    line = json.dumps(values, separators=(",", ":")).encode() + b"\n"
    return line + _check(line)


def decode(data: bytes, known_format: int) -> dict[str, Any] | None:
    """Returns the values without their format; None if these are not all bytes of such a file."""
    line, separator, check = data.partition(b"\n")
    line += separator
    if check != _check(line):
        return None
    try:
        values = json.loads(line)
        return values if values.pop("format") == known_format else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _check(line: bytes) -> bytes:
    return b"crc32c %08x\n" % crc32c(line)
