"""A publisher with a rate to keep, whose records say when they were due.

Records go in ticks of 1 ms. A record's time is that at which its tick began to be sent; where
a tick is late by more than another, because the client was held up, the time at which it was
due: waiting is then in the latencies, as it would be for whoever had the record to publish.
All ticks that are due are sent together. When the time is over, what was due and could not
be sent is not sent any more: a publisher that is behind would be for long.
"""

import asyncio
import threading
from collections.abc import Callable
from time import perf_counter, sleep

from bench.peers.system import Sender
from bench.records import Records

TICK_S = 0.001
LATE_S = 0.1
"""So long after its end a publisher that was held up may send what is left."""


def value_stamp(time_s: float, size: int) -> bytes:
    """Returns a value of this size that says a time."""
    return int(time_s * 1e9).to_bytes(8, "big").ljust(size)


class PacedSender:
    """Sends at a rate."""

    def __init__(self, sender: Sender, rate: int, size: int) -> None:
        self._sender = sender
        self._each = max(1, round(rate * TICK_S))
        self._size = size
        self._keys = [b"key-%06d" % number for number in range(self._each)]
        self._tick_s = self._each / rate
        self.sent = 0
        """Records, so far."""

    async def run(self, seconds: float) -> float:
        """Returns records a second, until all were answered."""
        ticks = max(1, round(seconds / self._tick_s))
        begun = perf_counter()
        sent = 0
        async with Ticker(begun, self._tick_s, ticks) as ticker:
            while sent < ticks:
                await ticker.wait_tick(sent)
                now = perf_counter()
                if now > begun + seconds + LATE_S:
                    break
                due = min(ticks, max(sent, int((now - begun) / self._tick_s)) + 1)
                stamps = [stamp_of(begun + tick * self._tick_s, now) for tick in range(sent, due)]
                values = [value_stamp(stamp, self._size) for stamp in stamps]
                values = [value for value in values for _ in self._keys]
                await self._sender.send(Records(values, self._keys * len(stamps)))
                sent, self.sent = due, due * self._each
                await asyncio.sleep(0)  # the client has its own things to do
        await self._sender.flush()
        return self.sent / max(perf_counter() - begun, seconds)


def stamp_of(due_s: float, now_s: float) -> float:
    """Returns the time that the records of a tick say."""
    return now_s if now_s - due_s <= TICK_S else due_s


class Ticker:
    """Tells the event loop of ticks, more precisely than its timers do: they have whole ms."""

    def __init__(self, begun: float, tick_s: float, ticks: int) -> None:
        self._begun = begun
        self._tick_s = tick_s
        self._ticks = ticks
        self._reached = -1
        self._moved = asyncio.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    async def wait_tick(self, number: int) -> None:
        """Returns when that tick is due."""
        while self._reached < number:
            self._moved.clear()
            await self._moved.wait()

    async def __aenter__(self) -> "Ticker":
        call_soon: Callable[..., object] = asyncio.get_running_loop().call_soon_threadsafe
        self._thread = threading.Thread(target=self._tick, args=(call_soon,))
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ended.set()
        assert self._thread
        self._thread.join()

    def _tick(self, call_soon: Callable[..., object]) -> None:
        for number in range(self._ticks):
            left = self._begun + number * self._tick_s - perf_counter()
            if left > 0:
                sleep(left)
            if self._ended.is_set():
                return
            call_soon(self._reach, number)

    def _reach(self, number: int) -> None:
        self._reached = number
        self._moved.set()
