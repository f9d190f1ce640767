"""The loop: time jumps, processes die where they stand, and a seed decides whose turn it is."""

import asyncio
from random import Random

import pytest

from .loop import Process, SimulatedLoop, Stuck


def run(work, seed=0):
    return SimulatedLoop(Random(seed)).run(work)


def test_time_jumps_to_what_is_next():
    async def test():
        loop = asyncio.get_running_loop()
        await asyncio.sleep(3_600)
        return loop.time()

    assert 3_600 <= run(test()) < 3_601


def test_who_spins_lives_to_see_the_time_pass():
    async def test():
        loop = asyncio.get_running_loop()
        while loop.time() < 0.01:  # noqa: ASYNC110  # that is the point
            await asyncio.sleep(0)

    run(test())


def test_timeouts_are_of_the_loops_time():
    async def test():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.Event().wait()

    run(test())


def test_where_nothing_can_happen_it_says_so():
    async def test():
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run(test())


def test_a_killed_process_runs_nothing_more_not_even_its_end():
    async def test():
        seen = []

        async def work():
            try:
                while True:
                    seen.append("works")
                    await asyncio.sleep(1)
            finally:
                seen.append("ends")

        process = Process("victim")
        process.start(work())
        await asyncio.sleep(2.5)
        process.kill()
        await asyncio.sleep(10)
        return list(seen)

    assert run(test()) == ["works"] * 3


def test_what_a_process_starts_belongs_to_it():
    async def test():
        seen = []

        async def child():
            await asyncio.sleep(1)
            seen.append("child")

        async def parent():
            asyncio.get_running_loop().call_later(1, seen.append, "timer")
            await asyncio.create_task(child())

        process = Process("victim")
        process.start(parent())
        await asyncio.sleep(0.5)
        process.kill()
        await asyncio.sleep(5)
        return list(seen)

    assert run(test()) == []


def turns(seed):
    async def test():
        seen = []

        async def work(name):
            for step in range(5):
                seen.append((name, step))
                await asyncio.sleep(0)

        await asyncio.gather(*(Process(name).start(work(name)) for name in "abc"))
        return seen

    return run(test(), seed)


def test_a_seed_decides_whose_turn_it_is():
    assert turns(1) == turns(1)
    assert len({tuple(turns(seed)) for seed in range(20)}) > 5


def test_within_a_process_callbacks_keep_their_order():
    for seed in range(20):
        for name in "abc":
            assert [step for one, step in turns(seed) if one == name] == list(range(5))


def test_what_nobody_caught_is_a_fault():
    async def test():
        async def fail():
            raise ValueError("unseen")

        task = asyncio.create_task(fail())
        await asyncio.sleep(1)
        del task
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    loop = SimulatedLoop(Random(0))
    loop.run(test())
    assert any("ZeroDivisionError" in fault for fault in loop.faults)
