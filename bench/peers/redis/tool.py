"""`redis-benchmark`, which comes with Redis, in C."""

import re
import subprocess

from bench.peers.fetched import program
from bench.peers.system import Server

TIMEOUT_S = 120
PIPELINED = 100
RATE = re.compile(r"([\d.]+) requests per second")


class RedisTool:
    """Starts the tool, and reads what it prints."""

    name = "benchmark"
    reads = False
    synced_part = 0.1

    def publish(self, server: Server, topic: str, size: int, count: int) -> float:
        """Adds records by one connection, 100 on their way at a time."""
        add = ["XADD", f"{topic}:0", "*", "k", "key-000000", "v", "x" * size]
        command = [str(program("redis-benchmark")), "-h", "127.0.0.1"]
        command += ["-p", server.address.rpartition(":")[2]]
        command += ["-n", str(count), "-c", "1", "-P", str(PIPELINED), "-q", *add]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        return rate_of(done.stdout)

    def fill(self, server: Server, topic: str, size: int, count: int) -> None:
        """Adds exactly so many records."""
        assert not count % PIPELINED, "the tool would add the rest of a pipeline"
        self.publish(server, topic, size, count)

    def read(self, server: Server, topic: str, size: int, count: int) -> float:
        """Is not what the tool does: it repeats one command."""
        raise NotImplementedError


def rate_of(output: str) -> float:
    """Returns requests a second in what the tool prints last."""
    return float(RATE.findall(output)[-1])
