"""Foreign text, made safe for a terminal. Pure.

What a terminal would act on rather than show (control characters, marks that turn the
direction of writing, unassigned characters) is written as an escape; so are bytes that
are no UTF-8. A backslash stays as it is: where exactness matters, ask for JSON.

    \\x1b     a character below 80, or a byte that is not part of UTF-8
    \\u202e   another character that does not print
"""

SHOWN_BYTES = 200
"""How much of a key or value a line shows, unless all is asked for."""


def safe(text: str) -> str:
    """Returns the text with every character that does not print as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def safe_bytes(data: bytes) -> str:
    """Returns the bytes as UTF-8 where they are, with escapes where they are not."""
    return safe(data.decode("utf-8", "surrogateescape"))


def shown(data: bytes | None, *, limit: int | None = SHOWN_BYTES) -> str:
    """Returns a key or value for people: null and empty by name, long ones cut with their size."""
    if data is None:
        return "(null)"
    if not data:
        return "(empty)"
    if limit is None or len(data) <= limit:
        return safe_bytes(data)
    return f"{safe_bytes(data[: _whole(data, limit)])}... ({len(data)} bytes)"


def _whole(data: bytes, end: int) -> int:
    """Returns `end`, or up to three less, so that no UTF-8 sequence is cut."""
    for start in range(end, max(end - 4, -1), -1):
        if data[start] & 0xC0 != 0x80:
            return start
    return end


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # stands for a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
