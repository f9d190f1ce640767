"""Programs that read as a group and end, each in its way: what they held has not failed."""

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from logbroker.client.blocking import BlockingClient
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow

PRELUDE = """
import asyncio, sys, threading
from logbroker import BlockingClient, Client

ADDRESS, TOPIC = sys.argv[1:]
GROUP = TOPIC
ONE = {"max_outstanding_records": 1}  # to vanish with one record alone would be a failure


def has_one(*_):
    print("has one", flush=True)


async def handle(record):
    has_one()
    await asyncio.Event().wait()


async def take(consumer):
    await anext(consumer)
    has_one()
"""
RUN = "\nasyncio.run(main())"

ENDS = {
    "an exception in the body of a consumer": """
async def main():
    async with Client(ADDRESS) as client, client.consumer(GROUP, TOPIC, **ONE) as consumer:
        await take(consumer)
        raise ValueError
"""
    + RUN,
    "an exception in the body of the client alone": """
async def main():
    async with Client(ADDRESS) as client:
        consumer = await client.consumer(GROUP, TOPIC, **ONE).open()
        await take(consumer)
        raise ValueError
"""
    + RUN,
    "a return with the client alone closed": """
async def main():
    async with Client(ADDRESS) as client:
        await take(client.consumer(GROUP, TOPIC, **ONE))
"""
    + RUN,
    "a cancelled task": """
async def read(client, has):
    async with client.consumer(GROUP, TOPIC, **ONE) as consumer:
        await take(consumer)
        has.set()
        await asyncio.Event().wait()

async def main():
    async with Client(ADDRESS) as client:
        has = asyncio.Event()
        task = asyncio.create_task(read(client, has))
        await has.wait()
        task.cancel()
        await asyncio.wait({task})
"""
    + RUN,
    "a task that is cancelled again and again while its consumer leaves": """
async def read(client, has):
    async with client.consumer(GROUP, TOPIC, **ONE) as consumer:
        await take(consumer)
        has.set()
        await asyncio.Event().wait()

async def main():
    async with Client(ADDRESS) as client:
        has = asyncio.Event()
        task = asyncio.create_task(read(client, has))
        await has.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
"""
    + RUN,
    "a time-out": """
async def main():
    async with Client(ADDRESS) as client:
        async with asyncio.timeout(None) as limit:
            async with client.consumer(GROUP, TOPIC, **ONE) as consumer:
                await take(consumer)
                limit.reschedule(asyncio.get_running_loop().time())
                await asyncio.Event().wait()
"""
    + RUN,
    "another task of a task group that fails": """
async def fail(has):
    await has.wait()
    has_one()
    raise ValueError

async def main():
    has = asyncio.Event()
    async def handle(record):
        has.set()
        await asyncio.Event().wait()
    async with Client(ADDRESS) as client:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(client.worker(GROUP, TOPIC, handle, **ONE).run())
            tasks.create_task(fail(has))
"""
    + RUN,
    "a worker that is cancelled": """
async def main():
    async with Client(ADDRESS) as client:
        has = asyncio.Event()
        async def handle(record):
            has.set()
            await asyncio.Event().wait()
        task = asyncio.create_task(client.worker(GROUP, TOPIC, handle, **ONE).run())
        await has.wait()
        has_one()
        task.cancel()
        await asyncio.wait({task})
"""
    + RUN,
    "a worker whose client is closed under it": """
async def main():
    async with Client(ADDRESS) as client:
        has = asyncio.Event()
        async def handle(record):
            has.set()
            await asyncio.Event().wait()
        task = asyncio.create_task(client.worker(GROUP, TOPIC, handle, **ONE).run())
        await has.wait()
        has_one()
"""
    + RUN,
    "an exception in the body of a worker": """
async def main():
    async with Client(ADDRESS) as client:
        has = asyncio.Event()
        async def handle(record):
            has.set()
            await asyncio.Event().wait()
        worker = client.worker(GROUP, TOPIC, handle, **ONE)
        async with asyncio.timeout(None) as limit, worker:
            await has.wait()
            has_one()
            limit.reschedule(asyncio.get_running_loop().time() + 0.1)
            raise ValueError
"""
    + RUN,
    "a client that is cancelled again and again while it closes": """
async def read(has):
    async with Client(ADDRESS) as client:
        await take(client.consumer(GROUP, TOPIC, **ONE))
        has.set()
        await asyncio.Event().wait()

async def main():
    has = asyncio.Event()
    task = asyncio.create_task(read(has))
    await has.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
"""
    + RUN,
    "a wait to join that is cancelled": """
async def main():
    async with Client(ADDRESS) as client:
        for number in range(30):
            try:
                async with asyncio.timeout(number / 1_000):
                    async with client.consumer(GROUP, TOPIC, **ONE) as consumer:
                        await anext(consumer)
            except TimeoutError:
                pass
        members = (await client.admin.get_group(GROUP)).members
        assert members == (), members
        has_one()
"""
    + RUN,
    "a blocking consumer with an exception in its body": """
with BlockingClient(ADDRESS) as client, client.consumer(GROUP, TOPIC, **ONE) as consumer:
    next(consumer)
    has_one()
    raise ValueError
""",
    "a blocking client with an exception in its body": """
with BlockingClient(ADDRESS) as client:
    next(client.consumer(GROUP, TOPIC, **ONE))
    has_one()
    raise ValueError
""",
    "the end of a program with a blocking client that is not closed": """
client = BlockingClient(ADDRESS)
next(client.consumer(GROUP, TOPIC, **ONE))
has_one()
""",
    "an exit of a program with a blocking client that is not closed": """
client = BlockingClient(ADDRESS)
next(client.consumer(GROUP, TOPIC, **ONE))
has_one()
sys.exit(3)
""",
    "the end of a program with a blocking worker that runs": """
client = BlockingClient(ADDRESS)
has = threading.Event()

def handle(record):
    has.set()
    threading.Event().wait(0.5)

threading.Thread(target=client.worker(GROUP, TOPIC, handle, **ONE).run, daemon=True).start()
has.wait()
has_one()
""",
}
WAITS = {
    "asyncio, in a consumer": """
async def main():
    async with Client(ADDRESS) as client, client.consumer(GROUP, TOPIC, **ONE) as consumer:
        await take(consumer)
        await anext(consumer)
"""
    + RUN,
    "asyncio, in a worker": """
async def main():
    async with Client(ADDRESS) as client:
        await client.worker(GROUP, TOPIC, handle, **ONE).run()
"""
    + RUN,
    "a blocking consumer": """
ONE["auto_settle"] = False
with BlockingClient(ADDRESS) as client, client.consumer(GROUP, TOPIC, **ONE) as consumer:
    next(consumer)
    has_one()
    next(consumer)
""",
    "a blocking consumer that nobody closes": """
client = BlockingClient(ADDRESS)
consumer = client.consumer(GROUP, TOPIC, auto_settle=False, **ONE)
next(consumer)
has_one()
next(consumer)
""",
}


_numbers = count()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(address: str) -> str:
    """The name of a topic with some records, and of a group."""
    name = f"numbers-{next(_numbers)}"
    settings = GroupSettings(retry=RetryPolicy(initial_ms=60_000), lease_ms=60_000)
    with BlockingClient(address) as client:
        client.admin.create_topic(name)
        client.admin.create_group(name, settings)
        with client.producer(name) as producer:
            for number in range(5):
                producer.publish(b"%d" % number)
    return name


@contextmanager
def running(script: str, address: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """Yields a program that has been handed a record."""
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), address, topic]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        try:
            assert process.stdout
            line = process.stdout.readline()
            assert line == "has one\n", process.communicate(timeout=30)
            yield process
        finally:
            process.kill()


def check_nothing_failed(address: str, group: str) -> None:
    """Nothing of it has failed, waits, or is to be delivered alone."""
    with BlockingClient(address) as client:
        [progress] = client.admin.get_offsets(group, group)
        assert (progress.failed_count, progress.waiting_count, progress.leased_count) == (0, 0, 0)
        explained = client.admin.explain(group, group, 0, progress.committed_offset or 0)
        assert explained.state == "no_member"


@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS)
def test_what_was_held_at_such_an_end_has_not_failed(script, address, topic):
    with running(script, address, topic) as process:
        _, told = process.communicate(timeout=60)
    assert "never awaited" not in told
    assert "was destroyed" not in told, told
    check_nothing_failed(address, topic)


@pytest.mark.parametrize("script", WAITS.values(), ids=WAITS)
def test_what_was_held_at_an_interrupt_has_not_failed(script, address, topic):
    with running(script, address, topic) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    check_nothing_failed(address, topic)
