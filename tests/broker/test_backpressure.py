"""The byte budget: first come, first served; who leaves takes nothing along."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logbroker.broker.backpressure import ByteBudget
from logbroker.errors import ExhaustedError


async def turn():
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(budget, *sizes):
    """Starts a waiter for each size."""
    tasks = [asyncio.create_task(budget.wait_room(size)) for size in sizes]
    await turn()
    return tasks


async def test_there_is_room_up_to_the_limit():
    budget = ByteBudget(10)
    await budget.wait_room(4)
    await budget.wait_room(6)
    [late] = await waiting(budget, 1)
    assert (budget.taken, late.done()) == (10, False)
    budget.give(4)
    await turn()
    assert (budget.taken, late.done()) == (7, True)


async def test_where_nothing_is_taken_one_is_let_in_however_large():
    budget = ByteBudget(10)
    await budget.wait_room(99)
    [late] = await waiting(budget, 1)
    assert not late.done()
    budget.give(99)
    await late
    assert budget.taken == 1


async def test_first_come_first_served_also_where_a_later_one_would_fit():
    budget = ByteBudget(10)
    await budget.wait_room(8)
    large, small = await waiting(budget, 5, 1)
    assert (large.done(), small.done()) == (False, False)
    budget.give(8)
    await turn()
    assert (budget.taken, large.done(), small.done()) == (6, True, True)


async def test_a_waiter_who_leaves_lets_in_those_behind_who_fit():
    budget = ByteBudget(10)
    await budget.wait_room(8)
    large, small = await waiting(budget, 5, 2)
    large.cancel()
    await turn()
    assert (budget.taken, small.done()) == (10, True)


async def test_a_waiter_who_leaves_as_it_is_let_in_gives_back():
    budget = ByteBudget(10)
    await budget.wait_room(10)
    one, two = await waiting(budget, 6, 6)
    budget.give(10)
    one.cancel()
    await turn()
    assert (budget.taken, one.cancelled(), two.done()) == (6, True, True)


async def test_a_waiter_who_leaves_as_others_give_is_passed_over():
    budget = ByteBudget(10)
    await budget.wait_room(10)
    one, two = await waiting(budget, 6, 6)
    one.cancel()
    budget.give(10)
    await turn()
    assert (budget.taken, one.cancelled(), two.done()) == (6, True, True)


async def test_who_would_not_wait_is_refused_with_a_delay():
    budget = ByteBudget(10)
    budget.take_or_refuse(10)
    with pytest.raises(ExhaustedError) as raised:
        budget.take_or_refuse(1)
    assert raised.value.reason == "OVERLOADED"
    assert int(raised.value.details["retry_after_ms"]) > 0
    assert budget.taken == 10


async def test_who_would_not_wait_does_not_overtake_those_who_do():
    budget = ByteBudget(10)
    budget.take_or_refuse(8)
    [late] = await waiting(budget, 5)
    with pytest.raises(ExhaustedError):
        budget.take_or_refuse(1)
    late.cancel()
    await turn()
    budget.take_or_refuse(1)


async def test_giving_back_more_than_was_taken_is_our_mistake():
    with pytest.raises(AssertionError):
        ByteBudget(10).give(1)


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 30)),
    st.tuples(st.just("give"), st.integers(0, 9)),
    st.tuples(st.just("cancel"), st.integers(0, 9)),
    st.tuples(st.just("turn"), st.just(0)),
)


@settings(deadline=None, max_examples=25)
@given(st.lists(STEPS, max_size=40))
def test_whatever_happens_all_that_is_taken_is_given_back(steps):
    async def run():
        budget, tasks = ByteBudget(20), {}
        for step, number in steps:
            inside = [t for t in tasks if t.done() and not t.cancelled()]
            match step:
                case "wait":
                    tasks[asyncio.create_task(budget.wait_room(number))] = number
                case "give" if inside:
                    budget.give(tasks.pop(inside[number % len(inside)]))
                case "cancel" if tasks:
                    list(tasks)[number % len(tasks)].cancel()
                case "turn":
                    await turn()
            if step == "turn":
                held = [tasks[t] for t in tasks if t.done() and not t.cancelled()]
                assert budget.taken == sum(held)
                assert budget.taken <= 20 or sum(map(bool, held)) == 1
        while tasks:
            await turn()
            for task in [t for t in tasks if t.done()]:
                size = tasks.pop(task)
                if not task.cancelled():
                    budget.give(size)
        assert budget.taken == 0

    asyncio.run(run())
