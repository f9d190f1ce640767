"""What a client's process does with an order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bench.peers.client_process import ClientProcess, Taken

ORDER = {"topic": "first", "size": 100, "is_new": True}


class SlowConnection:
    """A server that makes a topic and is too slow to say so."""

    def __init__(self) -> None:
        self._topics: set[str] = set()

    async def create_topic(self, topic: str, _: int) -> None:
        if topic in self._topics:
            raise RuntimeError("it exists")
        self._topics.add(topic)
        await asyncio.Event().wait()

    @asynccontextmanager
    async def sender(self, topic: str, _: Any) -> AsyncIterator["SlowConnection"]:
        assert topic in self._topics
        yield self

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Is at once."""


async def test_a_topic_that_was_made_without_an_answer_is_waited_for_and_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = SlowConnection()

    @asynccontextmanager
    async def connected(_: Any) -> AsyncIterator[SlowConnection]:
        yield connection

    monkeypatch.setattr("bench.peers.client_process.connected", connected)
    monkeypatch.setattr("bench.peers.client_process.ATTEMPT_S", 0.05)
    async with asyncio.timeout(60):
        assert await ClientProcess().answer(dict(ORDER)) > 0


def test_numbers_that_were_taken_are_told_as_ranges() -> None:
    taken = Taken(begin_at=0)
    for number in (3, 1, 2, 7, 2):
        taken.note_number(number.to_bytes(8, "big") + b"rest")
    assert taken.ranges() == [(1, 4), (7, 8)]
    assert taken.told()["count"] == 5


def test_a_record_that_says_no_time_has_no_latency() -> None:
    taken = Taken(begin_at=0)
    taken.note_latency(bytes(100))
    taken.note_latency((1).to_bytes(8, "big"))
    assert len(taken.latencies) == 1
