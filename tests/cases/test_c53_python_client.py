"""C53: the Python client: waits that are cancelled, programs that just end, and forks."""

import asyncio
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random

import pytest

from cases.effort import effort
from logbroker.client import Client, Reader
from logbroker.client.blocking import BlockingClient
from logbroker.testing.running_broker import BrokerProcess, running_broker

RECORD_COUNT = 2_000
WAIT_S = 0.001
HANG_S = 5
PARTITION_COUNT = 3

pytestmark = pytest.mark.slow


async def send_numbers(client: Client) -> None:
    """Sends records at about the pace at which waits of 1 ms run out."""
    async with client.producer("numbers") as producer:
        for number in range(RECORD_COUNT):
            await producer.send(b"%d" % number)
            if number % 8 == 0:
                await producer.flush()
                await asyncio.sleep(2 * WAIT_S)


async def by_wait_for(reader: Reader, random: Random) -> list[bytes | None]:
    return [(await asyncio.wait_for(anext(reader), WAIT_S)).value]


async def by_timeout(reader: Reader, random: Random) -> list[bytes | None]:
    async with asyncio.timeout(WAIT_S):
        return [(await anext(reader)).value]


async def by_no_time_at_all(reader: Reader, random: Random) -> list[bytes | None]:
    return [(await asyncio.wait_for(anext(reader), random.choice([0, 1e-6, 1e-5]))).value]


async def by_batch(reader: Reader, random: Random) -> list[bytes | None]:
    batch = await asyncio.wait_for(reader.next_batch(), WAIT_S)
    assert batch is not None
    return list(batch.values)


async def by_record_and_batch(reader: Reader, random: Random) -> list[bytes | None]:
    return await random.choice([by_wait_for, by_batch])(reader, random)


async def by_cancelled_task(reader: Reader, random: Random) -> list[bytes | None]:
    """The task is cancelled at any moment, and may have its record all the same."""
    task = asyncio.ensure_future(anext(reader))
    for _ in range(random.randint(0, 20)):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return [(await task).value]
    except asyncio.CancelledError:
        raise TimeoutError from None


Wait = Callable[[Reader, Random], Awaitable[list[bytes | None]]]
WAITS: tuple[Wait, ...] = (
    by_wait_for, by_timeout, by_no_time_at_all, by_batch, by_record_and_batch, by_cancelled_task,
)  # fmt: skip


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.__name__)
async def test_waits_that_are_cancelled_lose_and_double_nothing(wait: Wait):
    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic("numbers")
        async with client.reader("numbers", follow=True) as reader:
            sending = asyncio.create_task(send_numbers(client))
            found: list[bytes | None] = []
            random, given_up = Random(1), 0
            while len(found) < RECORD_COUNT:
                try:
                    found += await wait(reader, random)
                except TimeoutError:
                    given_up += 1
            await sending
            assert found == [b"%d" % number for number in range(RECORD_COUNT)]
            assert given_up > 10, "waits were cancelled"
            assert reader.position(0) == RECORD_COUNT


async def test_waits_on_many_partitions_lose_and_double_nothing_either():
    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic("numbers", PARTITION_COUNT)
        async with client.reader("numbers", follow=True) as reader:
            sending = asyncio.create_task(send_numbers(client))
            found: list[bytes | None] = []
            while len(found) < RECORD_COUNT:
                with suppress(TimeoutError):
                    found += await by_wait_for(reader, Random())
            await sending
    assert sorted(int(value or b"") for value in found) == list(range(RECORD_COUNT))


async def test_an_opening_that_is_cancelled_can_be_begun_again():
    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic("numbers")
        sending = asyncio.create_task(send_numbers(client))
        reader, random = client.reader("numbers", follow=True), Random(3)
        found: list[bytes | None] = []
        while len(found) < RECORD_COUNT:
            with suppress(TimeoutError):
                found += await by_no_time_at_all(reader, random)
        await sending
        assert found == [b"%d" % number for number in range(RECORD_COUNT)]


async def test_a_send_that_is_cancelled_is_sent_once_or_not_at_all():
    """With little room in the buffer, so that `send` waits, and is cancelled there."""
    random = Random(2)
    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic("numbers")
        taken, maybe = [], set()
        async with client.producer("numbers", buffer_bytes=16 << 10, max_batch_bytes=1_024) as to:
            for number in range(effort(500, 2_000)):
                value = b"%d" % number
                task = asyncio.ensure_future(to.send(value + b"." * 500))
                for _ in range(random.randint(0, 5)):
                    await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                    taken.append(value)
                except asyncio.CancelledError:
                    maybe.add(value)
            await to.flush()
            assert to.unsent_count == 0
        async with client.reader("numbers") as reader:
            found = [(record.value or b"").rstrip(b".") async for record in reader]
    assert len(found) == len(set(found))
    assert [value for value in found if value not in maybe] == taken
    assert maybe, "some were cancelled"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("c53") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(address: str, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", ".").replace("]", "")
    with BlockingClient(address) as client:
        client.admin.create_topic(name)
    return name


def test_polls_of_a_blocking_reader_lose_and_double_nothing(address, topic):
    with (
        BlockingClient(address) as client,
        client.producer(topic) as producer,
        client.reader(topic, follow=True) as reader,
    ):
        found, given_up, number = [], 0, 0
        while len(found) < RECORD_COUNT:
            if number < RECORD_COUNT and number <= len(found) + 50:
                producer.send(b"%d" % number)
                number += 1
            record = reader.poll(timeout_ms=1)
            if record is None:
                given_up += 1
            else:
                found.append(record.value)
    assert found == [b"%d" % number for number in range(RECORD_COUNT)]
    assert given_up > 0


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; what hangs raises TimeoutExpired."""
    command = [sys.executable, "-c", textwrap.dedent(script), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def count_of(address: str, topic: str) -> int:
    with BlockingClient(address) as client:
        return client.admin.get_topic(topic).partitions[0].high_watermark


ASYNC = """
    import asyncio, sys
    from logbroker.client import Client

    async def main():
        client = Client(sys.argv[1])
        producer = client.producer(sys.argv[2])
        for number in range(1000):
            await producer.send(b"%d" % number)
        {end}

    asyncio.run(main())
"""
IN_CONTEXT = """
    import asyncio, sys
    from logbroker.client import Client

    async def main():
        async with Client(sys.argv[1]) as client:
            producer = client.producer(sys.argv[2])
            for number in range(1000):
                await producer.send(b"%d" % number)
            {end}

    asyncio.run(main())
"""
BLOCKING = """
    import sys
    from logbroker.client.blocking import BlockingClient

    client = BlockingClient(sys.argv[1])
    producer = client.producer(sys.argv[2])
    for number in range(1000):
        producer.send(b"%d" % number)
    {end}
"""


@pytest.mark.parametrize("end", ["pass", "raise ValueError('done for')"], ids=["ends", "raises"])
@pytest.mark.parametrize(
    "script", [ASYNC, IN_CONTEXT, BLOCKING], ids=["async", "in context", "blocking"]
)
def test_a_program_that_ends_without_a_flush_delivers_or_says_what_it_did_not(
    address, script, end, request
):
    topic = f"end-{abs(hash(request.node.name))}"
    with BlockingClient(address) as client:
        client.admin.create_topic(topic)
    started = time.monotonic()
    ended = run(script.format(end=end), address, topic)
    assert time.monotonic() - started < 2 * HANG_S, "the wait is bounded"
    stored = count_of(address, topic)
    assert ("ValueError: done for" in ended.stderr) == (end != "pass")
    if stored == 1_000:
        assert ended.returncode == (0 if end == "pass" else 1)
    else:
        assert script is ASYNC, "whoever can wait for delivery does"
        assert ended.returncode != 0
        assert "records not sent, or not answered" in ended.stderr


FORK = """
    import multiprocessing, sys
    from logbroker.client.blocking import BlockingClient
    from logbroker.errors import PreconditionError

    def with_a_new_client(server, topic):
        try:
            with BlockingClient(server) as client, client.producer(topic) as producer:
                producer.publish(b"child")
        except PreconditionError as error:
            assert error.reason == "CLIENT_CLOSED", error
            sys.exit(3)

    def with_the_parents_client(server, topic):
        try:
            client.producer(topic).publish(b"child")
        except PreconditionError as error:
            assert error.reason == "CLIENT_CLOSED", error
            sys.exit(3)

    def run(method, target):
        child = multiprocessing.get_context(method).Process(target=target, args=sys.argv[1:3])
        child.start()
        child.join(HANG_S)
        if child.exitcode is None:
            child.kill()
            child.join()
        print(child.exitcode)

    run("fork", with_a_new_client)
    client = BlockingClient(sys.argv[1])
    run("fork", with_a_new_client)
    producer = client.producer(sys.argv[2])
    producer.publish(b"parent")
    run("fork", with_a_new_client)
    run("fork", with_the_parents_client)
    producer.publish(b"parent")
    client.close()
    run("fork", with_a_new_client)
""".replace("HANG_S", str(HANG_S))


def test_a_child_process_works_or_raises_at_once_and_never_hangs(address, topic):
    ended = run(FORK, address, topic)
    assert ended.stdout.split() == ["0", "0", "3", "3", "3"], ended.stderr
    assert (ended.returncode, ended.stderr) == (0, "")
    assert count_of(address, topic) == 4


def test_a_spawned_child_works(address, topic, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        textwrap.dedent("""
            import multiprocessing, sys
            from logbroker.client.blocking import BlockingClient

            def child(server, topic):
                with BlockingClient(server) as client, client.producer(topic) as producer:
                    producer.publish(b"child")

            if __name__ == "__main__":
                with BlockingClient(sys.argv[1]) as client:
                    client.producer(sys.argv[2]).publish(b"parent")
                    with multiprocessing.get_context("spawn").Pool(1) as pool:
                        pool.apply(child, sys.argv[1:3])
        """)
    )
    command = [sys.executable, str(script), address, topic]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert count_of(address, topic) == 2
