"""How the C library's allocator treats the buffers of large batches.

By default glibc gives the memory of a freed buffer of a MiB back to the system, and the next
one pays for each of its pages again: measured on a virtual machine, 1.4 ms to serialize a
batch of 1 MB, and 0.08 ms when the memory is kept. See mallopt(3). What a burst has left
behind goes back once the process has come to rest: see malloc_trim(3).
"""

import asyncio
import ctypes
import platform
import resource
from collections.abc import Awaitable, Callable

from logbroker.clock import Clock

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h
KEPT_BYTES = 16 << 20
"""Free memory at the end of a heap that is kept."""
STEP_BYTES = 1 << 20
"""By how much a heap grows at least."""
MAPPED_BYTES = 32 << 20
"""Only buffers from this size on are mapped by themselves; the greatest value there is."""
LOOK_MS = 2_000
REST = 0.05
"""Of one CPU: whoever uses less is at rest."""


def keep_freed_memory() -> None:
    """Lets this process keep up to 16 MiB of freed memory. Does nothing but with glibc."""
    if not _is_glibc():
        return
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    mallopt(M_TOP_PAD, STEP_BYTES)


def give_back() -> None:
    """Gives freed memory back to the system. Takes ms; in a thread others go on meanwhile."""
    if _is_glibc():
        ctypes.CDLL(None).malloc_trim(0)


async def give_back_at_rest(
    clock: Clock,
    *,
    used_s: Callable[[], float] | None = None,
    give: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Gives back whenever the process comes to rest, once; until it is cancelled.

    `used_s` returns the CPU seconds used so far.
    """
    used_s, give = used_s or _used_s, give or _give_back_in_thread
    used, is_owed = used_s(), True
    while True:
        await clock.wait_until(clock.monotonic_ms() + LOOK_MS)
        before, used = used, used_s()
        is_busy = used - before > REST * LOOK_MS / 1_000
        if is_owed and not is_busy:
            await give()
        is_owed = is_busy


async def _give_back_in_thread() -> None:
    await asyncio.to_thread(give_back)


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"
