"""NATS JetStream: one nats-server, streams in files."""

import subprocess
from pathlib import Path

from bench.peers.fetched import (
    missing_packages,
    missing_programs,
    package_versions,
    program,
)
from bench.peers.nats.tool import NatsTool
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Ability, Level, Missing, System

CONFIG = """\
listen: "127.0.0.1:{port}"
max_payload: 8MB
jetstream {{
  store_dir: "{store}"
  max_memory_store: 1GB
  max_file_store: 64GB
  {sync}
}}
"""
SYNC = {Level.SYNCED: "sync_interval: always", Level.WRITTEN: ""}


def server(directory: Path, level: Level) -> ServerProcess:
    """Makes a server: how it syncs is its own setting, and no stream's."""
    (port,) = ports_of(directory, "client")
    config = directory / "nats.conf"
    config.write_text(CONFIG.format(port=port, store=directory / "data", sync=SYNC[level]))
    command = [str(program("nats-server")), "-c", str(config)]
    return ServerProcess(directory, command, address=f"nats://{LOOPBACK}:{port}", ports=[port])


def missing() -> list[Missing]:
    """Returns what is not installed."""
    return [*missing_programs("nats-server"), *missing_packages("nats-py")]


def versions() -> dict[str, str]:
    """Returns the versions of the server and the client."""
    said = subprocess.run(
        [str(program("nats-server")), "--version"], capture_output=True, text=True, check=True
    )
    return {"nats-server": said.stdout.split()[-1].lstrip("v"), **package_versions("nats-py")}


SYSTEM = System(
    name="nats",
    title="NATS JetStream",
    client_module="bench.peers.nats.client",
    answers={
        Level.SYNCED: "sync_interval: always: fsync for each record before its answer",
        Level.WRITTEN: "persist_mode=async: in the memory of the server, written soon after",
    },
    abilities=frozenset(Ability),
    is_level_of_topic=False,
    has_owners=False,
    is_blind_faster=False,
    join_s=0.5,
    server=server,
    missing=missing,
    versions=versions,
    tool=NatsTool(),
    tool_missing=lambda: missing_programs("nats"),
)
