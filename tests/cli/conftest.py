"""One broker for the tests of a worker, and the command line run in this process."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

import pytest

from logbroker.cli.main import run
from logbroker.client.blocking import BlockingClient
from logbroker.client.blocking_consumer import BlockingConsumer
from logbroker.testing.running_broker import BrokerProcess


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Ran]
_numbers = count()


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`command("topic", "list", stdin=b"")`: its exit code and what it wrote."""

    def run_command(*arguments: str, stdin: bytes = b"", is_typed: bool = False) -> Ran:
        capsysbinary.readouterr()
        source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
        monkeypatch.setattr(source, "isatty", lambda: is_typed)
        monkeypatch.setattr(sys, "stdin", source)
        code = run(arguments)
        out, err = capsysbinary.readouterr()
        return Ran(code, out.decode(errors="surrogateescape"), err.decode())

    return run_command


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker in a process of its own."""
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker.address


@pytest.fixture
def at_server(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Commands go to that broker without saying so."""
    monkeypatch.setenv("LOGBROKER_SERVER", server)
    return server


@pytest.fixture
def topic(at_server: str, command: Command) -> str:
    """A topic of one partition."""
    name = f"topic-{next(_numbers)}"
    assert command("topic", "create", name).code == 0
    return name


@pytest.fixture
def numbered(command: Command, topic: str) -> str:
    """A topic of one partition with the records `0` to `19`."""
    lines = "\n".join(map(str, range(20)))
    assert command("produce", topic, stdin=lines.encode()).code == 0
    return topic


@pytest.fixture
def group() -> str:
    """A name that no group has."""
    return f"group-{next(_numbers)}"


@contextmanager
def attached(server: str, group: str, topic: str) -> Iterator[BlockingConsumer]:
    """A member of the group, in this process, that holds what it is given."""
    with BlockingClient(server) as client:
        consumer = client.consumer(
            group, topic, auto_settle=False, max_outstanding_records=1, client_id="worker é"
        )
        with consumer:
            yield consumer


def fail(server: str, group: str, topic: str, count: int) -> None:
    """Lets the group give up on the next records, for reasons that are numbered."""
    with (
        BlockingClient(server) as client,
        client.consumer(group, topic, auto_settle=False) as consumer,
    ):
        for number in range(count):
            record = consumer.poll(10_000)
            assert record is not None
            consumer.reject(record, f"cannot \x1b[31m parse {number}").result(10_000)
