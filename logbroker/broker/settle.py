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
from logbroker.record.offset_ranges import OffsetRanges, Range

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


class Acknowledgements:
    """Some that do not overlap, so that none changes what another finds."""

    def __init__(self) -> None:
        self.settlements: list[Settlement] = []
        self.claimed: dict[int, OffsetRanges] = {}
        """By token."""
        self.ledger_ids: dict[int, LedgerId] = {}

    def add(self, one: Settlement) -> bool:
        """Takes it in; False where it overlaps with one that is there."""
        claimed = self.claimed.get(one.token)
        if claimed is None:
            claimed = self.claimed[one.token] = OffsetRanges()
        elif claimed.meets(one.first, one.end):
            return False
        claimed.add(one.first, one.end)
        self.settlements.append(one)
        return True

    def clear(self) -> None:
        """Begins anew."""
        self.settlements.clear()
        self.claimed.clear()
        self.ledger_ids.clear()


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
        run = Acknowledgements()
        for one in settlements:
            try:
                if one.cause is Cause.ACKNOWLEDGE and 0 <= one.first < one.end:
                    if one.token not in run.ledger_ids:
                        run.ledger_ids[one.token] = self._ledger_of(group, one.token, member)
                    if run.add(one):
                        continue
                self._acknowledge(run, results, waits)
                ledger_id = self._ledger_of(group, one.token, member)
                await self._settle_one(ledger_id, one, waits)
                committed = self._groups.ledger(ledger_id).state.committed
                results.append(SettleResult(committed))
            except LogbrokerError as error:
                self._acknowledge(run, results, waits)
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
        self, run: Acknowledgements, results: list[SettleResult], waits: "list[Future[Any]]"
    ) -> None:
        """Settles a run of acknowledgements, by lease; one by one where a lease has lost any."""
        groups = self._groups
        decided: list[InLedger] = []
        failures: dict[Settlement, LogbrokerError] = {}
        for token, claimed in run.claimed.items():
            ledger_id = run.ledger_ids[token]
            try:
                decided += self._acknowledged(ledger_id, token, claimed.ranges())
            except LogbrokerError:
                for one in run.settlements:
                    if one.token == token:
                        try:
                            decided += self._acknowledged(ledger_id, token, [(one.first, one.end)])
                        except LogbrokerError as error:
                            failures[one] = error
        failed: LogbrokerError | None = None
        try:
            if decided:
                waits.append(groups.commit(decided))
        except LogbrokerError as error:
            failed = error
        committed = {
            token: ledger.state.committed if (ledger := groups.state.get(ledger_id)) else 0
            for token, ledger_id in run.ledger_ids.items()
        }
        for one in run.settlements:
            failure = failures.get(one) if failures else None
            if failed and not failure:
                failure = failed.again()
            results.append(SettleResult(committed[one.token], failure))
        run.clear()

    def _acknowledged(
        self, ledger_id: LedgerId, token: int, ranges: Sequence[Range]
    ) -> list[InLedger]:
        groups = self._groups
        events = groups.ledger(ledger_id).decide_settle(
            token, ranges, Cause.ACKNOWLEDGE, groups.moment(), groups.random
        )
        return [InLedger(ledger_id, event) for event in events]

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
