"""What of the events of groups is journaled, and when: at once, or with what comes next.

What an answer waits for goes at once, and takes along what nothing waits for, mostly
deliveries; what is left of these goes a moment later. Once the journal has failed, what is
known here is ahead of the disk: groups serve no more.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

import structlog

from logbroker.clock import Clock
from logbroker.errors import LogbrokerError, UnavailableError
from logbroker.group import events
from logbroker.group.events import Event, InLedger
from logbroker.group.group_events import GroupSeen
from logbroker.group.ledger_events import KEEPING, Keeping
from logbroker.storage.engine import Engine
from logbroker.storage.journal import Journal
from logbroker.topic.names import GROUPS_TOPIC

MOST_LATER = 10_000
"""So many events wait for a disk that is full; then their deliveries are not counted."""
LATER_MS = 10
"""The longest that what nothing waits for stays out of the journal: mostly an answer comes first,
and both share a flush."""

log = structlog.get_logger()


class GroupsJournal:
    """Of all groups."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self.failure: LogbrokerError | None = None
        self.on_failure: Callable[[LogbrokerError], None] = lambda _: None
        self.has_failed = journal.has_failed
        self._journal = journal
        self._clock = clock
        self._spawn: Callable[[Coroutine[Any, Any, None]], object] | None = None
        self._later: list[Event] = []
        self._has_later = asyncio.Event()
        self._is_shortening = False
        self._so_far: Future[Any] = asyncio.get_running_loop().create_future()
        self._so_far.set_result(None)

    @classmethod
    async def open(cls, engine: Engine, clock: Clock) -> "GroupsJournal":
        """Returns the journal, made if need be."""
        return cls(await Journal.open(engine, GROUPS_TOPIC, clock), clock)

    async def replay(self) -> list[Event]:
        """Returns what happened since the last snapshot, which comes first."""
        return [events.decode(data) for data in await self._journal.replay()]

    def start(self, spawn: Callable[[Coroutine[Any, Any, None]], object]) -> None:
        """Begins to flush what was kept for later; `spawn` runs work in the background."""
        self._spawn = spawn
        spawn(self._flush_later())

    def keep(self, decided: Sequence[Event]) -> "Future[Any]":
        """Takes events; what it returns is done once all that an answer may rest on is durable.

        That is, these and all before. Raises what the journal does, and nothing is kept then.
        """
        keeping = [_keeping(event) for event in decided]
        if Keeping.FIRST in keeping:
            self._so_far = self._append([*self._later, *_kept(decided, keeping)])
            self._later.clear()
        elif Keeping.LATER in keeping:
            self._later += _kept(decided, keeping)
            self._has_later.set()
        return self._so_far

    def flush(self) -> None:
        """Writes what was kept for later; where the disk does not take it, with what comes next."""
        if not self._later:
            return
        written, self._later = self._later, []
        try:
            self._append(written)
        except LogbrokerError as error:
            if self.failure is None and len(written) <= MOST_LATER:
                self._later = written
            count = len(written) - len(self._later)
            log.warning("deliveries not journaled", reason=error.reason, dropped=count)

    @property
    def wants_snapshot(self) -> bool:
        """Whether a snapshot would shorten the next replay."""
        return self._journal.wants_snapshot

    async def shorten(self, known: Callable[[], Iterable[Event]]) -> None:
        """Writes a snapshot: what is known when it is written."""
        try:
            self.flush()
            await self._journal.snapshot([events.encode(event) for event in known()])
        except LogbrokerError as error:
            log.warning("journal not shortened", journal=GROUPS_TOPIC, reason=error.reason)
        finally:
            self._is_shortening = False

    def shorten_soon(self, known: Callable[[], Iterable[Event]]) -> None:
        """Does so in the background, once the groups have started, and one at a time."""
        if self._spawn and not self._is_shortening:
            self._is_shortening = True  # from now on, or each commit of this turn writes one
            self._spawn(self.shorten(known))

    async def _flush_later(self) -> None:
        while True:
            await self._has_later.wait()
            await self._clock.wait_until(self._clock.monotonic_ms() + LATER_MS)
            self._has_later.clear()
            self.flush()

    def _append(self, written: Sequence[Event]) -> "Future[Any]":
        try:
            appended = self._journal.append([events.encode(event) for event in written])
        except LogbrokerError as error:
            self._note_failure(error)
            raise
        appended.add_done_callback(self._see)
        return appended

    def _see(self, done: "Future[Any]") -> None:
        """Takes note of what became of events that are applied already."""
        error = None if done.cancelled() else done.exception()
        if isinstance(error, LogbrokerError):
            self._note_failure(error)

    def _note_failure(self, error: LogbrokerError) -> None:
        if self.has_failed.is_set() and self.failure is None:
            message = f"groups serve no more until the broker is started again: {error}"
            self.failure = UnavailableError("STORAGE_FAILED", message, **error.details)
            log.error("groups have failed", error=message)
            self.on_failure(self.failure)


def _keeping(event: Event) -> Keeping:
    if isinstance(event, InLedger):
        return KEEPING[type(event.event)]
    return Keeping.LATER if isinstance(event, GroupSeen) else Keeping.FIRST


def _kept(decided: Sequence[Event], keeping: Sequence[Keeping]) -> list[Event]:
    """Returns those that are journaled."""
    return [event for event, one in zip(decided, keeping, strict=True) if one is not Keeping.NEVER]
