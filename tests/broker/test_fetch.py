"""Fetch: from a place on, to an end or without one; and what is out of range says so."""

import asyncio
from contextlib import aclosing

import pytest
from slow_engine import SlowEngine

from logbroker.broker.fetch import FIRST_BYTES, SLOW_MS, At, Edge, Fetched, FetchSpec
from logbroker.config import LimitsConfig
from logbroker.errors import (
    DataLossError,
    InvalidError,
    LogbrokerError,
    NotFoundError,
    OffsetOutOfRangeError,
    UnavailableError,
)
from logbroker.limits import FETCH_BYTES, RESPONSE_BYTES, RESPONSE_FIELDS_BYTES
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

from .brokers import batch_of, batches_in, broker_on, fetched, topic_on, values_of

LARGE = LimitsConfig(
    record_bytes=8 << 20, batch_bytes=9 << 20, connection_bytes=16 << 20, in_flight_bytes=64 << 20
)


async def filled(broker, count=5, **of_batch):
    """Appends records `0`, `1`, ... in batches of one, with timestamps 0, 10, ..."""
    for number in range(count):
        await broker.produce("a", "", 0, batch_of(b"%d" % number, now_ms=number * 10, **of_batch))


def following(broker, **spec):
    return aclosing(broker.fetch(FetchSpec(topic="a", follow=True, **spec)))


async def next_of(responses):
    return await anext(aiter(responses))


async def until_error(responses):
    """Returns the responses, and the error they end with."""
    seen = []
    try:
        async for response in responses:
            seen += [response]
    except LogbrokerError as error:
        return seen, error
    raise AssertionError("no error")


# Where it starts and stops


@pytest.mark.parametrize(
    "start, first",
    [
        (Edge.EARLIEST, 0),
        (Edge.LATEST, 5),
        (0, 0),
        (3, 3),
        (5, 5),
        (At(-1), 0),
        (At(0), 0),
        (At(11), 2),
        (At(40), 4),
        (At(41), 5),
    ],
)
async def test_a_fetch_starts_where_it_is_told(start, first):
    async with topic_on() as broker:
        await filled(broker)
        responses = await fetched(broker, start=start)
        assert [response.start_offset for response in responses] == [first] * len(responses)
        assert await values_of(broker, start=start) == [b"%d" % n for n in range(first, 5)]


async def test_a_batch_is_sent_whole_and_the_start_tells_which_record_was_wanted():
    async with topic_on() as broker:
        await broker.produce("a", "", 0, batch_of(b"0", b"1", b"2"))
        [response] = await fetched(broker, start=1)
        assert (response.start_offset, response.next_offset) == (1, 3)
        assert [b.header.base_offset for b in batches_in(broker, [response])] == [0]


@pytest.mark.parametrize(
    "stop, values",
    [
        ({"stop_offset": 0}, 0),
        ({"stop_offset": 2}, 2),
        ({"stop_offset": 99}, 5),
        ({"stop_timestamp_ms": 15}, 2),
        ({"stop_timestamp_ms": 0}, 0),
        ({"stop_timestamp_ms": 99}, 5),
        ({"stop_offset": 4, "stop_timestamp_ms": 15}, 2),
        ({"stop_offset": 1, "stop_timestamp_ms": 15}, 1),
    ],
)
async def test_a_fetch_ends_before_its_stop(stop, values):
    async with topic_on() as broker:
        await filled(broker)
        found = await values_of(broker, max_bytes=1, **stop)
        assert found == [b"%d" % number for number in range(values)]


async def test_a_fetch_that_does_not_follow_ends_where_the_log_ended_when_it_began():
    async with topic_on() as broker:
        await filled(broker, 2)
        async with aclosing(broker.fetch(FetchSpec(topic="a", max_bytes=1))) as responses:
            assert (await next_of(responses)).next_offset == 1
            await filled(broker, 3)
            assert [response.next_offset async for response in responses] == [2]


@pytest.mark.parametrize("spec", [{}, {"start": Edge.LATEST}, {"start": At(9)}, {"stop_offset": 0}])
async def test_where_there_is_nothing_one_response_says_so(spec):
    async with topic_on() as broker:
        assert await fetched(broker, **spec) == [Fetched(b"", 0, 0, 0, 0)]


async def test_a_stop_ends_a_fetch_that_follows():
    async with topic_on() as broker, following(broker, stop_offset=2) as responses:
        assert (await next_of(responses)).batches == b""
        await filled(broker, 5)
        rest = [response async for response in responses]
        assert [response.next_offset for response in rest][-1] >= 2


async def test_time_is_looked_up_in_log_order():
    async with topic_on() as broker:
        for time_ms in (50, 10, 70):
            await broker.produce("a", "", 0, batch_of(b"x", now_ms=time_ms))
        found = [await broker.find_offset("a", "", 0, time_ms) for time_ms in (0, 50, 51, 71)]
        assert found == [0, 0, 2, None]


# Following


async def test_a_fetch_that_follows_gives_records_as_they_come():
    async with topic_on() as broker, following(broker) as responses:
        assert await next_of(responses) == Fetched(b"", 0, 0, 0, 0)
        for number in range(3):
            waiting = asyncio.create_task(next_of(responses))
            await asyncio.sleep(0)
            await broker.produce("a", "", 0, batch_of(b"%d" % number))
            response = await waiting
            assert (response.next_offset, response.high_watermark) == (number + 1, number + 1)
            assert response.batches, "no empty response between two with batches"


async def test_a_response_never_ends_behind_the_high_watermark_it_tells():
    async with topic_on() as broker:
        await filled(broker)
        log = await broker.engine.open(
            broker.get_topic("a").partition(0), broker.get_topic("a").settings
        )
        read = log.read

        async def appended_meanwhile(offset, max_bytes):
            await filled(broker, 1)
            return await read(offset, max_bytes)

        log.read = appended_meanwhile
        [response] = await fetched(broker)
        assert response.next_offset <= response.high_watermark


async def test_an_idle_fetch_says_that_it_lives():
    limits = LimitsConfig(idle_heartbeat_ms=5_000)
    async with topic_on(limits=limits) as broker, following(broker) as responses:
        await next_of(responses)
        for _ in range(3):
            waiting = asyncio.create_task(next_of(responses))
            await broker.clock.advance(4_999)
            assert not waiting.done()
            await broker.clock.advance(1)
            assert await waiting == Fetched(b"", 0, 0, 0, 0)


async def test_a_heartbeat_tells_of_a_trim():
    async with topic_on() as broker, following(broker, start=Edge.LATEST) as responses:
        await next_of(responses)
        await filled(broker, 3)
        assert (await next_of(responses)).next_offset == 3
        await broker.trim_topic("a", "", 0, 2)
        waiting = asyncio.create_task(next_of(responses))
        await broker.clock.advance(5_000)
        assert (await waiting).log_start_offset == 2


async def test_what_is_not_durable_is_not_read():
    async with topic_on(SlowEngine(ManualClock())) as broker, following(broker) as responses:
        await next_of(responses)
        appended = broker.produce("a", "", 0, batch_of(b"1"))
        waiting = asyncio.create_task(next_of(responses))
        await broker.clock.advance(4_000)
        assert not waiting.done()
        log = await broker.engine.open(broker.get_topic("a").partition(0), None)
        log.flush()
        assert (await waiting).next_offset == (await appended).base_offset + 1


# How much


async def test_responses_grow_to_the_budget_while_the_client_keeps_up():
    async with topic_on() as broker:
        for _ in range(60):
            await broker.produce("a", "", 0, batch_of(b"x" * 60_000))
        sizes = [len(response.batches) for response in await fetched(broker)]
        assert sizes[0] <= FIRST_BYTES < sizes[1] <= 2 * FIRST_BYTES < sizes[2]
        assert FETCH_BYTES // 2 < max(sizes) <= FETCH_BYTES


async def test_a_client_that_is_slow_gets_small_responses_again():
    async with topic_on() as broker:
        for _ in range(40):
            await broker.produce("a", "", 0, batch_of(b"x" * 60_000))
        sizes = []
        async for response in broker.fetch(FetchSpec(topic="a")):
            sizes.append(len(response.batches))
            if len(sizes) == 3:
                await broker.clock.advance(SLOW_MS + 1)
        assert sizes[2] > sizes[3]
        assert sizes[3] <= FIRST_BYTES


async def test_a_budget_is_kept_but_for_a_batch_that_is_larger():
    async with topic_on() as broker:
        for size in (10, 10, 900_000, 10):
            await broker.produce("a", "", 0, batch_of(b"x" * size))
        responses = await fetched(broker, max_bytes=1_024)
        assert [response.next_offset for response in responses] == [2, 3, 4]


async def test_a_huge_budget_is_cut():
    async with topic_on(limits=LARGE) as broker:
        for _ in range(40):
            await broker.produce("a", "", 0, batch_of(b"x" * 400_000))
        responses = await fetched(broker, max_bytes=2**63 - 1, max_response_bytes=2**63 - 1)
        largest = max(len(response.batches) for response in responses)
        assert largest <= RESPONSE_BYTES - RESPONSE_FIELDS_BYTES


async def test_a_batch_that_the_client_cannot_receive_is_an_error_that_says_so():
    async with topic_on(limits=LARGE) as broker:
        await broker.produce("a", "", 0, batch_of(b"small"))
        await broker.produce("a", "", 0, batch_of(b"x" * (5 << 20)))
        seen, error = await until_error(broker.fetch(FetchSpec(topic="a", max_bytes=100)))
        assert ([each.next_offset for each in seen], type(error)) == ([1], InvalidError)
        assert (error.reason, error.details["offset"]) == ("RESPONSE_TOO_LARGE", "1")
        assert len(await values_of(broker, max_response_bytes=6 << 20)) == 2


# What is refused


@pytest.mark.parametrize(
    "spec, reason",
    [
        ({"start": -1}, "INVALID_OFFSET"),
        ({"stop_offset": -1}, "INVALID_ARGUMENT"),
        ({"max_bytes": -1}, "INVALID_ARGUMENT"),
        ({"max_response_bytes": -1}, "INVALID_ARGUMENT"),
        ({"max_response_bytes": 2_047}, "INVALID_ARGUMENT"),
        ({"topic": "b"}, "TOPIC_NOT_FOUND"),
        ({"topic": ""}, "INVALID_NAME"),
        ({"topic": "__topics"}, "INVALID_NAME"),
        ({"topic_id": "old"}, "TOPIC_RECREATED"),
        ({"partition": 1}, "PARTITION_NOT_FOUND"),
        ({"partition": -1}, "PARTITION_NOT_FOUND"),
        ({"start": 1}, "OFFSET_OUT_OF_RANGE"),
        ({"start": 2**63 - 1}, "OFFSET_OUT_OF_RANGE"),
    ],
)
async def test_what_cannot_be_read_is_refused(spec, reason):
    async with topic_on() as broker:
        with pytest.raises(LogbrokerError) as raised:
            await fetched(broker, **{"topic": "a", **spec})
        assert raised.value.reason == reason


@pytest.mark.parametrize("offset", [1, 6])
async def test_out_of_range_tells_the_bounds(offset):
    async with topic_on() as broker:
        await filled(broker)
        await broker.trim_topic("a", "", 0, 2)
        with pytest.raises(OffsetOutOfRangeError) as raised:
            await fetched(broker, start=offset)
        assert raised.value.details == {
            "offset": str(offset),
            "log_start_offset": "2",
            "high_watermark": "5",
        }


@pytest.mark.parametrize("offset, reason", [(-1, "INVALID_OFFSET"), (6, "OFFSET_OUT_OF_RANGE")])
async def test_a_trim_stays_within_the_bounds(offset, reason):
    async with topic_on() as broker:
        await filled(broker)
        assert await broker.trim_topic("a", "", 0, 5) == 5
        assert await broker.trim_topic("a", "", 0, 3) == 5, "a lower one changes nothing"
        with pytest.raises(LogbrokerError) as raised:
            await broker.trim_topic("a", "", 0, offset)
        assert raised.value.reason == reason


async def test_damage_ends_the_stream_and_tells_where_to_go_on():
    async with topic_on() as broker:
        await filled(broker)
        log = await broker.engine.open(broker.get_topic("a").partition(0), None)
        read = log.read

        async def damaged(offset, max_bytes):
            if offset == 2:
                raise DataLossError("DAMAGED_BATCH", "bad", offset=2, next_offset=4)
            return await read(offset, 1)

        log.read = damaged
        seen, error = await until_error(broker.fetch(FetchSpec(topic="a")))
        assert ([each.next_offset for each in seen], type(error)) == ([1, 2], DataLossError)
        assert error.details["next_offset"] == "4"
        assert await values_of(broker, start=4) == [b"4"]


async def test_a_deleted_topic_ends_those_who_read_it():
    async with topic_on() as broker:
        async with following(broker) as responses:
            await next_of(responses)
            waiting = asyncio.create_task(next_of(responses))
            await asyncio.sleep(0)
            await broker.delete_topic("a", "")
            with pytest.raises(NotFoundError):
                await waiting
        await broker.create_topic("a", 1, TopicSettings())
        assert await values_of(broker) == []


async def test_a_deleted_topic_ends_those_who_are_about_to_read_on():
    async with topic_on() as broker:
        await filled(broker)
        async with following(broker, max_bytes=1) as responses:
            await next_of(responses)
            await broker.delete_topic("a", "")
            with pytest.raises(NotFoundError):
                await next_of(responses)


async def test_a_closed_engine_ends_those_who_wait():
    async with broker_on() as broker:
        await broker.create_topic("a", 1, TopicSettings())
        async with following(broker) as responses:
            await next_of(responses)
            waiting = asyncio.create_task(next_of(responses))
            await asyncio.sleep(0)
            await broker.engine.close()
            with pytest.raises(UnavailableError) as raised:
                await waiting
            assert raised.value.reason == "SHUTTING_DOWN"
