"""Redis Streams through redis-py, with hiredis.

Its calls block, and this process has nothing else to do meanwhile. Consumers run in threads
of their own. A topic is a stream for each partition, `<topic>:<partition>`.
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from zlib import crc32

from redis import Redis
from redis.exceptions import ResponseError

from bench.peers.system import Level, Sending, Take
from bench.peers.threads import polled
from bench.records import Records

READ = 1_000
"""Entries for one call."""
BLOCK_MS = 100
COUNTS = "bench:partitions"
"""How many partitions the topics have."""


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    return Connection(address)


class Connection:
    """A client, connected."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._redis = Redis.from_url(address)
        self._redis.ping()

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Notes a topic: streams come into being with their first entry."""
        self._redis.hset(COUNTS, topic, partition_count)

    async def delete_topic(self, topic: str) -> None:
        """Removes the streams of a topic."""
        self._redis.unlink(*self._streams(topic))
        self._redis.hdel(COUNTS, topic)

    @asynccontextmanager
    async def sender(self, topic: str, _: Sending) -> "AsyncIterator[Sender]":
        """Returns a publisher."""
        yield Sender(self._redis, self._streams(topic))

    async def replay(self, topic: str, count: int, _: str) -> int:
        """Reads so many records, stream by stream."""
        size = found = 0
        for stream in self._streams(topic):
            last = b"0"
            while entries := self._redis.execute_command(
                "XREAD", "COUNT", READ, "STREAMS", stream, last
            ):
                ((_, records),) = _pairs(entries)
                size += sum([len(fields[b"v"]) for _, fields in records])
                found += len(records)
                last = records[-1][0]
        assert found >= count, f"{found} of {count} records"
        return size

    @asynccontextmanager
    async def consume(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as a member of a group: all of a call are settled by one command."""

        def settle(pipeline: Any, stream: bytes, ids: list[bytes]) -> None:
            pipeline.execute_command("XACK", stream, group, *ids)

        async with self._reading(topic, group, take, settle):
            yield

    @asynccontextmanager
    async def work(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as a member of a group: each record is settled by a command of its own."""

        def settle(pipeline: Any, stream: bytes, ids: list[bytes]) -> None:
            for one in ids:
                pipeline.execute_command("XACK", stream, group, one)

        async with self._reading(topic, group, take, settle):
            yield

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Returns what the group has not read, or not acknowledged."""
        found = 0
        for stream in self._streams(topic):
            (info,) = [
                one for one in self._redis.xinfo_groups(stream) if one["name"] == group.encode()
            ]
            found += info["pending"] + info["lag"]
        return found

    async def close(self) -> None:
        """Disconnects."""
        self._redis.close()

    def _streams(self, topic: str) -> list[str]:
        count = int(self._redis.hget(COUNTS, topic))
        return [f"{topic}:{number}" for number in range(count)]

    @asynccontextmanager
    async def _reading(
        self, topic: str, group: str, take: Take, settle: Callable[[Any, bytes, list[bytes]], None]
    ) -> AsyncIterator[None]:
        """Reads in a thread; what was taken is settled on the way to the next records."""
        streams = self._streams(topic)
        for stream in streams:
            try:
                self._redis.xgroup_create(stream, group, id="0", mkstream=True)
            except ResponseError as error:
                if "BUSYGROUP" not in str(error):
                    raise
        name = f"{threading.get_ident()}-{id(take)}"
        wanted = [*streams, *(">" for _ in streams)]
        connection = Redis.from_url(self._address)
        pipeline = connection.pipeline(transaction=False)

        def poll() -> None:
            pipeline.execute_command(
                "XREADGROUP", "GROUP", group, name, "COUNT", READ, "BLOCK", BLOCK_MS,
                "STREAMS", *wanted,
            )  # fmt: skip
            *_, entries = pipeline.execute()
            for stream, records in _pairs(entries or []):
                for _, fields in records:
                    take(fields[b"v"])
                settle(pipeline, stream, [number for number, _ in records])

        async with polled(poll):
            yield
        pipeline.execute()
        connection.close()


class Sender:
    """Adds records to the streams of a topic."""

    def __init__(self, redis: Any, streams: list[str]) -> None:
        self._redis = redis
        self._streams = streams

    async def send(self, records: Records) -> None:
        """Adds them by one pipeline, and looks at every answer."""
        pipeline = self._redis.pipeline(transaction=False)
        for value, key in zip(records.values, records.keys, strict=True):
            pipeline.execute_command("XADD", self._stream(key), "*", "k", key, "v", value)
        pipeline.execute()

    async def flush(self) -> None:
        """Has nothing to wait for."""

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Adds one."""
        self._redis.execute_command("XADD", self._stream(key), "*", "k", key, "v", value)

    def _stream(self, key: bytes) -> str:
        count = len(self._streams)
        return self._streams[crc32(key) % count if count > 1 else 0]


def _pairs(entries: Any) -> Any:
    """Returns streams and their entries, whichever protocol the client speaks."""
    return entries.items() if isinstance(entries, dict) else entries
