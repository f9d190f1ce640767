"""A history without records of which the rest tells nothing. Pure.

Those whose bytes the disk has changed may be lost. Those that nobody was told are kept, and
that were trimmed in the end, have no key to know them by.
"""

from collections.abc import Collection, Sequence

from history.events import Noted, Outcome, Place, Received, Stored


def without(
    noted: Sequence[Noted], outcome: Outcome, damaged: Collection[Place]
) -> tuple[list[Noted], Outcome]:
    """Returns both without these records, and without their dead letters."""
    letters = [letter for letter in outcome.letters if letter.source in damaged]
    gone = {*damaged, *(letter.place for letter in letters)}
    redriven = {letter.place: letter.redrives for letter in letters}
    kept = []
    for one in noted:
        place = getattr(one.event, "place", None)
        if place not in gone:
            kept.append(one)
        elif place in redriven:
            seen = getattr(one.event, "redrives", 0)
            redriven[place] = max(redriven[place], seen)
    return kept, outcome._replace(
        log={place: found for place, found in outcome.log.items() if place not in gone},
        states={place: state for place, state in outcome.states.items() if place not in gone},
        letters=[letter for letter in outcome.letters if letter not in letters],
        redriven=outcome.redriven - sum(redriven.values()),
        is_whole=False,
    )


def unacknowledged(noted: Sequence[Noted], outcome: Outcome) -> set[Place]:
    """Returns the records that were received, and are neither in the log nor acknowledged."""
    events = [one.event for one in noted]
    received = {event.place for event in events if isinstance(event, Received)}
    known = {event.place for event in events if isinstance(event, Stored)}
    letters = {letter.place for letter in outcome.letters}
    return received - known - letters - outcome.log.keys()
