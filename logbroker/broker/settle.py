"""Settling leased records, and moving the deadlines of leases: each entry answered on its own.

Answers that follow one another are one journal record, up to a number of them.
"""

import asyncio
from asyncio import Future
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.groups import Groups
from logbroker.broker.live_effects import Answered
from logbroker.errors import ConflictError, InvalidError, LogbrokerError
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.record_state import Cause
from logbroker.group.settings import Order
from logbroker.record.offset_ranges import OffsetRanges, Range

EXTENSION_MS = 12 * 3_600_000
"""The longest a lease can be extended to, from now."""
RUN_ACKNOWLEDGEMENTS = 1_024
RUN_OTHERS = 64
"""So many answers are decided in one turn of the loop: some ms."""
OTHER_COST = RUN_ACKNOWLEDGEMENTS // RUN_OTHERS
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


class Run:
    """Answers that follow one another: decided, and kept in the journal, as one."""

    def __init__(self) -> None:
        self.entries: list[Settlement] = []
        self.ledger_ids: dict[int, LedgerId] = {}
        """By token."""
        self._cost = 0

    def add(self, ledger_id: LedgerId, one: Settlement) -> None:
        """Takes it in."""
        self.entries.append(one)
        self.ledger_ids[one.token] = ledger_id
        self._cost += 1 if one.cause is Cause.ACKNOWLEDGE else OTHER_COST

    @property
    def is_full(self) -> bool:
        """Returns whether it keeps the loop for long enough."""
        return self._cost >= RUN_ACKNOWLEDGEMENTS

    def has_overlaps(self) -> bool:
        """Returns whether an answer may change what another finds."""
        claimed: dict[int, list[Range]] = {}
        for one in self.entries:
            claimed.setdefault(one.token, []).append((one.first, one.end))
        return any(
            OffsetRanges(ranges).count < sum(end - first for first, end in ranges)
            for ranges in claimed.values()
        )

    def acknowledged(self) -> dict[int, list[Settlement]]:
        """Returns the acknowledgements by their token."""
        found: dict[int, list[Settlement]] = {}
        for one in self.entries:
            if one.cause is Cause.ACKNOWLEDGE:
                found.setdefault(one.token, []).append(one)
        return found

    def others(self) -> list[Settlement]:
        """Returns the other answers."""
        return [one for one in self.entries if one.cause is not Cause.ACKNOWLEDGE]

    def answered(self) -> Answered:
        """Returns what the others are about."""
        found: Answered = {}
        for one in self.others():
            found.setdefault(one.token, OffsetRanges()).add(one.first, one.end)
        return found


class Settle:
    """Decides about answers, one after another."""

    def __init__(self, groups: Groups, dead_letters: DeadLetters) -> None:
        self._groups = groups
        self._dead_letters = dead_letters

    async def settle(
        self, group: str, settlements: Sequence[Settlement], member: str = ""
    ) -> Settled:
        """Takes the answers now. `member`: who gives them; others' leases are not its own.

        Suspends where a dead-letter topic must be made first, and lets others have a turn
        between many answers.
        """
        results: list[SettleResult] = []
        waits: list[Future[Any]] = []
        run, known = Run(), dict[int, LedgerId]()
        for one in settlements:
            try:
                _check(one)
                ledger_id = known.get(one.token)
                if ledger_id is None:
                    ledger_id = known[one.token] = self._ledger_of(group, one.token, member)
                stands_alone = self._reaches_far(ledger_id, one)
            except LogbrokerError as error:
                await self._settle_run(run, results, waits)
                run = Run()
                results.append(SettleResult(0, error))
                waits.append(self._groups.commit(()))  # it may rest on what is not yet durable
                continue
            if stands_alone or run.is_full:
                await self._settle_run(run, results, waits)
                if run.is_full:
                    await asyncio.sleep(0)
                run = Run()
            run.add(ledger_id, one)
            if stands_alone:
                await self._settle_run(run, results, waits)
                run = Run()
        await self._settle_run(run, results, waits)
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

    def _reaches_far(self, ledger_id: LedgerId, one: Settlement) -> bool:
        """Returns whether the answer takes back more than it is about, which it then may."""
        if one.cause is Cause.ACKNOWLEDGE:
            return False
        return self._groups.ledger(ledger_id).settings.order is Order.PARTITION

    async def _settle_run(
        self, run: Run, results: list[SettleResult], waits: "list[Future[Any]]"
    ) -> None:
        """Settles a run as one record of the journal; one by one where that cannot be."""
        if not run.entries:
            return
        groups = self._groups
        failures: dict[Settlement, LogbrokerError] = {}

        def decide() -> list[InLedger]:
            failures.clear()
            return [*self._acknowledged(run, failures), *self._otherwise(run, failures)]

        if len(run.entries) > 1 and run.has_overlaps():
            await self._settle_alone(run, results, waits)
            return
        try:
            decided = await self._dead_letters.decided(decide)
            waits.append(groups.commit(decided, run.answered()))
        except LogbrokerError as error:
            if len(run.entries) > 1:
                await self._settle_alone(run, results, waits)
                return
            failures[run.entries[0]] = error
        done = {
            token: SettleResult(ledger.state.committed if (ledger := groups.state.get(at)) else 0)
            for token, at in run.ledger_ids.items()
        }
        if not failures:
            results += [done[one.token] for one in run.entries]
            return
        for one in run.entries:
            failure = failures.get(one)
            results.append(SettleResult(0, failure) if failure else done[one.token])

    async def _settle_alone(
        self, run: Run, results: list[SettleResult], waits: "list[Future[Any]]"
    ) -> None:
        for one in run.entries:
            alone = Run()
            alone.add(run.ledger_ids[one.token], one)
            await self._settle_run(alone, results, waits)

    def _acknowledged(
        self, run: Run, failures: dict[Settlement, LogbrokerError]
    ) -> Iterable[InLedger]:
        """Decides by lease; one by one where a lease has lost any."""
        for token, settlements in run.acknowledged().items():
            ledger_id = run.ledger_ids[token]
            ranges = OffsetRanges([(one.first, one.end) for one in settlements]).ranges()
            try:
                yield from self._decided(ledger_id, settlements[0], ranges)
            except LogbrokerError:
                for one in settlements:
                    try:
                        yield from self._decided(ledger_id, one, [(one.first, one.end)])
                    except LogbrokerError as error:
                        failures[one] = error

    def _otherwise(
        self, run: Run, failures: dict[Settlement, LogbrokerError]
    ) -> Iterable[InLedger]:
        for one in run.others():
            try:
                ledger_id = run.ledger_ids[one.token]
                yield from self._decided(ledger_id, one, [(one.first, one.end)])
            except LogbrokerError as error:
                failures[one] = error

    def _decided(
        self, ledger_id: LedgerId, one: Settlement, ranges: Sequence[Range]
    ) -> list[InLedger]:
        groups = self._groups
        assert one.cause, "it was checked"
        events = groups.ledger(ledger_id).decide_settle(
            one.token,
            ranges,
            one.cause,
            groups.moment(),
            groups.random,
            reason=one.reason,
            delay_ms=one.delay_ms,
        )
        return [InLedger(ledger_id, event) for event in events]


def _check(one: Settlement) -> None:
    if one.cause is None:
        raise InvalidError("INVALID_ARGUMENT", "there is no such outcome")
    if not 0 <= one.first < one.end:
        message = f"a range is from an offset up to a greater one, not {one.first} to {one.end}"
        raise InvalidError("INVALID_OFFSET", message, first=one.first, end=one.end)
    if one.delay_ms is not None and not 0 <= one.delay_ms <= DELAY_MS:
        message = f"delay_ms is 0 to {DELAY_MS}, not {one.delay_ms}"
        raise InvalidError("INVALID_ARGUMENT", message, delay_ms=one.delay_ms)
