"""The adapters, without the systems: none of them need be installed."""

import ast
import inspect
from pathlib import Path

import pytest

from bench.peers.skipped import installed, skipped
from bench.peers.system import Ability, Connection, Level, Sender, Server, System
from bench.peers.systems import OURS, SYSTEMS

ROOT = Path(__file__).parents[3]
README = " ".join((ROOT / "bench" / "peers" / "README.md").read_text().split())


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOGBROKER_PEERS_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.peers.fetched.sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("bench.peers.fetched.SYSTEM_DIRECTORIES", ())
    monkeypatch.setattr("bench.peers.fetched._version", lambda _: None)
    monkeypatch.setattr("bench.peers.rabbitmq.server.SCRIPT", tmp_path / "rabbitmq-server")


@pytest.mark.usefixtures("nothing_installed")
def test_what_is_not_installed_is_skipped_and_the_way_to_get_it_is_told() -> None:
    peers = list(SYSTEMS)[1:]
    assert installed(peers) == [OURS]
    lines = skipped(peers)
    assert [line.partition(":")[0] for line in lines] == [SYSTEMS[name].title for name in peers]
    for line in lines:
        assert "make bench-peers-setup" in line
    assert "Kafka's jars (`make bench-peers-setup`)" in lines[0]
    assert "program java (`apt install openjdk-17-jre-headless`)" in lines[0]


@pytest.mark.usefixtures("nothing_installed")
def test_a_tool_that_is_missing_is_told_and_its_system_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.peers.fetched._version", lambda _: "1")
    server = tmp_path / "bin" / "nats-server"
    server.parent.mkdir()
    server.touch()
    assert [system.name for system in installed(["nats"])] == ["logbroker", "nats"]
    assert skipped(["nats"]) == [
        "NATS JetStream, bench: not installed: program nats (`make bench-peers-setup`)"
    ]


def test_every_system_has_a_level_and_some_work_to_do() -> None:
    for name, system in SYSTEMS.items():
        assert system.name == name
        assert system.levels, name
        assert system.abilities, name
        assert system.fastest in system.levels
    assert OURS.levels == frozenset(Level)
    assert OURS.abilities == frozenset(Ability)


def test_streams_of_rabbitmq_are_never_synced_and_its_quorum_queues_always() -> None:
    assert SYSTEMS["rabbitmq-stream"].levels == {Level.WRITTEN}
    assert SYSTEMS["rabbitmq-quorum"].levels == {Level.SYNCED}


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_what_an_answer_means_at_each_level_stands_in_the_readme(system: System) -> None:
    for level, meaning in system.answers.items():
        assert f"| {system.title} | {level} | {meaning} |" in README


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_a_client_has_all_that_is_asked_of_it(system: System) -> None:
    """Read from its text: to import it needs the packages that may be missing."""
    file = ROOT / f"{system.client_module.replace('.', '/')}.py"
    tree = ast.parse(file.read_text())
    tops = {node.name: node for node in tree.body if hasattr(node, "name")}
    assert isinstance(tops["connect"], ast.AsyncFunctionDef)
    assert [one.arg for one in tops["connect"].args.args] == ["address", "level"]
    assert _wanted(Connection) <= _methods(tops["Connection"])
    senders = [node for name, node in tops.items() if name.endswith("Sender")]
    assert senders
    for sender in senders:
        assert _wanted(Sender) <= _methods(sender)


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
def test_a_server_listens_on_the_loopback_alone(system: System, tmp_path: Path) -> None:
    if any("program" in str(one) for one in system.missing()):
        pytest.skip("its program is not here")
    server: Server = system.server(tmp_path / "server", system.fastest)
    assert "127.0.0.1:" in server.address
    for name in _wanted(Server):
        assert callable(getattr(server, name)), name
    for file in (tmp_path / "server").iterdir():
        if file.is_file():
            text = file.read_text()
            assert "0.0.0.0" not in text
            assert "::" not in text


def _methods(tree: ast.AST) -> set[str]:
    assert isinstance(tree, ast.ClassDef)
    return {node.name for node in tree.body if hasattr(node, "name")}


def _wanted(protocol: type) -> set[str]:
    members = inspect.getmembers(protocol, inspect.isfunction)
    return {name for name, _ in members if not name.startswith("_")}
