"""C28: a group goes on where it has settled, whatever ended in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from server.members import ACK, member_of, publish

from cases.grouped import calls_to, check_nothing_left, make_topic, settle_each, until_members
from cases.proxy import Proxy
from cases.watching import becomes_true
from logbroker.client import Client
from logbroker.group.settings import GroupSettings, Start
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import group_pb2

pytestmark = pytest.mark.slow
ORDERS = [group_pb2.ORDER_PARTITION, group_pb2.ORDER_KEY, group_pb2.ORDER_NONE]
NAMES = ["partition", "key", "none"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as started:
        yield started


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


async def offsets_that_come(calls, count, **member) -> list[int]:
    """Lets a member settle so many records, and nothing more comes."""
    found = []
    one = await member_of(calls, **member)
    while len(found) < count:
        delivered = await one.delivery()
        found += delivered.offsets
        await settle_each(one, delivered)
    await one.leave()
    await check_nothing_left(calls)
    return found


@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
async def test_c28a_after_a_kill_exactly_what_was_not_settled_comes_again(broker, order):
    async with calls_to(broker.address) as calls:
        await make_topic(calls)
        await publish(calls, *numbers(0, 10), keys=numbers(0, 10))
        member = await member_of(calls, order=order)
        held = await member.take(10)
        assert [offset for each in held for offset in each.offsets] == list(range(10))
        for offset in (0, 1, 2, 4, 6):
            [lease] = [each for each in held if offset in each.offsets]
            result = await member.settle(lease, ACK, offset, offset + 1)
            assert not result.HasField("error")
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        assert sorted(await offsets_that_come(calls, 5)) == [3, 5, 7, 8, 9]


@pytest.mark.parametrize("order", ORDERS, ids=NAMES)
async def test_c28b_after_a_consumer_died_its_group_goes_on_behind_what_it_settled(broker, order):
    async with calls_to(broker.address) as calls:
        await make_topic(calls)
        await publish(calls, *numbers(0, 8), keys=numbers(0, 8))
        member = await member_of(calls, order=order, limits=5)
        [held] = await member.take(5)
        await member.settle(held, ACK, 0, 3)
        member.vanish()
        await until_members(calls, 0)
        assert sorted(await offsets_that_come(calls, 5)) == [3, 4, 5, 6, 7]


@pytest.mark.parametrize("is_killed", [False, True], ids=["connection_breaks", "broker_is_killed"])
async def test_c28c_a_group_that_began_at_latest_gets_what_came_while_it_was_away(
    broker, is_killed
):
    async with Proxy(broker.address) as proxy, Client(broker.address) as direct:
        await direct.admin.create_topic("a")
        async with direct.producer("a") as producer:
            await (await producer.send_many(numbers(0, 100)))
        async with (
            Client(proxy.address) as client,
            client.consumer("g", "a", settings=GroupSettings(start=Start.LATEST)) as consumer,
        ):

            async def has_caught_up() -> bool:
                return bool(consumer.caught_up)

            await becomes_true(has_caught_up, "it has caught up")
            assert consumer.stats().delivered_count == 0
            if is_killed:
                broker.kill()
                broker.start()
            else:
                proxy.cut()
            async with direct.producer("a") as producer:
                await (await producer.send_many(numbers(100, 105)))
            found = [(await anext(consumer)).value for _ in range(5)]
            assert found == numbers(100, 105)
            await consumer.commit()
            await becomes_true(has_caught_up, "it has caught up again")
            assert consumer.stats().delivered_count == 5
