"""What a seed decides: the same each time, and all that was asked for."""

from collections import Counter

from .events import Answer, Place
from .script import Plan, Script, What

PLAN = Plan(record_count=2_000)
PLACES = [Place("t", 0, offset) for offset in range(2_000)]


def answers(script):
    return [script.fate("g").answer(place, 0, 1) for place in PLACES]


def test_a_seed_decides_the_same_twice_and_another_one_something_else():
    one, same, other = Script(1, PLAN, 3), Script(1, PLAN, 3), Script(2, PLAN, 3)
    for what in ("batches", "steps", "first_kinds"):
        assert getattr(one, what) == getattr(same, what)
        assert getattr(one, what) != getattr(other, what)
    assert answers(one) == answers(same) != answers(other)


def test_everything_that_was_planned_is_in_the_script_in_order():
    script = Script(1, PLAN, 3)
    assert sum(len(batch.keys) for batch in script.batches) == PLAN.record_count
    counts = Counter(step.what for step in script.steps)
    assert counts[What.KILL_BROKER] == PLAN.broker_kills
    assert counts[What.KILL_MEMBER] == PLAN.member_kills
    assert counts[What.RESET] == PLAN.resets
    assert counts[What.TRIM] == PLAN.trims
    assert counts.keys() == set(What)
    after = [step.after for step in script.steps]
    assert after == sorted(after)
    assert after[-1] <= PLAN.record_count


def test_records_meet_every_answer_until_it_is_calm():
    script = Script(1, Plan(record_count=1, fault_chance=0.2), 3)
    found = Counter(answers(script))
    assert found.keys() == {*Answer, None}
    assert 0.7 < found[Answer.ACKNOWLEDGE] / len(PLACES) < 0.9
    fate = script.fate("g")
    fate.calm()
    assert {fate.answer(place, 0, 1) for place in PLACES} == {Answer.ACKNOWLEDGE}


def test_poison_fails_again_and_again_but_not_once_it_is_redriven():
    fate = Script(1, Plan(record_count=1, fault_chance=0.02), 3).fate("g")

    def fails(place, redrives):
        drawn = [fate.answer(place, redrives, number) for number in range(1, 5)]
        return all(answer is not Answer.ACKNOWLEDGE for answer in drawn)

    poison = [place for place in PLACES if fails(place, 0)]
    assert 2 < len(poison) < 30
    assert not any(fails(place, 1) for place in poison)
