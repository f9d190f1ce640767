"""Processes of a run: servers, and clients that give no answer."""

import asyncio
import socket
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.peers.client import Clients, Subject
from bench.peers.lab import GIVEN_UP, Lab
from bench.peers.scale import SCALES
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Level
from bench.peers.systems import OURS

LISTEN = """
import socket, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("child", "w").write(str(child.pid))
one = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    one.accept()
"""


def listening(directory: Path) -> ServerProcess:
    (port,) = ports_of(directory, "port")
    command = [sys.executable, "-c", LISTEN, str(port)]
    return ServerProcess(directory, command, address=f"{LOOPBACK}:{port}", ports=[port])


def lab_of(directory: Path) -> Lab:
    return Lab(
        scale=SCALES["tiny"],
        directory=directory,
        systems=[OURS],
        bare=None,  # type: ignore[arg-type]  # not looked at
        clients=None,  # type: ignore[arg-type]
        round_number=1,
        servers={(OURS.name, level): listening(directory / level) for level in Level},
    )


def test_a_directory_keeps_its_ports(tmp_path: Path) -> None:
    first = ports_of(tmp_path / "one", "a", "b")
    assert len({*first, *ports_of(tmp_path / "two", "a")}) == 3
    assert ports_of(tmp_path / "one", "a", "b") == first


@pytest.mark.slow
def test_nothing_of_a_server_outlives_it(tmp_path: Path) -> None:
    server = listening(tmp_path / "server")
    server.start()
    child = int((tmp_path / "server" / "child").read_text())
    assert server.rss_bytes() > 1 << 20
    server.kill()
    assert _has_ended(child)
    server.start()
    server.stop()
    assert server.rss_bytes() == 0


@pytest.mark.slow
def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no disk today')"]
    server = ServerProcess(tmp_path / "server", command, address="", ports=[1])
    with pytest.raises(RuntimeError, match="no disk today"):
        server.start()


@pytest.mark.slow
async def test_a_client_that_does_not_answer_is_an_error_and_is_replaced() -> None:
    clients = Clients()
    try:
        with socket.create_server((LOOPBACK, 0)) as silent:
            subject = Subject(OURS, Level.WRITTEN, f"{LOOPBACK}:{silent.getsockname()[1]}")
            client = await clients.one()
            with pytest.raises(RuntimeError, match="no answer after"):
                await client.ask("create", subject, topic="a", partitions=1, timeout_s=0.2)
            assert await clients.one() is not client
    finally:
        clients.end()


@pytest.mark.slow
async def test_who_is_cancelled_leaves_no_answer_for_the_next_to_read() -> None:
    clients = Clients()
    try:
        with socket.create_server((LOOPBACK, 0)) as silent:
            subject = Subject(OURS, Level.WRITTEN, f"{LOOPBACK}:{silent.getsockname()[1]}")
            client = await clients.one()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.ask("create", subject, topic="a", partitions=1)
            assert client.is_dead
    finally:
        clients.end()


async def test_one_that_fails_stops_nobody_else_and_is_not_tried_a_third_time(
    tmp_path: Path,
) -> None:
    lab, tries = lab_of(tmp_path), []

    async def fail() -> dict[str, float]:
        tries.append(1)
        raise RuntimeError("the server is gone")

    async def work() -> dict[str, float]:
        return {"publish": 7.0}

    (subject,) = lab.subjects(Level.WRITTEN)
    for _ in range(3):
        assert not await lab.measure("replay", subject, fail)
    assert await lab.measure("publish", subject, work)
    assert len(tries) == 2
    assert lab.failures["replay, logbroker"] == ["RuntimeError: the server is gone"] * 2
    assert lab.samples.value("publish, logbroker") == 7.0


async def test_a_system_that_fails_at_everything_is_given_up_at_that_level(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)

    async def fail() -> dict[str, float]:
        raise RuntimeError("the server is gone")

    (subject,) = lab.subjects(Level.WRITTEN)
    for number in range(GIVEN_UP):
        assert lab.subjects(Level.WRITTEN)
        await lab.measure(f"work {number}", subject, fail)
    assert not lab.subjects(Level.WRITTEN)
    assert lab.subjects(Level.SYNCED)


async def test_a_run_that_is_to_end_ends_also_where_cleaning_up_fails(tmp_path: Path) -> None:
    lab, begun = lab_of(tmp_path), asyncio.Event()

    async def work() -> dict[str, float]:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the client has ended")

    (subject,) = lab.subjects(Level.WRITTEN)
    measuring = asyncio.create_task(lab.measure("publish", subject, work))
    await begun.wait()
    measuring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await measuring


@pytest.mark.slow
async def test_a_client_that_has_ended_is_an_error_that_says_so() -> None:
    clients = Clients()
    try:
        client = await clients.one()
        client.kill()
        with pytest.raises(RuntimeError, match="create: the client has ended"):
            await client.ask("create", Subject(OURS, Level.WRITTEN, ""), topic="a", partitions=1)
        assert await clients.one() is not client
    finally:
        clients.end()


async def test_a_warm_up_leaves_no_values(tmp_path: Path) -> None:
    lab = lab_of(tmp_path)
    lab.round_number = 0

    async def work() -> dict[str, float]:
        return {"publish": 7.0}

    (subject,) = lab.subjects(Level.WRITTEN)
    assert await lab.measure("publish", subject, work)
    assert not lab.samples.of("publish, logbroker")


def _has_ended(pid: int) -> bool:
    """Tells whether a process has, even if nobody has waited for it."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] in "ZX"


class RecordedServer:
    """Notes what is done with it."""

    address = f"{LOOPBACK}:1"
    directory = Path("nowhere")

    def __init__(self, level: Level, events: list[str]) -> None:
        self._level = level
        self._events = events

    def start(self) -> None:
        self._events.append(f"start {self._level}")

    def stop(self) -> None:
        self._events.append(f"stop {self._level}")


@pytest.mark.parametrize("is_level_of_topic", [True, False])
async def test_a_server_is_filled_at_its_fastest_and_answers_before_it_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_level_of_topic: bool
) -> None:
    events: list[str] = []

    async def answer(*_: object, **__: object) -> float:
        events.append("answer")
        return 0

    async def one() -> None:
        return None

    monkeypatch.setattr("bench.peers.lab.wait_answer", answer)
    system = replace(
        OURS,
        is_level_of_topic=is_level_of_topic,
        server=lambda _, level: RecordedServer(level, events),  # type: ignore[arg-type]
    )
    lab = lab_of(tmp_path)
    lab.systems = [system]
    lab.clients = SimpleNamespace(one=one)  # type: ignore[assignment]
    lab.servers = {(OURS.name, Level.SYNCED): system.server(tmp_path, Level.SYNCED)}
    (subject,) = lab.subjects(Level.SYNCED)
    async with lab.filling(subject):
        events.append("fill")
    if is_level_of_topic:
        assert events == ["fill"]
    else:
        assert events == [
            "stop synced",
            "start written",
            "answer",
            "fill",
            "stop written",
            "start synced",
            "answer",
        ]


def test_servers_get_absolute_directories_wherever_the_output_goes() -> None:
    assert lab_of(Path("results")).directory == Path.cwd() / "results"
