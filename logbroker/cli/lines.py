"""Input as numbered lines, read without holding up anything else.

A line ends with a newline and nothing else; the last one may lack it. Lines come in
blocks, as many as have arrived, so that what is typed goes at once and what is piped goes
in bulk.
"""

import asyncio
from collections.abc import AsyncIterator
from threading import Thread
from typing import NamedTuple, Protocol

from logbroker.errors import InvalidError
from logbroker.limits import BATCH_BYTES_CEILING

CHUNK_BYTES = 1 << 20
LINE_BYTES = 2 * BATCH_BYTES_CEILING
"""The longest line: the largest record that a broker can be set to, as base64."""


class Source(Protocol):
    """A file or pipe, unbuffered."""

    def read(self, size: int = -1, /) -> bytes | None:
        """Returns what there is, `size` bytes at most; nothing at the end."""


class Block(NamedTuple):
    """Lines without their ends. `first` is the number of the first one, from 1."""

    first: int
    lines: list[bytes]
    size: int
    """Bytes of the input that it is made of."""


async def read_blocks(source: Source) -> AsyncIterator[Block]:
    """Yields the input's lines in order; InvalidError for one that no record could be."""
    first, parts, held = 1, list[bytes](), 0
    while chunk := await _read(source):
        held += len(chunk)
        parts.append(chunk)
        if b"\n" in chunk:
            *lines, rest = b"".join(parts).split(b"\n")
            yield Block(first, lines, held - len(rest))
            first += len(lines)
            parts, held = [rest] if rest else [], len(rest)
        if held > LINE_BYTES:
            message = f"line {first} has more than {LINE_BYTES} bytes"
            raise InvalidError("RECORD_TOO_LARGE", message, line=first)
    if held:
        yield Block(first, [b"".join(parts)], held)


async def _read(source: Source) -> bytes:
    """Returns the next chunk. Read in a thread that may be left behind: a terminal never ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()

    def resolve(data: bytes, error: OSError | None) -> None:
        if done.done():
            return
        if error:
            done.set_exception(error)
        else:
            done.set_result(data)

    def read() -> None:
        try:
            data, failure = source.read(CHUNK_BYTES) or b"", None
        except OSError as error:
            data, failure = b"", error
        if not loop.is_closed():
            loop.call_soon_threadsafe(resolve, data, failure)

    Thread(target=read, daemon=True).start()
    return await done
