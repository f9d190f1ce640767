"""C53: consumers: waits that are cancelled lose nothing and leave nothing leased; and forks."""

import asyncio
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from random import Random

import pytest

from cases.effort import effort
from cases.watching import becomes_true
from logbroker.client import Client, Consumer
from logbroker.client.blocking import BlockingClient
from logbroker.testing.running_broker import BrokerProcess

RECORD_COUNT = effort(1_000, 2_000)
WAIT_S = 0.001
HANG_S = 5

pytestmark = pytest.mark.slow
_numbers = count()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("c53") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(address: str) -> str:
    name = f"numbers-{next(_numbers)}"
    with BlockingClient(address) as client:
        client.admin.create_topic(name)
    return name


async def send_numbers(client: Client, topic: str) -> None:
    """Sends records at about the pace at which waits of 1 ms run out."""
    async with client.producer(topic) as producer:
        for number in range(RECORD_COUNT):
            await producer.send(b"%d" % number)
            if number % 8 == 0:
                await producer.flush()
                await asyncio.sleep(2 * WAIT_S)


async def by_wait_for(consumer: Consumer, random: Random) -> list[bytes | None]:
    return [(await asyncio.wait_for(anext(consumer), WAIT_S)).value]


async def by_timeout(consumer: Consumer, random: Random) -> list[bytes | None]:
    async with asyncio.timeout(WAIT_S):
        return [(await anext(consumer)).value]


async def by_no_time_at_all(consumer: Consumer, random: Random) -> list[bytes | None]:
    return [(await asyncio.wait_for(anext(consumer), random.choice([0, 1e-6, 1e-5]))).value]


async def by_batch(consumer: Consumer, random: Random) -> list[bytes | None]:
    batch = await asyncio.wait_for(consumer.next_batch(), WAIT_S)
    assert batch is not None
    return [record.value for record in batch]


async def by_record_and_batch(consumer: Consumer, random: Random) -> list[bytes | None]:
    return await random.choice([by_wait_for, by_batch])(consumer, random)


async def by_cancelled_task(consumer: Consumer, random: Random) -> list[bytes | None]:
    """The task is cancelled at any moment, and may have its record all the same."""
    task = asyncio.ensure_future(anext(consumer))
    for _ in range(random.randint(0, 20)):
        await asyncio.sleep(0)
    task.cancel()
    try:
        return [(await task).value]
    except asyncio.CancelledError:
        raise TimeoutError from None


Wait = Callable[[Consumer, Random], Awaitable[list[bytes | None]]]
WAITS: tuple[Wait, ...] = (
    by_wait_for, by_timeout, by_no_time_at_all, by_batch, by_record_and_batch, by_cancelled_task,
)  # fmt: skip


async def check_all_settled(client: Client, group: str) -> None:
    """Returns once the broker has all settled and none leased, the member still being there."""

    async def is_settled() -> bool:
        [one] = await client.admin.get_offsets(group)
        return (one.committed_offset, one.leased_count, one.lag) == (RECORD_COUNT, 0, 0)

    await becomes_true(is_settled, "all are settled, none is leased")


@pytest.mark.parametrize("settle", ["after", "before"])
@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.__name__)
async def test_waits_that_are_cancelled_lose_nothing_and_leave_nothing_leased(
    address, topic, wait, settle
):
    async with (
        Client(address) as client,
        client.consumer("g" + topic, topic, settle=settle) as consumer,
    ):
        sending = asyncio.create_task(send_numbers(client, topic))
        found: list[bytes | None] = []
        random, given_up = Random(1), 0
        while len(found) < RECORD_COUNT:
            try:
                found += await wait(consumer, random)
            except TimeoutError:
                given_up += 1
        await sending
        assert found == [b"%d" % number for number in range(RECORD_COUNT)]
        assert given_up > 10, "waits were cancelled"
        if settle == "after":
            await consumer.commit()
        await check_all_settled(client, "g" + topic)
        assert consumer.stats().lost_count == 0


async def test_members_that_share_a_topic_lose_nothing_by_cancelled_waits_either(address, topic):
    """In `none` order, where a lease that nobody sees would stay unnoticed."""
    async with Client(address) as client:
        group = "g" + topic
        members = [
            client.consumer(group, topic, order="none", max_outstanding_records=limit)
            for limit in (7, 50, 400)
        ]
        found: list[bytes | None] = []

        async def take(consumer: Consumer, random: Random) -> None:
            while len(found) < RECORD_COUNT:
                with suppress(TimeoutError):
                    found.extend(await random.choice(WAITS)(consumer, random))
            await consumer.commit()

        async with members[0], members[1], members[2]:
            sending = asyncio.create_task(send_numbers(client, topic))
            await asyncio.gather(*(take(one, Random(at)) for at, one in enumerate(members)))
            await sending
            assert Counter(found) == Counter(b"%d" % number for number in range(RECORD_COUNT))
            await check_all_settled(client, group)


async def test_joining_that_is_cancelled_can_be_begun_again(address, topic):
    async with Client(address) as client:
        sending = asyncio.create_task(send_numbers(client, topic))
        consumer, random = client.consumer("g" + topic, topic), Random(3)
        found: list[bytes | None] = []
        while len(found) < RECORD_COUNT:
            with suppress(TimeoutError):
                found += await by_no_time_at_all(consumer, random)
        await sending
        assert found == [b"%d" % number for number in range(RECORD_COUNT)]
        await consumer.commit()
        await check_all_settled(client, "g" + topic)
        assert consumer.stats().joined_count == 1
        await consumer.close()


def test_polls_of_a_blocking_consumer_lose_nothing_and_leave_nothing_leased(address, topic):
    group = "g" + topic
    with (
        BlockingClient(address) as client,
        client.producer(topic) as producer,
        client.consumer(group, topic) as consumer,
    ):
        found, given_up, number = [], 0, 0
        while len(found) < RECORD_COUNT:
            if number < RECORD_COUNT and number <= len(found) + 50:
                producer.send(b"%d" % number)
                number += 1
            record = consumer.poll(timeout_ms=1)
            if record is None:
                given_up += 1
            else:
                found.append(record.value)
        assert found == [b"%d" % number for number in range(RECORD_COUNT)]
        assert given_up > 0
        consumer.commit()
        [one] = client.admin.get_offsets(group)
        assert (one.committed_offset, one.leased_count, one.lag) == (RECORD_COUNT, 0, 0)


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs a program; what hangs raises TimeoutExpired."""
    command = [sys.executable, "-c", textwrap.dedent(script), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)


FORK = """
    import asyncio, multiprocessing, sys, threading
    from logbroker.client import Client
    from logbroker.client.blocking import BlockingClient
    from logbroker.errors import LogbrokerError

    server, topic = sys.argv[1:]

    def outcome_of(what):
        try:
            what()
        except LogbrokerError as error:
            sys.exit(f"{type(error).__name__} {error.reason}")
        sys.exit("went on")

    def fork(name, what):
        receiver, sender = multiprocessing.Pipe(False)

        def child():
            try:
                outcome_of(what)
            except SystemExit as told:
                sender.send(told.code)

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join(HANG_S)
        if process.exitcode is None:
            print(name, "hangs")
            process.kill()
            process.join()
        elif not receiver.poll():
            print(name, "died with", process.exitcode)
        else:
            print(name, receiver.recv())
"""

BLOCKING = """
    client = BlockingClient(server)
    with client.producer(topic) as producer:
        receipt = producer.send(b"0")
        producer.send_many([b"%d" % number for number in range(1, 20)])
    consumer = client.consumer("g" + topic, topic, auto_settle=False).open()
    first = next(consumer)
    pending = consumer.acknowledge(first)
    second = next(consumer)
    worker = client.worker("h" + topic, topic, print)
    started = client.worker("i" + topic, topic, lambda record: None)
    started.__enter__()
    for name, what in {
        "next": lambda: next(consumer),
        "poll": lambda: consumer.poll(60_000),
        "batches": lambda: next(consumer.batches()),
        "commit": consumer.commit,
        "flush": consumer.flush,
        "acknowledge": lambda: consumer.acknowledge(second).result(),
        "retry": lambda: consumer.retry(second).result(),
        "pending": pending.result,
        "stats": consumer.stats,
        "close": consumer.close,
        "open": client.consumer("j" + topic, topic).open,
        "client": lambda: client.consumer("j" + topic, topic),
        "admin": client.admin.list_groups,
        "run": worker.run,
        "stop": started.stop,
        "receipt": lambda: producer.publish(b"child"),
        "new": lambda: BlockingClient(server).consumer("j" + topic, topic).open(),
    }.items():
        fork(name, what)
    consumer.acknowledge(second).result()
    print("parent", [next(consumer).value for _ in range(3)])
    consumer.commit()
    started.__exit__(None, None, None)
    consumer.close()
    client.close()
"""

ASYNC = """
    async def main():
        client = Client(server)
        async with client.producer(topic) as producer:
            await producer.send_many([b"%d" % number for number in range(20)])
        consumer = client.consumer("g" + topic, topic, auto_settle=False)
        await consumer.open()
        first, second = await anext(consumer), await anext(consumer)
        other = client.consumer("j" + topic, topic)
        worker = client.worker("h" + topic, topic, print)

        def running(verb, *arguments):
            async def run():
                await verb(*arguments)
            return lambda: asyncio.run(run())

        async def awaited(what):
            await what

        def acknowledged():
            async def run():
                await consumer.acknowledge(second)
            return run()

        pending = consumer.acknowledge(first)  # under way, since the loop does not go on
        fork("pending", running(awaited, pending))
        for name, what in {
            "next": running(consumer.__anext__),
            "batch": running(consumer.next_batch),
            "commit": running(consumer.commit),
            "flush": running(consumer.flush),
            "acknowledge": running(acknowledged),
            "open": running(other.open),
            "client": lambda: client.consumer("j" + topic, topic),
            "run": running(worker.run),
            "new": lambda: Client(server),
        }.items():
            await asyncio.to_thread(fork, name, what)
        await consumer.acknowledge(second)
        print("parent", [(await anext(consumer)).value for _ in range(3)])
        await consumer.commit()
        await consumer.close()
        await client.close()

    asyncio.run(main())
"""
REFUSED = {
    "next", "poll", "batches", "batch", "commit", "flush", "pending", "stats", "close", "open",
    "client", "admin", "run", "stop", "receipt", "new",
}  # fmt: skip


@pytest.mark.parametrize("script", [BLOCKING, ASYNC], ids=["blocking", "async"])
def test_a_consumer_in_a_child_process_raises_at_once_and_the_parents_goes_on(
    address, topic, script
):
    ended = run(FORK.replace("HANG_S", str(HANG_S)) + script, address, topic)
    told = dict(line.split(" ", 1) for line in ended.stdout.splitlines())
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    assert told.pop("parent") == "[b'2', b'3', b'4']", "nothing is taken from it"
    for name in ("acknowledge", "retry"):  # the lease is not the child's
        if name in told:
            assert told.pop(name).split()[1] in {"LEASE_LOST", "CLIENT_CLOSED"}
    assert told == dict.fromkeys(told.keys() & REFUSED, "PreconditionError CLIENT_CLOSED")
    with BlockingClient(address) as client:
        [one] = client.admin.get_offsets("g" + topic)
        assert (one.committed_offset, one.leased_count) == (5, 0)


BEFORE = """
    def work(name):
        with BlockingClient(server) as client, client.consumer("g" + topic, topic) as consumer:
            print(name, next(consumer).value)
            consumer.commit()

    child = multiprocessing.get_context("fork").Process(target=work, args=("child",))
    child.start()
    child.join(HANG_S)
    print("code", child.exitcode)
    work("parent")
"""


def test_a_child_that_is_forked_before_anything_connects_can_consume(address, topic):
    with BlockingClient(address) as client:
        client.producer(topic).send_many([b"0", b"1"])
    ended = run((FORK + BEFORE).replace("HANG_S", str(HANG_S)), address, topic)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["child b'0'", "code 0", "parent b'1'"]
