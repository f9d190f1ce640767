"""`nats bench`, the load tool of the NATS command line, in Go."""

import re
import subprocess

from bench.peers.fetched import program
from bench.peers.system import Server

TIMEOUT_S = 120
BATCH = 1_000
RATE = re.compile(r"stats: ([\d,]+) msgs/sec")


class NatsTool:
    """Starts the tool, and reads what it prints."""

    name = "bench"
    reads = True
    synced_part = 0.01

    def publish(self, server: Server, topic: str, size: int, count: int) -> float:
        """Publishes asynchronously, 1,000 unanswered at most."""
        pub = ["pub", "async", f"{topic}.0.bench", "--batch", str(BATCH)]
        return self._run(server, topic, size, count, pub)

    def fill(self, server: Server, topic: str, size: int, count: int) -> None:
        """Publishes exactly so many records."""
        self.publish(server, topic, size, count)

    def read(self, server: Server, topic: str, size: int, count: int) -> float:
        """Reads by an ordered consumer."""
        return self._run(server, topic, size, count, ["ordered"])

    def _run(self, server: Server, topic: str, size: int, count: int, verb: list[str]) -> float:
        command = [str(program("nats")), "--server", server.address, "--no-context"]
        command += ["bench", "js", *verb, "--stream", topic, "--no-progress"]
        command += ["--size", str(size), "--msgs", str(count)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(verb)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return rate_of(done.stdout + done.stderr)


def rate_of(output: str) -> float:
    """Returns messages a second in what the tool prints last."""
    return float(RATE.findall(output)[-1].replace(",", ""))
