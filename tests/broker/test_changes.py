"""Changes: finished whatever becomes of the caller, and one after another."""

import asyncio

import pytest

from logbroker.broker.changes import Changes


async def test_a_change_gives_what_it_returns_or_raises():
    async def good():
        return 7

    async def bad():
        raise KeyError("x")

    changes = Changes()
    assert await changes.run("a", good()) == 7
    with pytest.raises(KeyError):
        await changes.run("a", bad())
    assert await changes.run("a", good()) == 7, "a failure does not hold up the next"
    await changes.wait_done()


async def test_a_change_is_finished_when_its_caller_gives_up():
    gate, done = asyncio.Event(), []

    async def change():
        await gate.wait()
        done.append(1)
        raise KeyError("nobody is there to hear this")

    changes = Changes()
    caller = asyncio.create_task(changes.run("a", change()))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled()
    gate.set()
    await changes.wait_done()
    assert done == [1]


async def test_changes_of_one_name_go_one_after_another_and_others_beside_them():
    gate, begun = asyncio.Event(), []

    async def change(number):
        begun.append(number)
        await gate.wait()
        begun.append(-number)

    changes = Changes()
    async with asyncio.TaskGroup() as tasks:
        for number, name in ((1, "a"), (2, "a"), (3, "b")):
            tasks.create_task(changes.run(name, change(number)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert begun == [1, 3]
        gate.set()
    assert begun.index(-1) < begun.index(2)
    await changes.wait_done()
