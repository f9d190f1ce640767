"""A TCP proxy before a broker, which loses what goes one way, cuts, or holds.

What is lost is read and thrown away, so that the sender sees a peer that takes its bytes;
the connection is spoilt from then on, as gRPC's frames are, and `cut` ends it.
"""

import asyncio
from enum import Enum, auto
from types import TracebackType
from typing import Self

CHUNK_BYTES = 16 << 10
CLOSE_S = 0.1


class Way(Enum):
    """Which way bytes go."""

    TO_BROKER = auto()
    TO_CLIENT = auto()


class Proxy:
    """Carries connections to `target` (host:port). Use it as a context manager."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.address = ""
        self.connection_count = 0
        self.carried = dict.fromkeys(Way, 0)
        """Bytes, of all connections."""
        self.lost = dict.fromkeys(Way, 0)
        self._cut_after: dict[Way, int] = {}
        self._losing: set[Way] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def lose(self, way: Way) -> None:
        """Throws away what goes this way from now on, until `cut`."""
        self._losing.add(way)

    def cut_after(self, way: Way, size: int) -> None:
        """Cuts once so many more bytes were carried this way: in the midst of a batch, say."""
        self._cut_after[way] = self.carried[way] + size

    def cut(self) -> None:
        """Ends all connections with a reset. New ones are carried whole."""
        self._losing.clear()
        self._cut_after.clear()
        for writer in list(self._writers):
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server
        self._server.close()
        while self._tasks:  # one may have been accepting
            self.cut()
            await asyncio.wait(self._tasks, timeout=CLOSE_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        host, _, port = self.target.rpartition(":")
        try:
            broker_reader, broker_writer = await asyncio.open_connection(host, int(port))
        except OSError:  # the broker is not there: nor are we
            writer.transport.abort()
            return
        self._writers |= {writer, broker_writer}
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._carry(reader, broker_writer, Way.TO_BROKER))
                tasks.create_task(self._carry(broker_reader, writer, Way.TO_CLIENT))
        finally:
            for each in (writer, broker_writer):
                each.transport.abort()
                self._writers.discard(each)

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                if way in self._losing:
                    self.lost[way] += len(data)
                    continue
                if way in self._cut_after:
                    data = data[: self._cut_after[way] - self.carried[way]]
                self.carried[way] += len(data)
                writer.write(data)
                await writer.drain()
                if way in self._cut_after and self.carried[way] >= self._cut_after[way]:
                    self.cut()
        except OSError:
            pass
        finally:
            writer.transport.abort() if way in self._losing else writer.close()
