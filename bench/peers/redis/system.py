"""Redis Streams: one redis-server with an append-only file."""

import subprocess
from pathlib import Path

from bench.peers.fetched import missing_packages, missing_programs, package_versions, program
from bench.peers.redis.tool import RedisTool
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Ability, Level, Missing, System

CONFIG = """\
bind 127.0.0.1
port {port}
dir {data}
appendonly yes
appendfsync {fsync}
save ""
auto-aof-rewrite-percentage 0
"""
APT = "apt install redis-server"
FSYNC = {Level.SYNCED: "always", Level.WRITTEN: "everysec"}


def server(directory: Path, level: Level) -> ServerProcess:
    """Makes a server: when it syncs is its own setting."""
    (port,) = ports_of(directory, "client")
    data, config = directory / "data", directory / "redis.conf"
    data.mkdir(exist_ok=True)
    config.write_text(CONFIG.format(port=port, data=data, fsync=FSYNC[level]))
    command = [str(program("redis-server")), str(config)]
    return ServerProcess(directory, command, address=f"redis://{LOOPBACK}:{port}", ports=[port])


def missing() -> list[Missing]:
    """Returns what is not installed."""
    return [*missing_programs("redis-server", how=APT), *missing_packages("redis", "hiredis")]


def versions() -> dict[str, str]:
    """Returns the versions of the server and the client."""
    said = subprocess.run(
        [str(program("redis-server")), "--version"], capture_output=True, text=True, check=True
    )
    found = said.stdout.partition("v=")[2].split()[0]
    return {"redis-server": found, **package_versions("redis", "hiredis")}


SYSTEM = System(
    name="redis",
    title="Redis Streams",
    client_module="bench.peers.redis.client",
    answers={
        Level.SYNCED: "appendfsync always: one fsync for what came together, before its answers",
        Level.WRITTEN: "appendfsync everysec: in the page cache, fsync each second",
    },
    abilities=frozenset(Ability),
    is_level_of_topic=False,
    has_owners=False,
    is_blind_faster=False,
    join_s=0.5,
    server=server,
    missing=missing,
    versions=versions,
    tool=RedisTool(),
    tool_missing=lambda: missing_programs("redis-benchmark", how="apt install redis-tools"),
)
