"""logbroker: the broker of this repository, with its defaults."""

import sys
from importlib.metadata import version
from pathlib import Path

from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Ability, Level, System


def server(directory: Path, _: Level) -> ServerProcess:
    """Makes a server."""
    (port,) = ports_of(directory, "grpc")
    address = f"{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "logbroker", "serve"]
    command += ["--data-dir", str(directory / "data"), "--grpc", address]
    # As pip installs it, with bytecode: whatever the run's own environment says of that.
    environ = {"PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": ""}
    return ServerProcess(directory, command, address=address, ports=[port], environ=environ)


SYSTEM = System(
    name="logbroker",
    title="logbroker",
    client_module="bench.peers.logbroker.client",
    answers={
        Level.SYNCED: "durability=synced: fdatasync before the answer, one for all that wait",
        Level.WRITTEN: "durability=written: in the page cache, flushed each second",
    },
    abilities=frozenset(Ability),
    is_level_of_topic=True,
    has_owners=True,
    is_blind_faster=True,
    join_s=0.5,
    server=server,
    missing=list,
    versions=lambda: {"logbroker": version("logbroker"), "grpcio": version("grpcio")},
    replays=("records", "by batch", "raw"),
)
