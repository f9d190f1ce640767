"""Who waits until when, and deadlines that move."""

from logbroker.group.deadlines import Deadlines
from logbroker.group.waiting import TICK_MS, Waiting


def test_a_deadline_that_is_set_again_replaces_the_first():
    deadlines = Deadlines()
    deadlines.set(1, 100)
    deadlines.set(2, 50)
    deadlines.set(1, 200)
    assert deadlines.next_ms() == 50
    assert deadlines.due(150) == [2]
    deadlines.drop(2)
    assert (deadlines.next_ms(), deadlines.due(150), deadlines.due(200)) == (200, [], [1])
    deadlines.drop(1)
    assert deadlines.next_ms() is None


def test_a_deadline_that_moves_often_is_kept_once():
    deadlines = Deadlines()
    for at_ms in range(10_000):
        deadlines.set(1, at_ms)
    assert len(deadlines._heap) < 100
    assert deadlines.due(9_998) == []
    assert deadlines.due(9_999) == [1]


def test_what_waits_is_due_at_its_tick_and_not_before():
    waiting = Waiting()
    waiting.add(3, 5, 101)
    waiting.add(5, 6, 109)
    waiting.add(8, 9, 200)
    assert waiting.next_ms() == 110
    assert waiting.due(109) == []
    assert waiting.due(110) == [(3, 6)]
    assert waiting.due_ms(4) == 110
    waiting.finish(110)
    assert (waiting.offsets.ranges(), waiting.next_ms()) == ([(8, 9)], 200)
    assert waiting.due_ms(4) is None


def test_what_is_removed_never_becomes_due():
    waiting = Waiting()
    waiting.add(0, 10, 5)
    waiting.remove(2, 4)
    assert waiting.due(TICK_MS) == [(0, 2), (4, 10)]
    waiting.remove(0, 10)
    assert waiting.next_ms() is None
