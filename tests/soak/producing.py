"""Those who produce: one by one, many at once, to many partitions, and those who come and go."""

from itertools import count

from logbroker.client import Client

from .account import WORK
from .setting import Setting
from .topics import idle_topic

KEYS = [b"key-%d" % number for number in range(500)]
TICK_S = 0.1


async def send_singly(setting: Setting) -> None:
    """A steady stream of single records, by key."""
    each = max(int(setting.sizes.records_per_s * TICK_S / 2), 1)
    async with setting.client.producer(WORK) as producer:
        for turn in count():
            async with setting.doing("produce singly"):
                sent = [await producer.send(b"v" * 100, _key(setting)) for _ in range(each)]
                for pending in sent:
                    await pending
                    setting.account.acknowledged_count += 1
            if turn % 10 == 0:
                async with setting.doing("produce and wait"):
                    await producer.publish(b"one" * 50, key=_key(setting))
                    setting.account.acknowledged_count += 1
            if not await setting.pause(TICK_S):
                return


async def send_many(setting: Setting) -> None:
    """Many at once, now and then, spread over the partitions."""
    size = max(setting.sizes.records_per_s // 2, 1)
    async with setting.client.producer(WORK, codec="zstd") as producer:
        while await setting.pause(1.3):
            async with setting.doing("produce many"):
                values = [b"m" * setting.chance.randint(1, 400) for _ in range(size)]
                receipts = await producer.send_many(values, [_key(setting) for _ in values])
                await receipts
                setting.account.acknowledged_count += size


async def send_widely(setting: Setting) -> None:
    """A record here and there, to one of very many partitions."""
    sizes = setting.sizes
    producers = [
        setting.client.producer(idle_topic(number)) for number in range(sizes.idle_topic_count)
    ]
    while await setting.pause(10 * TICK_S):
        for _ in range(10):
            async with setting.doing("produce widely"):
                partition = setting.chance.randrange(sizes.idle_partition_count)
                await setting.chance.choice(producers).publish(b"w" * 50, partition=partition)
    for producer in producers:
        await producer.close()


async def visit(setting: Setting) -> None:
    """A program that comes, sends a little, and is gone: a connection and a producer id each."""
    while await setting.pause(3):
        async with (
            setting.doing("produce on a visit"),
            Client(setting.address) as client,
            client.producer(WORK) as producer,
        ):
            for _ in range(10):
                await producer.send(b"visit", _key(setting))
            await producer.flush()
            setting.account.acknowledged_count += 10


def _key(setting: Setting) -> bytes:
    return setting.chance.choice(KEYS)
