"""A WireMember in a process of its own, which a test kills.

    python -m tests.history.member_process ADDRESS GROUP TOPIC NAME SEED CHANCE FILE

It notes in the file, and ends with the broker, or after a line `leave`, or when nobody is
left who could write one. After a line `calm` it acknowledges everything.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from signal import SIGKILL

from .events import Ended, How
from .noting import History, NotesFile, read_notes
from .script import Fate
from .wire_member import WireMember


async def main(
    address: str, group: str, topic: str, name: str, seed: str, chance: str, path: str
) -> None:
    """Is a member until it is told otherwise."""
    fate = Fate(int(seed), group, float(chance))
    member = WireMember(name, group, topic, address, NotesFile(Path(path)), fate)
    hearing = asyncio.create_task(_hear(member, fate))
    await member.wait_over()
    hearing.cancel()


async def _hear(member: WireMember, fate: Fate) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        if line == b"calm\n":
            fate.calm()
        else:
            await member.leave()
    await member.vanish()


class ProcessMember:
    """The test's end of it."""

    def __init__(self, name: str, history: History, path: Path, process: Process) -> None:
        self.name = name
        self._history = history
        self._path = path
        self._process = process
        self._is_read = False

    @classmethod
    async def start(
        cls,
        name: str,
        group: str,
        topic: str,
        address: str,
        history: History,
        fate: Fate,
        directory: Path,
    ) -> "ProcessMember":
        """Starts one, and returns as it is about to join."""
        path = directory / f"{name}.notes"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.history.member_process", address, group, topic, name,
            str(fate.seed), str(fate.chance), str(path),
            stdin=PIPE, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        while not path.exists() and process.returncode is None:  # noqa: ASYNC110  # by a process
            await asyncio.sleep(0.02)
        return cls(name, history, path, process)

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        if self._process.returncode is None:
            return False
        self._read()
        return True

    async def wait_over(self) -> None:
        """Returns once it has ended; raises what it should not have met."""
        await self._process.wait()
        self._read()

    async def wait_received(self, within_s: float) -> bool:
        """Returns whether it has received anything, once it has, or within the time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        while loop.time() < until and self._process.returncode is None:
            if self._path.exists() and self._path.stat().st_size:
                return True
            await asyncio.sleep(0.02)
        return False

    async def vanish(self) -> None:
        """Kills it with SIGKILL."""
        if self._process.returncode is None:
            self._process.kill()
        await self._end(How.VANISHED)

    async def leave(self) -> None:
        """Ends it in order."""
        self._tell("leave")
        await self._end(How.LOST)

    def calm(self) -> None:
        """From now on it acknowledges everything."""
        self._tell("calm")

    def _tell(self, word: str) -> None:
        assert self._process.stdin
        if self._process.returncode is None:
            self._process.stdin.write(f"{word}\n".encode())

    async def _end(self, how: How) -> None:
        await self._process.wait()
        self._history.note(Ended(self.name, how))
        self._read()

    def _read(self) -> None:
        if not self._is_read:
            self._is_read = True
            assert self._process.returncode in (0, -SIGKILL), "a member's process failed"
            self._history.add(read_notes(self._path))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
