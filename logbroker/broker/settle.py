"""Settling leased records, and moving the deadlines of leases: each entry answered on its own.

Acknowledgements that follow one another are one journal record.
"""

import asyncio
from asyncio import Future
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.groups import Answered, Groups
from logbroker.errors import ConflictError, InvalidError, LogbrokerError
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.record_state import Cause
from logbroker.record.offset_ranges import OffsetRanges

EXTENSION_MS = 12 * 3_600_000
"""The longest a lease can be extended to, from now."""
DELAY_MS = 365 * 24 * 3_600_000
"""The longest a retry can be put off."""


class Settlement(NamedTuple):
    """An answer for one range of leased records."""

    token: int
    first: int
    end: int
    cause: Cause | None
    """None: one that there is not, which is refused."""
    delay_ms: int | None = None
    reason: str = ""


class SettleResult(NamedTuple):
    """What became of it: the committed offset then, or an error."""

    committed: int
    error: LogbrokerError | None = None


class Settled:
    """Results that are true once they are done."""

    def __init__(self, results: list[SettleResult], waits: "list[Future[Any]]") -> None:
        self._results = results
        self._waits = waits

    @property
    def is_done(self) -> bool:
        """Returns whether there is nothing to wait for."""
        return all(wait.done() for wait in self._waits)

    def call_when_done(self, told: asyncio.Event) -> None:
        """Sets the event whenever something that is waited for is done."""
        for wait in self._waits:
            wait.add_done_callback(lambda _: told.set())

    def results(self) -> list[SettleResult]:
        """Returns the results, once it is done; errors where they could not be made durable."""
        for wait in self._waits:
            error = None if wait.cancelled() else wait.exception()
            if isinstance(error, LogbrokerError):
                return [
                    result if result.error else SettleResult(result.committed, error.again())
                    for result in self._results
                ]
        return self._results

    async def wait_results(self) -> list[SettleResult]:
        """Returns the results once they are true."""
        if self._waits:
            await asyncio.wait(self._waits)
        return self.results()


class Settle:
    """Decides about answers, one after another."""

    def __init__(self, groups: Groups, dead_letters: DeadLetters) -> None:
        self._groups = groups
        self._dead_letters = dead_letters

    async def settle(
        self, group: str, settlements: Sequence[Settlement], member: str = ""
    ) -> Settled:
        """Takes the answers now. `member`: who gives them; others' leases are not its own.

        Suspends only where a dead-letter topic must be made first.
        """
        results: list[SettleResult] = []
        waits: list[Future[Any]] = []
        run: list[tuple[LedgerId, Settlement]] = []
        """Acknowledgements that are decided together."""
        claimed: dict[int, OffsetRanges] = {}
        for one in settlements:
            try:
                ledger_id = self._ledger_of(group, one.token, member)
                mine = claimed.get(one.token)
                if one.cause is Cause.ACKNOWLEDGE and not (mine and mine.meets(one.first, one.end)):
                    claimed.setdefault(one.token, OffsetRanges()).add(one.first, one.end)
                    run.append((ledger_id, one))
                    continue
                self._acknowledge(run, results, waits)
                claimed.clear()
                await self._settle_one(ledger_id, one, waits)
                committed = self._groups.ledger(ledger_id).state.committed
                results.append(SettleResult(committed))
            except LogbrokerError as error:
                self._acknowledge(run, results, waits)
                claimed.clear()
                results.append(SettleResult(0, error))
        self._acknowledge(run, results, waits)
        return Settled(results, waits)

    def extend(
        self, group: str, extensions: Iterable[tuple[int, int]], member: str = ""
    ) -> list[LogbrokerError | None]:
        """Moves deadlines: pairs of a token and ms from now, 0 for the group's `lease_ms`."""
        results: list[LogbrokerError | None] = []
        for token, lease_ms in extensions:
            try:
                if not 0 <= lease_ms <= EXTENSION_MS:
                    message = f"lease_ms is 0 to {EXTENSION_MS}, not {lease_ms}"
                    raise InvalidError("INVALID_ARGUMENT", message, lease_ms=lease_ms)
                ledger_id = self._ledger_of(group, token, member)
                ledger = self._groups.ledger(ledger_id)
                now = self._groups.moment()
                extended = ledger.decide_extend(token, lease_ms or ledger.settings.lease_ms, now)
                self._groups.commit_in(ledger_id, extended)
                results.append(None)
            except LogbrokerError as error:
                results.append(error)
        return results

    def _ledger_of(self, group: str, token: int, member: str) -> LedgerId:
        live = self._groups.live_group(group)
        ledger_id = live.ledger_of(token)
        ledger = self._groups.state.get(ledger_id) if ledger_id else None
        if ledger_id is None or ledger is None:
            raise ConflictError("LEASE_LOST", f"lease {token} is over", token=token)
        lease = ledger.state.leases.get(token) or ledger.state.leases.ended(token)
        if member and lease and lease.member != member:
            raise ConflictError("LEASE_LOST", f"lease {token} is another member's", token=token)
        return ledger_id

    def _acknowledge(
        self,
        run: list[tuple[LedgerId, Settlement]],
        results: list[SettleResult],
        waits: "list[Future[Any]]",
    ) -> None:
        """Settles acknowledgements that do not overlap: none changes what another finds."""
        groups = self._groups
        decided: list[InLedger] = []
        found: list[LogbrokerError | None] = []
        for ledger_id, one in run:
            try:
                events = groups.ledger(ledger_id).decide_settle(
                    one.token,
                    ((one.first, one.end),),
                    Cause.ACKNOWLEDGE,
                    groups.moment(),
                    groups.random,
                )
                decided += [InLedger(ledger_id, event) for event in events]
                found.append(None)
            except LogbrokerError as error:
                found.append(error)
        try:
            if decided:
                waits.append(groups.commit(decided))
        except LogbrokerError as error:
            found = [known or error.again() for known in found]
        for (ledger_id, _), failure in zip(run, found, strict=True):
            ledger = groups.state.get(ledger_id)
            results.append(SettleResult(ledger.state.committed if ledger else 0, failure))
        run.clear()

    async def _settle_one(
        self, ledger_id: LedgerId, one: Settlement, waits: "list[Future[Any]]"
    ) -> None:
        groups = self._groups
        ranges = ((one.first, one.end),)
        cause = one.cause
        if cause is None:
            raise InvalidError("INVALID_ARGUMENT", "there is no such outcome")
        if one.delay_ms is not None and not 0 <= one.delay_ms <= DELAY_MS:
            message = f"delay_ms is 0 to {DELAY_MS}, not {one.delay_ms}"
            raise InvalidError("INVALID_ARGUMENT", message, delay_ms=one.delay_ms)

        def decide() -> list[InLedger]:
            events = groups.ledger(ledger_id).decide_settle(
                one.token,
                ranges,
                cause,
                groups.moment(),
                groups.random,
                reason=one.reason,
                delay_ms=one.delay_ms,
            )
            return [InLedger(ledger_id, event) for event in events]

        decided = await self._dead_letters.decided(decide)
        if decided:
            waits.append(groups.commit(decided, Answered(one.token, ranges)))
