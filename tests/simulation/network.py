"""A network of links, each of which keeps the order of what it carries until it is cut.

    quiet cut    what is under way and what is sent later is lost; both ends wait for a probe
    loud cut     the same, and both ends hear of it soon; part of what is under way may arrive

So a request may arrive and its answer not, or the other way round; nothing arrives twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from .loop import Process

LATENCY_S = 0.00005, 0.002
LATE_S = 0.02, 0.5
PROBE_S = 2.0, 4.5
"""When keepalive notices that nobody is there."""
SOON_S = 0.0, 0.05


class End(Protocol):
    """One end of a link."""

    process: Process

    def link_lost(self, link: "Link") -> None:
        """Hears that the link is no more."""


class Network:
    """Who listens where, and all links."""

    def __init__(self, random: Random, counts: Counter[str]) -> None:
        self.random = random
        self.counts = counts
        self.late_chance = 0.0
        """That a message takes long."""
        self.is_parted = False
        """Nobody can connect."""
        self.listening: dict[str, Any] = {}
        self.on_cut: list[Callable[[Process], None]] = []
        """Called with the process at either end when a link is cut."""
        self.links: list[Link] = []
        self.link_count = 0

    def latency_s(self) -> float:
        """Returns how long the next message takes."""
        is_late = self.random.random() < self.late_chance
        if is_late:
            self.counts["messages delayed"] += 1
        return self.random.uniform(*(LATE_S if is_late else LATENCY_S))

    def cut(self, link: "Link", *, is_loud: bool) -> None:
        """Cuts a link."""
        self.counts["connections dropped" if is_loud else "connections gone silent"] += 1
        link.cut(is_loud=is_loud)

    def process_killed(self, process: Process, *, is_loud: bool = True) -> None:
        """Cuts all links of a process that is dead; loudly, if its machine lives on."""
        for link in list(self.links):
            if any(end.process is process for end in link.ends):
                link.cut(is_loud=is_loud)
        for address, server in list(self.listening.items()):
            if server.process is process:
                del self.listening[address]


class Link:
    """Between two ends."""

    def __init__(self, network: Network, client: End, server: End) -> None:
        self.ends = (client, server)
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._last = [0.0, 0.0]
        """When the last message arrives, by the end that gets it."""
        self._lost_from: list[float | None] = [None, None]
        self._is_told = [False, False]
        network.links.append(self)
        network.link_count += 1
        self.number = network.link_count

    @property
    def is_cut(self) -> bool:
        """Whether nothing that is sent arrives any more."""
        return self._lost_from[0] is not None

    def send(self, to: End, deliver: Callable[..., None], *args: Any) -> None:
        """Calls `deliver` at the other end after a while, or never."""
        if self.is_cut:
            return
        side = self.ends.index(to)
        now = self._loop.time()
        at = max(self._last[side] + 1e-7, now + self._network.latency_s())
        self._last[side] = at
        self._loop.call_at(at, self._arrive, side, at, deliver, args, context=to.process.context)

    def cut(self, *, is_loud: bool) -> None:
        """Cuts it, both ways."""
        if self.is_cut:
            return
        random, now = self._network.random, self._loop.time()
        for end in self.ends:
            for call in self._network.on_cut:
                call(end.process)
        for side, end in enumerate(self.ends):
            tail_s = random.choice([0.0, random.uniform(*SOON_S)]) if is_loud else 0.0
            self._lost_from[side] = now + tail_s
            told_s = tail_s + random.uniform(*(SOON_S if is_loud else PROBE_S))
            self._loop.call_at(now + told_s, self.tell, side, context=end.process.context)
        self._network.links.remove(self)

    def close(self, by: End) -> None:
        """Ends it in order, by one end: what it has sent still arrives."""
        if self.is_cut:
            return
        own = self.ends.index(by)
        other = self.ends[1 - own]
        self._is_told[own] = True
        self.send(other, self.tell, 1 - own)
        now = self._loop.time()
        self._lost_from = [now, now]
        self._lost_from[1 - own] = self._last[1 - own] + 1e-6
        self._network.links.remove(self)

    def tell(self, side: int) -> None:
        """Tells one end that the link is no more."""
        if not self._is_told[side]:
            self._is_told[side] = True
            self.ends[side].link_lost(self)

    def _arrive(self, side: int, at: float, deliver: Callable[..., None], args: Any) -> None:
        lost_from = self._lost_from[side]
        if lost_from is not None and at > lost_from:
            self._network.counts["messages lost"] += 1
            return
        if not self._is_told[side]:
            deliver(*args)
