"""What becomes of leased records that failed or were rejected, by the group's settings. Pure.

Records side by side that failed as often, and first at the same time, are one event.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from random import Random

from logbroker.group.ledger_events import Failed, GivenUp, LedgerEvent, Moment, Ranges, Released
from logbroker.group.ledger_state import LedgerState
from logbroker.group.record_state import FAILURES, Cause, State, next_state
from logbroker.group.retry_policy import Exhausted
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.limits import REASON_BYTES
from logbroker.record.offset_ranges import OffsetRanges


class Failing:
    """Decides on one ledger, and changes nothing there."""

    def __init__(
        self, state: LedgerState, settings: GroupSettings, *, parks_exhausted: bool
    ) -> None:
        self._state = state
        self._settings = settings
        outcome = Exhausted.BLOCK if parks_exhausted else settings.retry.exhausted
        self._outcome = outcome
        """Of what is exhausted."""
        self._holds = (
            settings.after_dead_letter is AfterDeadLetter.HOLD and outcome is Exhausted.DEAD_LETTER
        )

    def decide(
        self,
        token: int,
        ranges: Ranges,
        cause: Cause,
        now: Moment,
        random: Random,
        reason: str,
        delay_ms: int | None = None,
    ) -> list[LedgerEvent]:
        """Returns an event for each run of records that have failed equally."""
        reason = cut(reason)
        events: list[LedgerEvent] = []
        for (failures, first_ms, key), run in self._runs(ranges):
            if cause in FAILURES:
                failures += 1
            state = self._after(cause, failures)
            if state is State.WAITING:
                policy = self._settings.retry
                delay = policy.backoff_ms(failures, random) if delay_ms is None else delay_ms
                is_suspect = cause is not Cause.RETRY and self._is_suspect(cause, run)
                events.append(
                    Failed(
                        token,
                        run,
                        cause,
                        failures,
                        first_ms or now.wall_ms,
                        now.wall_ms,
                        delay,
                        reason,
                        is_suspect,
                    )
                )
            else:
                events.append(
                    GivenUp(
                        token,
                        run,
                        self._outcome,
                        cause,
                        failures,
                        first_ms or now.wall_ms,
                        now.wall_ms,
                        reason,
                        self._holds,
                        key,
                    )
                )
        return events

    def taken_back(self, offset: int, but: Ranges) -> list[LedgerEvent]:
        """Returns the release, in `partition` order, of what is held behind `offset`."""
        if self._settings.order is not Order.PARTITION:
            return []
        others = OffsetRanges(but)
        events: list[LedgerEvent] = []
        for lease in self._state.leases.all():
            behind = lease.held.within(offset, lease.held.end)
            left = tuple(run for first, end in behind for run in others.gaps(first, end))
            if left:
                events.append(Released(lease.token, left))
        return events

    def taken_back_behind(self, events: Sequence[LedgerEvent], but: Ranges) -> list[LedgerEvent]:
        """Returns the same, behind the first of these failures that nothing may overtake."""
        open_from = next((at for at in map(_open_from, events) if at is not None), None)
        return self.taken_back(open_from, but) if open_from is not None else []

    def _runs(self, ranges: Ranges) -> Iterable[tuple[tuple[int, int, bytes | None], Ranges]]:
        """Yields runs with equal failures, first failure time and, where it matters, key."""
        state = self._state
        keys = state.keys if self._holds else None
        if not state.failures and not self._holds:
            yield (0, 0, None), ranges
            return

        def numbers(offset: int) -> tuple[int, int, bytes | None]:
            known = state.failures.get(offset)
            key = keys.key_of(offset) if keys else None
            return (known.failures, known.first_ms, key) if known else (0, 0, key)

        for first, end in ranges:
            for same, run in groupby(range(first, end), numbers):
                at = list(run)
                if self._holds:  # each by itself, for each holds what is behind it
                    for offset in at:
                        yield same, ((offset, offset + 1),)
                else:
                    yield same, ((at[0], at[-1] + 1),)

    def _after(self, cause: Cause, failures: int) -> State:
        spent = failures >= self._settings.retry.max_failures
        hopeless = State.SETTLED if self._outcome is not Exhausted.BLOCK else State.PARKED
        return next_state(State.LEASED, cause, is_exhausted=spent, hopeless=hopeless)

    def _is_suspect(self, cause: Cause, run: Ranges) -> bool:
        return cause is Cause.VANISH_ALONE or run[0][0] in self._state.marks


def _open_from(event: LedgerEvent) -> int | None:
    """Returns the first offset, of a failure, that nothing behind it may overtake."""
    match event:
        case Failed(ranges=ranges):
            return ranges[0][0]
        case GivenUp(ranges=ranges, outcome=outcome, holds=holds):
            return ranges[0][0] if holds or outcome is Exhausted.BLOCK else None
    return None


def cut(reason: str) -> str:
    """Returns a failure's reason, at most REASON_BYTES of it in UTF-8."""
    if len(reason) * 4 <= REASON_BYTES:
        return reason
    return reason.encode("utf-8", "replace")[:REASON_BYTES].decode("utf-8", "ignore")
