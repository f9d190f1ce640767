"""One broker for the tests of a worker, and the command line run in this process."""

import io
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import NamedTuple

import pytest

from logbroker.cli.main import run
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
