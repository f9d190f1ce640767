"""How far the scrub has come, as a file; and when it is due."""

import pytest

from logbroker.storage.file import checked_json
from logbroker.storage.file.scrub_note import ScrubNote

NOTE = ScrubNote(finished_time_ms=1_000, topic="orders", partition=3, offset=120)


def test_the_file_gives_back_what_it_was_made_of():
    assert ScrubNote.decode(NOTE.encode()) == NOTE
    assert NOTE.encode() == (
        b'{"format":1,"finished_time_ms":1000,"topic":"orders","partition":3,"offset":120}\n'
        b"crc32c 9dd89c57\n"
    )


def test_whatever_else_there_is_is_a_beginning():
    data = NOTE.encode()
    for at in range(len(data)):
        assert ScrubNote.decode(data[:at]) == ScrubNote()
        harmed = bytearray(data)
        harmed[at] ^= 1
        assert ScrubNote.decode(bytes(harmed)) == ScrubNote()


@pytest.mark.parametrize("line", [b"[" * 100_000 + b"\n", b"[]\n", b'{"format":1,"other":2}\n'])
def test_so_is_a_sound_checksum_over_something_else(line):
    assert ScrubNote.decode(line + checked_json._check(line)) == ScrubNote()


@pytest.mark.parametrize(
    "note, now_ms, is_due",
    [
        (ScrubNote(), 1_800_000_000_000, True),
        (ScrubNote(finished_time_ms=1_000), 1_000, False),
        (ScrubNote(finished_time_ms=1_000), 10_999, False),
        (ScrubNote(finished_time_ms=1_000), 11_000, True),
        (ScrubNote(finished_time_ms=1_000), 999, True),  # the clock was set back
        (NOTE, 1_001, True),  # a pass is under way
    ],
)
def test_a_pass_is_due_an_interval_after_the_last_or_where_one_is_under_way(note, now_ms, is_due):
    assert note.is_due(now_ms, 10_000) == is_due
