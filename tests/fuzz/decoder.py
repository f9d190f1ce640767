"""What is asked of whatever reads bytes from outside.

It returns a value, or refuses in the way it documents: with errors of certain kinds, or
with None. It takes a bounded time and memory. What was not changed comes back as it was.
"""

import resource
import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

MIB = 1 << 20
HUNG_S = 10
"""Of CPU time, for one input of some KiB."""
HEAVY_S = 0.01
"""What takes longer is done again, to see how much memory it takes."""
SPARE_BYTES = 2 << 30
"""What the process may take beside what it has: a bomb is a MemoryError, and kills no machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """One row of the table."""

    name: str
    samples: Callable[[], Sequence[bytes]]
    decode: Callable[[bytes], Any]
    refuses: tuple[type[Exception], ...] = ()
    """Beside None."""
    encode: Callable[[Any], bytes] | None = None
    """Makes the bytes of what `decode` returned."""
    mend: Callable[[bytes], bytes] | None = None
    """Makes lengths and checksums hold again."""
    most_bytes: int = 48 * MIB
    """Of memory, for any input of some KiB."""
    is_slow: bool = False
    """Takes a good part of a second, for other reasons than its input: there are fewer runs."""


class HungError(Exception):
    """A decoder came to no end."""


def is_taken(decoder: Decoder, data: bytes) -> bool:
    """Returns whether there is a value in the bytes. Fails where a decoder breaks its word."""
    started = time.process_time()
    taken = _is_taken(decoder, data)
    if time.process_time() - started > HEAVY_S and not decoder.is_slow:
        peak = peak_bytes(decoder, data)
        assert peak <= decoder.most_bytes, f"{decoder.name} takes {peak} bytes for {len(data)}"
    return taken


def peak_bytes(decoder: Decoder, data: bytes) -> int:
    """Returns how much memory it takes."""
    tracemalloc.start()
    try:
        _is_taken(decoder, data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def check_sample(decoder: Decoder, data: bytes) -> None:
    """Fails unless there is a value in the bytes that makes the same bytes again."""
    with bounded():
        value = decoder.decode(data)
    assert value is not None, f"{decoder.name} refuses what was written for it"
    if decoder.encode:
        assert decoder.encode(value) == data


def _is_taken(decoder: Decoder, data: bytes) -> bool:
    signal.setitimer(signal.ITIMER_VIRTUAL, HUNG_S)
    try:
        return decoder.decode(data) is not None
    except decoder.refuses:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextmanager
def bounded() -> Iterator[None]:
    """Ends what hangs with HungError, and what takes all memory with MemoryError."""

    def hung(*_: object) -> None:
        raise HungError(f"no end in {HUNG_S} s")

    with open("/proc/self/statm", encoding="ascii") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    before, limits = signal.signal(signal.SIGVTALRM, hung), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + SPARE_BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        signal.signal(signal.SIGVTALRM, before)
