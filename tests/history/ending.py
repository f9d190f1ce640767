"""How a run has ended: every record settled, pending, or a dead letter, exactly one of these."""

from bisect import bisect_right
from collections import defaultdict
from typing import TYPE_CHECKING

from .events import Letter, Place, Stored
from .known import Known

if TYPE_CHECKING:
    from .checker import Checker

LETTER_STATES = "parked", "available", "leased", "waiting", "resolved"


def check_end(checker: "Checker") -> None:
    """Adds what is wrong with the end to the checker's faults."""
    outcome, faults = checker.outcome, checker.faults
    faults += _log_faults(checker)
    if outcome.states.keys() != outcome.log.keys():
        faults.append(f"of {len(outcome.log)} records only {len(outcome.states)} have a state")
    if outcome.expired_unsettled:
        faults.append(f"{outcome.expired_unsettled} records lost to retention")
    letters: dict[Place, list[Letter]] = defaultdict(list)
    for letter in outcome.letters:
        letters[letter.source].append(letter)
        faults += _letter_faults(checker, letter)
    places = {*outcome.log, *checker.stored, *letters}
    for place in places:
        faults += _record_faults(checker, place, letters.get(place, []))
    redrives = sum(
        max(letter.redrives, checker.known[letter.place].redrives) for letter in outcome.letters
    )
    if redrives != outcome.redriven:
        faults.append(f"{outcome.redriven} were redriven, dead letters tell of {redrives}")
    checker.counts["dead letters"] = len(outcome.letters)
    checker.counts["dead letters parked"] = sum(
        letter.state == "parked" for letter in outcome.letters
    )


def _log_faults(checker: "Checker") -> list[str]:
    """Checks that the log holds what it must, as it was produced."""
    faults = []
    log = checker.outcome.log
    trimmed = checker.trimmed
    for stored in checker.stored.values():
        is_gone = stored.place.offset < trimmed.get(stored.place[:2], 0)
        if not is_gone and log.get(stored.place) != (stored.key, stored.value):
            faults.append(f"an acknowledged record is lost: {stored}")
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for place in sorted(log):
        number, before = int(log[place][1]), last.get(place[:2])
        if before and (number <= before[0] or place.offset != before[1] + 1):
            faults.append(f"not as it was produced: {number} at {place} behind {before}")
        last[place[:2]] = number, place.offset
    return faults


def _record_faults(checker: "Checker", place: Place, letters: list[Letter]) -> list[str]:
    faults = []
    outcome, known = checker.outcome, checker.known[place]
    state = outcome.states.get(place, "trimmed")
    all_times = [*checker.past.get(place, ()), known]
    is_stored: Stored | None = checker.stored.get(place)
    if is_stored and not known.leases and not known.is_skipped and not checker.past.get(place):
        hidden = _hidden(checker, known)
        if state != "pending" and not (letters and hidden):
            faults.append(f"never delivered, and not pending: {is_stored}")
    sure = sum(one.is_given_up for one in all_times)
    possible = sum(_may_be_given_up(checker, one) for one in all_times)
    if not sure <= len(letters) <= possible:
        may_be = f"{sure} to {possible}" if possible > sure else str(sure)
        faults.append(f"{len(letters)} dead letters of {place}, not {may_be}")
    is_done = known.is_acknowledged or known.is_given_up
    if state == "pending":
        if is_done:
            faults.append(f"pending although confirmed as settled: {place}")
    elif not (known.is_skipped or known.may_be_acknowledged):
        before = sum(one.is_given_up for one in all_times[:-1])
        if not (_may_be_given_up(checker, known) and len(letters) > before):
            faults.append(f"settled, and nobody has acknowledged it: {place}")
    if len(letters) == len(all_times) == 1:
        least, most = known.least, known.most + _hidden(checker, known)
        if not least <= letters[0].failures <= most:
            faults.append(f"a dead letter after {least} to {most} failures: {letters[0]}")
    return faults


def _letter_faults(checker: "Checker", letter: Letter) -> list[str]:
    """Checks a dead letter, and what became of it in redrives."""
    faults = []
    log, known = checker.outcome.log, checker.known[letter.place]
    stored = checker.stored.get(letter.source)
    source = (stored.key, stored.value) if stored else log.get(letter.source)
    if source != (letter.key, letter.value):
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
    if letter.state == "parked" and was_seen and not _may_be_given_up(checker, known):
        faults.append(f"parked again without a reason: {letter}")
    return faults


def _may_be_given_up(checker: "Checker", known: Known) -> bool:
    """Returns whether what is known may have ended as a dead letter."""
    if known.is_acknowledged:
        return False
    return known.may_be_given_up(_hidden(checker, known), checker.policy.max_failures)


def _hidden(checker: "Checker", known: Known) -> int:
    """Returns how many deliveries there may have been behind the last one that was seen."""
    last = known.last
    after = last.received if last else known.since
    return len(checker.disturbed) - bisect_right(checker.disturbed, after)
