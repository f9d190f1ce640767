"""A consumer in a process of its own, which says when each record came.

    python -m cases.timed_consumer ADDRESS GROUP TOPIC

A line `joined`, then for each record `PARTITION VALUE MS`, the monotonic time of the machine.
"""

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from logbroker.client import Client

TESTS = Path(__file__).parents[1]


class Came(NamedTuple):
    """A record that came to a consumer."""

    partition: int
    value: str
    at_ms: float


class TimedConsumer:
    """The test's end of it."""

    def __init__(self, address: str, group: str, topic: str) -> None:
        """Starts it and waits until it is a member."""
        self.came: list[Came] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cases.timed_consumer", address, group, topic],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])},
        )
        assert self.process.stdout
        assert self.process.stdout.readline() == "joined\n"
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def kill(self) -> None:
        """Kills it, and returns once all it has said is heard."""
        self.process.kill()
        self.process.wait()
        self._thread.join()
        assert self.process.stdout
        self.process.stdout.close()

    def _listen(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 3 and line.endswith("\n"):
                self.came.append(Came(int(words[0]), words[1], float(words[2])))


async def _main(address: str, group: str, topic: str) -> None:
    async with Client(address) as client, client.consumer(group, topic) as consumer:
        print("joined", flush=True)
        async for record in consumer:
            value = (record.value or b"").decode()
            print(record.partition, value, time.monotonic() * 1_000, flush=True)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
