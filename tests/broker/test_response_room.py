"""Room for responses: streams of a connection wait for one another while it moves."""

import asyncio

from logbroker.broker.response_room import STILL_MS, ResponseRoom
from logbroker.testing.clock import ManualClock


async def turn():
    for _ in range(5):
        await asyncio.sleep(0)


async def waiting(room, size):
    task = asyncio.create_task(room.wait_room(size))
    await turn()
    return task


async def test_streams_wait_for_one_another_beyond_the_limit():
    room = ResponseRoom(ManualClock(), limit=10)
    first = await room.wait_room(6)
    second = await waiting(room, 6)
    assert not second.done()
    first.give_back()
    assert (await second).resize(10)


async def test_what_was_taken_can_shrink_and_grow_as_far_as_there_is_room():
    room = ResponseRoom(ManualClock(), limit=10)
    taken = await room.wait_room(6)
    assert taken.resize(2)
    other = await room.wait_room(7)
    assert taken.resize(3)
    assert not taken.resize(4)
    other.give_back()
    assert taken.resize(10)


async def test_nobody_grows_past_those_who_wait():
    room = ResponseRoom(ManualClock(), limit=10)
    taken = await room.wait_room(4)
    late = await waiting(room, 8)
    assert not taken.resize(5)
    taken.give_back()
    await late


async def test_as_long_as_responses_go_out_the_limit_holds():
    clock = ManualClock()
    room = ResponseRoom(clock, limit=10)
    await room.wait_room(10)
    late = await waiting(room, 1)
    for _ in range(5):
        await clock.advance(STILL_MS - 1)
        room.response_went_out()
    assert not late.done()
    late.cancel()


async def test_what_the_client_leaves_unread_is_written_off():
    clock = ManualClock()
    room = ResponseRoom(clock, limit=10)
    stuck = await room.wait_room(10)
    late = [await waiting(room, 6), await waiting(room, 6)]
    await clock.advance(STILL_MS)
    assert [each.done() for each in late] == [True, False], "and the limit holds for the others"
    stuck.give_back()
    await turn()
    assert not late[1].done(), "what was written off makes no room when it comes back"
    late[0].result().give_back()
    await late[1]


async def test_one_who_stops_waiting_takes_nothing():
    room = ResponseRoom(ManualClock(), limit=10)
    first = await room.wait_room(10)
    late = await waiting(room, 10)
    late.cancel()
    await turn()
    first.give_back()
    await asyncio.wait_for(room.wait_room(10), 1)
