"""The watch over logs finds each fault, and nothing in a good history."""

import pytest
from history.events import Place

from .log_watch import LogWatch, Sent

T = "t", 0


def at(offset):
    return Place("t", 0, offset)


def good():
    """Returns a watch that has seen three records, the third of them without an answer."""
    watch = LogWatch()
    for number in range(3):
        watch.sent(b"%d" % number, Sent("t", 0, b"k"))
    watch.acknowledged(at(0), b"0")
    watch.acknowledged(at(1), b"1")
    watch.show(at(1), b"k", b"1")
    watch.bounds(T, 0, 2, 3)
    watch.commit_asked(T, 2)
    watch.commit_confirmed(T, 1)
    watch.committed(T, 1)
    watch.committed(T, 2)
    watch.known_to_end(T, 2, 2)
    return watch


def log(*values, first=0):
    return {at(first + index): (b"k", value) for index, value in enumerate(values)}


@pytest.mark.parametrize("end", [log(b"0", b"1"), log(b"0", b"1", b"2")])
def test_nothing_is_wrong_with_a_good_history(end):
    watch = good()
    watch.check_log(end)
    assert watch.faults == []


def test_what_is_trimmed_or_damaged_need_not_be_there():
    watch = good()
    watch.bounds(T, 1, 2, 2)
    watch.flipped.add(at(1))
    watch.check_log({})
    assert watch.faults == []


def test_an_answer_that_was_under_way_may_be_older_than_what_is_known():
    watch = good()
    asked = watch.known_bounds(T)
    watch.bounds(T, 1, 3, 3)
    watch.bounds_answered(T, asked, 0, 2)
    assert watch.faults == []
    assert watch.known_bounds(T) == (1, 3)


FAULTS = {
    "an acknowledged record is lost": (lambda watch: watch.check_log(log(b"0")), "is lost"),
    "a record that was shown is lost": (
        lambda watch: (watch.show(at(2), b"k", b"2"), watch.check_log(log(b"0", b"1"))),
        "that was shown is lost",
    ),
    "a phantom": (lambda watch: watch.show(at(2), b"k", b"9"), "a phantom"),
    "another key": (lambda watch: watch.show(at(2), b"x", b"2"), "sent as"),
    "another partition": (lambda watch: watch.show(Place("t", 1, 2), b"k", b"2"), "sent as"),
    "an offset with other bytes": (lambda watch: watch.show(at(1), b"k", b"2"), "used again"),
    "two receipts for an offset": (lambda watch: watch.acknowledged(at(1), b"2"), "acknowledged"),
    "a record twice": (lambda watch: watch.check_log(log(b"0", b"1", b"1")), "not in order"),
    "records out of order": (
        lambda watch: (watch.sent(b"-1", Sent("t", 0, b"k")), watch.show(at(2), b"k", b"-1"),
                       watch.check_log(log(b"0", b"1", b"-1"))),
        "not in order",
    ),
    "a high watermark that goes back": (lambda watch: watch.bounds(T, 0, 1, 3), "went back"),
    "a log start that goes back": (
        lambda watch: (watch.bounds(T, 1, 2, 3), watch.bounds(T, 0, 2, 3)), "went back",
    ),
    "an answer older than its question": (
        lambda watch: watch.bounds_answered(T, watch.known_bounds(T), 0, 1), "went back",
    ),
    "a high watermark beyond the end": (lambda watch: watch.bounds(T, 0, 5, 4), "bounds"),
    "a commit that is lost": (lambda watch: watch.committed(T, 0), "committed 0"),
    "a commit nobody asked for": (lambda watch: watch.committed(T, 3), "committed 3"),
    "a commit ahead of the log": (lambda watch: watch.known_to_end(T, 3, 2), "a commit ahead"),
}  # fmt: skip


@pytest.mark.parametrize("harm, told", FAULTS.values(), ids=FAULTS)
def test_each_fault_is_found(harm, told):
    watch = good()
    harm(watch)
    assert len(watch.faults) == 1
    assert told in watch.faults[0]
