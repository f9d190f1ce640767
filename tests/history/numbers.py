"""The leases on one record, one after another: each begins when the one before it is over.

Its delivery number is one more, but for deliveries that nobody lived to see, or that a killed
broker forgot; its failures are what happened; a redrive begins them anew. What was confirmed as
settled does not come again, and what failed comes again when half its back-off is over.
"""

from bisect import bisect_left

from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .events import Answer
from .known import Fate, Known, Lease
from .reading import Reading

ROUNDED_NS = 3_000_000
"""A back-off is kept in whole ms, and measured on other readings of the clock."""


class Numbers:
    """Checks the leases on one record after another."""

    def __init__(self, reading: Reading, order: Order, policy: RetryPolicy) -> None:
        self.faults: list[str] = []
        self._reading = reading
        self._order = order
        self._policy = policy

    def check(self, known: Known, *, is_dead_letter: bool) -> None:
        """Checks one record, and notes in `known` what is certain at the end."""
        line = Line(known)
        before: Lease | None = None
        for at, lease in enumerate(known.leases):
            if known.is_acknowledged or (known.is_given_up and lease.redrives <= known.redrives):
                self.faults.append(f"delivered again although confirmed as settled: {lease}")
            if is_dead_letter is not bool(lease.redrives):
                self.faults.append(f"only dead letters are redriven, and only then come: {lease}")
            if before:
                self._check_end(before, lease)
            unseen = self._check_number(known, line, before, lease)
            if lease.redrives != known.redrives:
                self._check_redrive(known, lease, unseen)
                known.redrives, known.round_start, known.is_given_up = lease.redrives, at, False
                known.least = known.most = line.sure_failures = 0
            self._check_failures(known, lease, unseen)
            if before and not unseen:
                self._check_after(before, lease)
            line.took(lease, unseen, is_durable=self._is_durable(lease, lease.granted))
            self._note_end(known, line, lease)
            before = lease
        if before and before.life < self._reading.lives:
            known.least = min(known.least, line.sure_failures)

    def _is_durable(self, lease: Lease, decided_before: int) -> bool:
        return self._reading.is_durable(lease.life, decided_before)

    def _check_number(self, known: Known, line: "Line", before: Lease | None, lease: Lease) -> int:
        """Returns how many deliveries there may have been that nobody saw."""
        is_later_life = lease.life > line.life
        least = (line.sure_number if is_later_life else line.number) + 1
        is_gap = lease.number > line.number + 1
        since_ns = before.received_ns if before else known.since_ns
        may_be_gap = is_later_life or (
            is_gap and self._reading.swallowed(since_ns, lease.received_ns) > 0
        )
        if lease.number < least or (is_gap and not may_be_gap):
            self.faults.append(f"delivery number {lease.number} after {line.number}: {lease}")
        if is_later_life:
            known.least = min(known.least, line.sure_failures)
        return max(lease.number - least, 0)

    def _check_failures(self, known: Known, lease: Lease, unseen: int) -> None:
        most = known.most + unseen
        if not known.least <= lease.failures <= most:
            could_be = f"{known.least} to {most}"
            self.faults.append(f"failures {lease.failures}, which can be {could_be}: {lease}")
        if lease.failures >= self._policy.max_failures:
            self.faults.append(f"delivered after {lease.failures} failures: {lease}")

    def _check_redrive(self, known: Known, lease: Lease, unseen: int) -> None:
        is_next = lease.redrives == known.redrives + 1
        if not is_next and not (unseen and lease.redrives > known.redrives):
            self.faults.append(f"redrives {lease.redrives} after {known.redrives}: {lease}")
        if lease.redrives > bisect_left(self._reading.redrives_asked, lease.granted):
            self.faults.append(f"redrives {lease.redrives}, asked for fewer: {lease}")
        max_failures = self._policy.max_failures
        if known.redrives and not known.may_be_given_up(unseen, max_failures):
            self.faults.append(f"redriven before it was parked again: {lease}")

    def _check_end(self, before: Lease, lease: Lease) -> None:
        """Checks that one lease was over as the next one was granted."""
        if before.fate is Fate.CONFIRMED and before.answered > lease.granted:
            self.faults.append(f"two live leases, the older one was good: {before}; {lease}")
        if before.fate is Fate.OPEN:
            self.faults.append(f"two live leases on {before.place}: {before}; {lease}")
        # Who left in order has heard of all that was over before its last answer came.
        has_heard = self._reading.answered_last(before.member) > lease.granted
        if before.fate is Fate.RELEASED and before.life == lease.life and has_heard:
            self.faults.append(f"two live leases, and nobody was told: {before}; {lease}")

    def _check_after(self, before: Lease, lease: Lease) -> None:
        """Checks what one delivery must keep of the one before it."""
        if before.fate is Fate.CONFIRMED and before.answer is Answer.RETRY and lease.failures:
            policy = self._policy
            grown = policy.initial_ms * policy.multiplier ** (lease.failures - 1)
            least_ns = int(min(grown, policy.max_ms)) // 2 * 1_000_000 - ROUNDED_NS
            waited_ns = lease.received_ns - before.answered_ns
            if waited_ns < least_ns:
                self.faults.append(f"came back after {waited_ns / 1e6:.1f} ms: {lease}")
        is_suspect = before.is_suspected and self._order is not Order.PARTITION
        if is_suspect and before.life == lease.life and lease.failures == before.failures:
            if len(self._reading.by_token[lease.token]) > 1:
                self.faults.append(f"a suspect among others: {lease}")
            self._reading.counts["suspects seen alone"] += 1

    def _note_end(self, known: Known, line: "Line", lease: Lease) -> None:
        """Takes note of what the end of a lease means for its record."""
        least = most = 0
        match lease.fate:
            case Fate.CONFIRMED:
                least = most = int(lease.answer is Answer.RETRY)
                if lease.answer is not Answer.RELEASE:
                    line.sure_failures = lease.failures + least
                known.is_acknowledged |= lease.answer is Answer.ACKNOWLEDGE
                is_spent = lease.failures + least >= self._policy.max_failures
                known.is_given_up = lease.answer is Answer.REJECT or is_spent
            case Fate.REFUSED | Fate.TAKEN_BACK:
                # What is behind a failure is taken back in one order alone.
                least, most = int(lease.is_told and self._order is not Order.PARTITION), 1
                self._reading.counts["expired"] += least
                if least and self._is_durable(lease, lease.over):
                    line.sure_failures = lease.failures + 1
            case Fate.RELEASED:
                most = int(lease.may_have_expired)
            case Fate.VANISHED | Fate.OPEN:
                most = 1
        known.least, known.most = lease.failures + least, lease.failures + most


class Line:
    """Where the numbers of a record stand, and what of them no kill makes the broker forget."""

    def __init__(self, known: Known) -> None:
        self.life = known.since_life
        self.number = self.sure_number = self.sure_failures = 0

    def took(self, lease: Lease, unseen: int, *, is_durable: bool) -> None:
        """Takes note of a delivery."""
        if lease.life > self.life and not unseen:  # so the broker knew it as it started
            self.sure_number, self.sure_failures = lease.number - 1, lease.failures
        if is_durable:
            self.sure_number, self.sure_failures = lease.number, lease.failures
        self.life, self.number = lease.life, lease.number
