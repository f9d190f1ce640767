"""Kafka's own load tools: ProducerPerformance and ConsumerPerformance, in Java."""

import re
import subprocess
from collections.abc import Callable, Sequence

from bench.peers.system import Server

TIMEOUT_S = 120
RATE = re.compile(r"([\d.]+) records/sec")


class KafkaTool:
    """Starts the tools, and reads what they print."""

    name = "Java load tool"
    reads = True
    synced_part = 1.0

    def __init__(self, java: Callable[..., list[str]]) -> None:
        self._java = java

    def publish(self, server: Server, topic: str, size: int, count: int) -> float:
        """Publishes as many to warm up, then those that count."""
        command = self._publishing(server, topic, size, 2 * count)
        return rate_of_producer(_output([*command, "--warmup-records", str(count)]))

    def fill(self, server: Server, topic: str, size: int, count: int) -> None:
        """Publishes exactly so many records."""
        _output(self._publishing(server, topic, size, count))

    def _publishing(self, server: Server, topic: str, size: int, count: int) -> list[str]:
        command = self._java("org.apache.kafka.tools.ProducerPerformance")
        command += ["--topic", topic, "--num-records", str(count), "--record-size", str(size)]
        command += ["--throughput", "-1", "--command-property"]
        command += [f"bootstrap.servers={server.address}", "acks=all"]
        command += ["linger.ms=5", "batch.size=1000000", "buffer.memory=268435456"]
        return command

    def read(self, server: Server, topic: str, _: int, count: int) -> float:
        """Reads; returns what the tool says of the time after it had joined its group."""
        command = self._java("org.apache.kafka.tools.ConsumerPerformance")
        command += ["--bootstrap-server", server.address, "--topic", topic]
        command += ["--num-records", str(count), "--timeout", "60000"]
        return rate_of_consumer(_output(command))


def rate_of_producer(output: str) -> float:
    """Returns the rate in the last line of ProducerPerformance."""
    return float(RATE.findall(output)[-1])


def rate_of_consumer(output: str) -> float:
    """Returns `fetch.nMsg.sec` of ConsumerPerformance: without the time it took to join."""
    lines = [line.split(", ") for line in output.splitlines() if ", " in line]
    head, *values = lines[-2:]
    return float(values[-1][head.index("fetch.nMsg.sec")])


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[-1]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
