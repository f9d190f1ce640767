"""A consumer in a process of its own, which says what it does; a test stops and kills it.

    python -m tests.cases.zombie ADDRESS GROUP TOPIC [auto]

A line `joined`, then for each record `begun OFFSET NUMBER`; it goes on when it reads a line:
`ack`, `hold` (nothing is settled; with `auto`: it counts as done) or `close`. What became of
an acknowledgement is said as `settled OFFSET` or `lost OFFSET REASON`; at the end `closed`.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from logbroker.client import Client
from logbroker.errors import LogbrokerError


async def read_line() -> str:
    """Returns what the test says next."""
    return (await asyncio.to_thread(sys.stdin.readline)).strip()


def say(*words: object) -> None:
    """Tells the test."""
    print(*words, flush=True)


async def main(address: str, group: str, topic: str, *options: str) -> None:
    """Consumes as it is told."""
    async with Client(address) as client:
        consumer = client.consumer(group, topic, auto_settle="auto" in options)
        async with consumer:
            say("joined")
            async for record in consumer:
                say("begun", record.offset, record.delivery_number)
                word = await read_line()
                if word == "close" or not word:
                    break
                if word == "ack":
                    try:
                        await consumer.acknowledge(record)
                        say("settled", record.offset)
                    except LogbrokerError as error:
                        say("lost", record.offset, error.reason)
        say("closed")


class Zombie:
    """The test's end of it."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @classmethod
    async def start(
        cls, address: str, *options: str, group: str = "g", topic: str = "a"
    ) -> "Zombie":
        """Starts one, and waits until it is a member."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.cases.zombie", address, group, topic, *options,
            stdin=PIPE, stdout=PIPE, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        zombie = cls(process)
        assert await zombie.hear() == ["joined"]
        return zombie

    async def hear(self, within_s: float = 20) -> list[str]:
        """Returns its next line, in words."""
        assert self.process.stdout
        async with asyncio.timeout(within_s):
            return (await self.process.stdout.readline()).decode().split()

    def tell(self, word: str) -> None:
        """Says what it shall do."""
        assert self.process.stdin
        self.process.stdin.write(f"{word}\n".encode())

    async def end(self) -> None:
        """Kills it, if it is there."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
