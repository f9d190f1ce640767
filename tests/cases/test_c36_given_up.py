"""C36: what a group does about a record it gave up: blocks, drops it, or holds its key."""

import pytest
from server.calls import refusal, serving
from server.members import ACK, REJECT, RETRY, member_on, publish

from cases.grouped import calls_to, check_nothing_left, group_of, make_topic, settle_each
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_pb2
from logbroker.v1.group_service_pb2 import ExplainRequest
from logbroker.v1.topic_service_pb2 import CreateTopicRequest, ListTopicsRequest

pytestmark = pytest.mark.slow

PARTITION, KEY, NONE = group_pb2.ORDER_PARTITION, group_pb2.ORDER_KEY, group_pb2.ORDER_NONE
BLOCK = {"exhausted": group_pb2.EXHAUSTED_BLOCK, "max_failures": 2, "retry_initial_ms": 1}
DISCARD = {"exhausted": group_pb2.EXHAUSTED_DISCARD, "max_failures": 1}
HOLD = {"after_dead_letter": group_pb2.AFTER_DEAD_LETTER_HOLD, "max_failures": 1}
KEYS = [b"x", b"x", b"y", b"x"]
VALUES = [b"0", b"1", b"2", b"3"]


@pytest.fixture
def broker(tmp_path):
    with BrokerProcess(tmp_path / "data") as process:
        yield process


def which(**fields) -> dlq.DeadLetterFilter:
    return dlq.DeadLetterFilter(**{"group": "g", "topic": "a", **fields})


async def state_of(calls, offset: int) -> str:
    request = ExplainRequest(group="g", topic="a", partition=0, offset=offset)
    return (await calls.groups.Explain(request)).state


async def blocked(calls, **fields) -> list[dlq.DeadLetter]:
    request = dlq.ListDeadLettersRequest(filter=which(blocked=True, **fields))
    return list((await calls.dead_letters.ListDeadLetters(request)).dead_letters)


async def give_up_first(calls, **settings) -> list[bytes]:
    """Lets the group fail at the first record; returns what else comes, which it acknowledges."""
    await make_topic(calls)
    await publish(calls, *VALUES, keys=KEYS)
    came = []
    async with member_on(calls, **settings) as member:
        failures = 0
        while failures < settings["max_failures"]:
            held = await member.delivery()
            for offset, value in held.records:
                if offset == 0:
                    failures += 1
                    await member.settle(held, RETRY, 0, 1, reason=f"failure {failures}")
                elif settings.get("order", PARTITION) != PARTITION:
                    came.append(value)
                    await member.settle(held, ACK, offset, offset + 1)
    return came


async def take(calls, count: int, outcome=ACK) -> list[tuple[bytes, int]]:
    """Returns values and redrives of the next so many records, and settles them."""
    found = []
    async with member_on(calls) as member:
        while len(found) < count:
            held = await member.delivery()
            redrives = {
                at: each.redrives
                for each in held.delivery.ranges
                for at in range(each.first_offset, each.end_offset)
            }
            found += [(value, redrives[offset]) for offset, value in held.records]
            await settle_each(member, held, outcome)
    return found


@pytest.mark.parametrize(
    "order, goes_on, is_redriven",
    [
        (PARTITION, [], True),
        (PARTITION, [], False),
        (KEY, [b"2"], True),
        (NONE, [b"1", b"2", b"3"], False),
    ],
    ids=["partition redriven", "partition resolved", "key redriven", "none resolved"],
)
async def test_c36_a_blocked_record_waits_in_its_place_for_an_operator_through_a_kill(
    broker, order, goes_on, is_redriven
):
    async with calls_to(broker.address) as calls:
        assert sorted(await give_up_first(calls, order=order, **BLOCK)) == goes_on
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        assert await state_of(calls, 0) == "parked"
        [told] = await blocked(calls)
        assert (told.offset, told.source_topic, told.dead_letter_topic) == (0, "a", "")
        assert (told.state, told.reason, told.failures) == ("parked", "failure 2", 2)
        assert (told.key, told.value_bytes) == (b"x", 1)
        shown = await calls.dead_letters.GetDeadLetter(
            dlq.GetDeadLetterRequest(group="g", topic="a", offset=0, blocked=True)
        )
        assert (shown.value, shown.dead_letter) == (b"0", told)
        [progress] = (await group_of(calls)).progress
        assert (progress.parked_count, progress.waits_for) == (1, "parked")
        topics = (await calls.topics.ListTopics(ListTopicsRequest())).topics
        assert [one.topic for one in topics] == ["a"], "there is no dead-letter topic"
        if is_redriven:
            request = dlq.StartRedriveRequest(filter=which(blocked=True))
            started = (await calls.dead_letters.StartRedrive(request)).redrive
            assert (started.selected_count, started.filter) == (1, which(blocked=True))
        else:
            request = dlq.ResolveDeadLettersRequest(filter=which(blocked=True), discard=True)
            assert (await calls.dead_letters.ResolveDeadLetters(request)).count == 1
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        rest = [(value, 0) for value in VALUES[1:] if value not in goes_on]
        expected = [(b"0", 1), *rest] if is_redriven else rest
        assert sorted(await take(calls, len(expected))) == expected
        assert not await blocked(calls)
        await check_nothing_left(calls)
        if is_redriven:
            look = dlq.GetRedriveRequest(redrive_id=started.redrive_id)
            done = (await calls.dead_letters.GetRedrive(look)).redrive
            assert (done.state, done.redriven_count, done.resolved_count) == ("done", 1, 1)
            assert done.filter == which(blocked=True)


async def test_c36_a_blocked_record_that_fails_again_after_a_redrive_is_blocked_again():
    async with serving(topic="", partition_count=1) as calls:
        await give_up_first(calls, **BLOCK)
        request = dlq.StartRedriveRequest(filter=which(blocked=True))
        await calls.dead_letters.StartRedrive(request)
        async with member_on(calls) as member:
            for failures in range(2):
                held = await member.delivery()
                assert (held.failures[0], held.values[0]) == (failures, b"0")
                await member.settle(held, RETRY, 0, 1, reason="once more")
        [told] = await blocked(calls)
        assert (told.reason, told.failures, told.redrives) == ("once more", 2, 1)


async def test_c36_blocked_records_are_chosen_as_dead_letters_are():
    async with serving(topic="", partition_count=1) as calls:
        await make_topic(calls)
        await publish(calls, *VALUES, keys=KEYS)
        async with member_on(calls, order=NONE, **{**BLOCK, "max_failures": 1}) as member:
            for held in await member.take(4):
                for offset in held.offsets:
                    reason = "odd" if offset % 2 else "even"
                    await member.settle(held, REJECT, offset, offset + 1, reason=reason)
        at_ms = (await blocked(calls))[0].dead_lettered_ms
        for fields, offsets in [
            ({}, [0, 1, 2, 3]),
            ({"reason_contains": "odd"}, [1, 3]),
            ({"key": b"y"}, [2]),
            ({"first_offset": 1, "end_offset": 3}, [1, 2]),
            ({"from_ms": at_ms}, [0, 1, 2, 3]),
            ({"until_ms": at_ms}, []),
            ({"partition": 0, "reason_contains": "nothing"}, []),
        ]:
            assert [one.offset for one in await blocked(calls, **fields)] == offsets, fields
            dry = dlq.StartRedriveRequest(filter=which(blocked=True, **fields), dry_run=True)
            found = (await calls.dead_letters.StartRedrive(dry)).redrive
            assert found.selected_count == len(offsets)
        await calls.topics.CreateTopic(_topic("b"))
        copy = dlq.CopyDeadLettersRequest(
            filter=which(blocked=True, reason_contains="odd"), to_topic="b"
        )
        assert (await calls.dead_letters.CopyDeadLetters(copy)).count == 2
        async with member_on(calls, group="h", topics=("b",)) as reader:
            assert [v for d in await reader.take(2) for v in d.values] == [b"1", b"3"]
        request = dlq.StartRedriveRequest(filter=which(blocked=True, reason_contains="odd"))
        await calls.dead_letters.StartRedrive(request)
        assert sorted(await take(calls, 2)) == [(b"1", 1), (b"3", 1)]
        assert [one.offset for one in await blocked(calls)] == [0, 2]
        missing = dlq.GetDeadLetterRequest(group="g", topic="a", offset=1, blocked=True)
        call = calls.dead_letters.GetDeadLetter(missing)
        assert await refusal(call) == ("NOT_FOUND", "DEAD_LETTER_NOT_FOUND")


def _topic(name) -> CreateTopicRequest:
    return CreateTopicRequest(topic=name, partition_count=1)


async def test_c36_what_is_parked_in_a_dead_letter_topic_by_another_group_can_be_moved_too():
    async with serving(partition_count=1) as calls:
        await publish(calls, b"m")
        async with member_on(calls) as member:
            await member.settle(await member.delivery(), REJECT, reason="first")
        async with member_on(calls, group="h", topics=["a.g.dlq"]) as reader:
            await reader.settle(await reader.delivery(), REJECT, reason="second")
            there = {"group": "h", "topic": "a.g.dlq", "blocked": True}
            request = dlq.ListDeadLettersRequest(filter=which(**there))
            [told] = (await calls.dead_letters.ListDeadLetters(request)).dead_letters
            assert (told.source_topic, told.reason) == ("a.g.dlq", "second")
            start = dlq.StartRedriveRequest(filter=which(**there))
            await calls.dead_letters.StartRedrive(start)
            again = await reader.delivery()
            assert (again.values, again.delivery.ranges[0].redrives) == ([b"m"], 1)


async def test_c36_a_discarded_record_is_gone_for_its_group_counted_and_logged(broker):
    async with calls_to(broker.address) as calls:
        await give_up_first(calls, order=PARTITION, **DISCARD)
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        assert await take(calls, 3) == [(value, 0) for value in VALUES[1:]]
        await check_nothing_left(calls)
        assert await state_of(calls, 0) == "settled"
        topics = (await calls.topics.ListTopics(ListTopicsRequest())).topics
        assert [one.topic for one in topics] == ["a"]
        assert not await blocked(calls)
        assert (await group_of(calls)).progress[0].discarded_count == 1
    logged = [
        line for line in broker.log_file.read_text().splitlines() if "records discarded" in line
    ]
    assert ["failure 1" in line for line in logged] == [True]


@pytest.mark.parametrize(
    "order, goes_on, is_redriven",
    [(PARTITION, [], False), (KEY, [b"2"], True)],
    ids=["partition resolved", "key redriven"],
)
async def test_c36_what_a_dead_letter_holds_goes_on_when_it_is_settled_through_kills(
    broker, order, goes_on, is_redriven
):
    async with calls_to(broker.address) as calls:
        assert await give_up_first(calls, order=order, **HOLD) == goes_on
        assert await state_of(calls, 0) == "dead_lettered"
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        if is_redriven:
            request = dlq.StartRedriveRequest(filter=which())
            await calls.dead_letters.StartRedrive(request)
        else:
            request = dlq.ResolveDeadLettersRequest(filter=which())
            assert (await calls.dead_letters.ResolveDeadLetters(request)).count == 1
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        rest = [(value, 0) for value in VALUES[1:] if value not in goes_on]
        expected = [(b"0", 1), *rest] if is_redriven else rest
        assert await take(calls, len(expected)) == expected, "and in this order"
        await check_nothing_left(calls)
