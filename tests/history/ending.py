"""How a run has ended: every record settled, pending, or a dead letter, exactly one of these."""

from collections import defaultdict

from logbroker.group.retry_policy import RetryPolicy

from .events import Letter, Outcome, Place, Stored
from .known import Known
from .reading import Reading

LETTER_STATES = "parked", "available", "leased", "waiting", "resolved"


class Ending:
    """Checks what the broker says at the end against what is known of every record."""

    def __init__(self, reading: Reading, outcome: Outcome, policy: RetryPolicy) -> None:
        self.faults: list[str] = []
        self._reading = reading
        self._outcome = outcome
        self._policy = policy

    def check(self) -> None:
        """Finds what is wrong, once all leases were checked."""
        reading, outcome = self._reading, self._outcome
        self.faults += self._log_faults()
        if outcome.states.keys() != outcome.log.keys():
            self.faults.append(
                f"of {len(outcome.log)} records only {len(outcome.states)} have a state"
            )
        if outcome.expired_unsettled:
            self.faults.append(f"{outcome.expired_unsettled} records lost to retention")
        letters: dict[Place, list[Letter]] = defaultdict(list)
        for letter in outcome.letters:
            letters[letter.source].append(letter)
            self.faults += self._letter_faults(letter)
        for place in {*outcome.log, *reading.stored, *letters}:
            self.faults += self._record_faults(place, letters.get(place, []))
        redrives = sum(
            max(letter.redrives, reading.known[letter.place].redrives) for letter in outcome.letters
        )
        if redrives != outcome.redriven:
            told = f"{outcome.redriven} were redriven, dead letters tell of {redrives}"
            self.faults.append(told)
        parked = sum(letter.state == "parked" for letter in outcome.letters)
        reading.counts["dead letters"] = len(outcome.letters)
        reading.counts["dead letters parked"] = parked

    def _log_faults(self) -> list[str]:
        """Checks that the log holds what it must, as it was produced."""
        faults = []
        log = self._outcome.log
        trimmed = self._reading.trimmed
        for stored in self._reading.stored.values():
            is_gone = stored.place.offset < trimmed.get(stored.place[:2], 0)
            if not is_gone and log.get(stored.place) != (stored.key, stored.value):
                faults.append(f"an acknowledged record is lost: {stored}")
        last: dict[tuple[str, int], tuple[int, int]] = {}
        for place in sorted(log):
            number, before = int(log[place][1]), last.get(place[:2])
            is_gap = before and self._outcome.is_whole and place.offset != before[1] + 1
            if before and (number <= before[0] or is_gap):
                faults.append(f"not as it was produced: {number} at {place} behind {before}")
            last[place[:2]] = number, place.offset
        return faults

    def _record_faults(self, place: Place, letters: list[Letter]) -> list[str]:
        faults = []
        outcome, known = self._outcome, self._reading.known[place]
        state = outcome.states.get(place, "trimmed")
        all_times = [*self._reading.past.get(place, ()), known]
        is_stored: Stored | None = self._reading.stored.get(place)
        if (
            is_stored
            and not known.leases
            and not known.is_skipped
            and not self._reading.past.get(place)
        ):
            hidden = self._reading.hidden(known)
            if state != "pending" and not (letters and hidden):
                faults.append(f"never delivered, and not pending: {is_stored}")
        sure = sum(one.is_given_up for one in all_times)
        possible = sum(self._may_be_given_up(one) for one in all_times)
        if not sure <= len(letters) <= possible:
            may_be = f"{sure} to {possible}" if possible > sure else str(sure)
            faults.append(f"{len(letters)} dead letters of {place}, not {may_be}")
        is_done = known.is_acknowledged or known.is_given_up
        if state == "pending":
            if is_done:
                faults.append(f"pending although confirmed as settled: {place}")
        elif not (known.is_skipped or known.may_be_acknowledged):
            before = sum(one.is_given_up for one in all_times[:-1])
            if not (self._may_be_given_up(known) and len(letters) > before):
                faults.append(f"settled, and nobody has acknowledged it: {place}")
        if len(letters) == len(all_times) == 1:
            least, most = known.least, known.most + self._reading.hidden(known)
            if not least <= letters[0].failures <= most:
                faults.append(f"a dead letter after {least} to {most} failures: {letters[0]}")
        return faults

    def _letter_faults(self, letter: Letter) -> list[str]:
        """Checks a dead letter, and what became of it in redrives."""
        faults = []
        log, known = self._outcome.log, self._reading.known[letter.place]
        stored = self._reading.stored.get(letter.source)
        source = (stored.key, stored.value) if stored else log.get(letter.source)
        is_trimmed = letter.source.offset < self._reading.trimmed.get(letter.source[:2], 0)
        is_known = source is not None or not is_trimmed  # nobody was told it is stored
        if is_known and source != (letter.key, letter.value):
            faults.append(f"a dead letter is not the record it was: {letter}")
        if letter.state not in LETTER_STATES:
            faults.append(f"a dead letter that is not listed: {letter}")
        if letter.state == "resolved" and not known.may_be_acknowledged:
            faults.append(f"resolved, and nobody has acknowledged it: {letter}")
        if letter.state != "resolved" and known.is_acknowledged:
            faults.append(f"acknowledged, and yet a dead letter: {letter}")
        if letter.state != "resolved" and letter.redrives < known.redrives:
            faults.append(f"of {known.redrives} redrives some are forgotten: {letter}")
        was_seen = known.redrives and letter.redrives == known.redrives
        if letter.state == "parked" and was_seen and not self._may_be_given_up(known):
            faults.append(f"parked again without a reason: {letter}")
        return faults

    def _may_be_given_up(self, known: Known) -> bool:
        """Returns whether what is known may have ended as a dead letter."""
        if known.is_acknowledged:
            return False
        return known.may_be_given_up(self._reading.hidden(known), self._policy.max_failures)
