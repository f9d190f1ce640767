"""Programs that end without a flush, and programs that fork."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator

import pytest

from logbroker.client.blocking import BlockingClient
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(address: str, request: pytest.FixtureRequest) -> str:
    with BlockingClient(address) as client:
        client.admin.create_topic(request.node.name)
    return str(request.node.name)


def run(script: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def count_of(address: str, topic: str) -> int:
    with BlockingClient(address) as client:
        return sum(status.high_watermark for status in client.admin.get_topic(topic).partitions)


QUEUE_1000 = """
    import sys
    from logbroker.client.blocking import BlockingClient
    client = BlockingClient(sys.argv[1])
    producer = client.producer(sys.argv[2])
    for _ in range(1000):
        producer.send(b"v")
"""


def test_a_blocking_producer_is_emptied_when_the_program_ends(address, topic):
    ended = run(QUEUE_1000, address, topic)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert count_of(address, topic) == 1_000


def test_also_when_it_ends_with_an_exception(address, topic):
    ended = run(QUEUE_1000 + "    raise SystemExit('done for')\n", address, topic)
    assert ended.returncode == 1
    assert count_of(address, topic) == 1_000


def test_records_that_nobody_takes_are_told_and_the_exit_code_says_so():
    begun = time.monotonic()
    ended = run(QUEUE_1000, NOBODY, "t")
    assert ended.returncode == 70
    assert "1,000 records not sent" in ended.stderr
    assert time.monotonic() - begun < 20


def test_an_async_producer_whose_loop_has_ended_tells_what_it_held(address, topic):
    script = """
        import asyncio, sys
        from logbroker.client import Client

        async def main():
            producer = Client(sys.argv[1]).producer(sys.argv[2])
            for _ in range(1000):
                await producer.send(b"v" * 1000)
        print("kept", end="")
        asyncio.run(main())
    """
    ended = run(script, address, topic)
    assert ended.returncode == 70
    assert "records not sent, or not answered" in ended.stderr
    assert ended.stdout == "kept"


def test_leaving_the_client_is_enough(address, topic):
    script = """
        import asyncio, sys
        from logbroker.client import Client

        async def main():
            async with Client(sys.argv[1]) as client:
                producer = client.producer(sys.argv[2])
                for _ in range(1000):
                    await producer.send(b"v")
        asyncio.run(main())
    """
    ended = run(script, address, topic)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert count_of(address, topic) == 1_000


def test_a_client_in_a_child_process_raises_at_once_and_the_parents_goes_on(address, topic):
    script = """
        import asyncio, os, sys
        from logbroker.client import Client
        from logbroker.errors import PreconditionError

        async def main():
            async with Client(sys.argv[1]) as client, client.producer(sys.argv[2]) as producer:
                await producer.publish(b"v", b"k")
                await producer.send(b"w")
                await producer.send(b"w", b"k")
                child = os.fork()
                if not child:
                    refused = 0
                    for use in (
                        lambda: producer.send(b"v"),
                        lambda: producer.send(b"v", b"k"),
                        lambda: client.admin.list_topics(),
                        lambda: client.reader(sys.argv[2]).open(),
                    ):
                        try:
                            await use()
                        except PreconditionError as error:
                            refused += error.reason == "CLIENT_CLOSED"
                    os._exit(refused)
                _, status = os.waitpid(child, 0)
                await producer.publish(b"x")
                print(os.waitstatus_to_exitcode(status))
        asyncio.run(main())
    """
    ended = run(script, address, topic)
    assert ended.stdout == "4\n", ended.stderr
    assert ended.returncode == 0
    assert count_of(address, topic) == 4


def test_a_blocking_client_in_a_child_process_raises_at_once(address, topic):
    script = """
        import multiprocessing, sys
        from logbroker.client.blocking import BlockingClient
        from logbroker.errors import PreconditionError

        def child(client, producer):
            refused = 0
            for use in (client.admin.list_topics, lambda: producer.send(b"v"), producer.flush):
                try:
                    use()
                except PreconditionError:
                    refused += 1
            sys.exit(refused)

        with BlockingClient(sys.argv[1]) as client:
            producer = client.producer(sys.argv[2])
            producer.publish(b"v")
            process = multiprocessing.get_context("fork").Process(
                target=child, args=(client, producer)
            )
            process.start()
            process.join(10)
            print(process.exitcode)
    """
    ended = run(script, address, topic)
    assert ended.stdout == "3\n", ended.stderr
    assert ended.returncode == 0
