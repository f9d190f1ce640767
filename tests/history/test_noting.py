"""What a member notes in a file is there after its end, however that came."""

from .events import (
    Answer,
    Answered,
    Begun,
    Confirmed,
    Ended,
    How,
    Noted,
    Place,
    Received,
    Refused,
    TakenBack,
)
from .noting import History, NotesFile, read_notes

PLACE = Place("t", 1, 7)
EVENTS = [
    Received("a", 1, PLACE, 2, 1, 0),
    Begun("a", 1, PLACE),
    Answered("a", 1, PLACE, Answer.RETRY),
    Confirmed("a", 1, PLACE, Answer.RETRY),
    Refused("a", 1, PLACE, was_told=None),
    TakenBack("a", 1, PLACE),
    Ended("a", How.LEFT),
]


def test_every_event_of_a_member_is_read_as_it_was_noted(tmp_path):
    notes = NotesFile(tmp_path / "notes")
    for event in EVENTS:
        notes.note(event)
    assert read_notes(tmp_path / "notes") == [], "others must not see its effects yet"
    notes.flush()
    found = read_notes(tmp_path / "notes")
    assert [noted.event for noted in found] == EVENTS
    assert [noted.at_ns for noted in found] == sorted(noted.at_ns for noted in found)


def test_a_line_that_a_kill_cut_off_is_passed_over(tmp_path):
    notes = NotesFile(tmp_path / "notes")
    for event in EVENTS[:2]:
        notes.note(event)
    notes.flush()
    whole = (tmp_path / "notes").read_bytes()
    (tmp_path / "notes").write_bytes(whole[:-5])
    assert [noted.event for noted in read_notes(tmp_path / "notes")] == EVENTS[:1]
    assert read_notes(tmp_path / "never made") == []


def test_a_history_is_in_the_order_of_time_whoever_noted_it():
    history = History()
    history.note(EVENTS[0])
    history.add([Noted(1, EVENTS[1])])
    assert [noted.event for noted in history.in_order()] == [EVENTS[1], EVENTS[0]]
