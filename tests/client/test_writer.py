"""A writer, over a call that does what the test says."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from logbroker.client.writer import Writer


class Call:
    """Takes messages; a write ends when the test lets it."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.ends: list[asyncio.Future[None]] = []

    async def write(self, message: bytes) -> None:
        self.messages.append(message)
        self.ends.append(asyncio.get_running_loop().create_future())
        await asyncio.sleep(0)
        await self.ends[-1]


async def turns_until(condition: Callable[[], bool]) -> None:
    for _ in range(10):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came")


def writer_of(call: Any) -> tuple[Writer, list[None]]:
    written: list[None] = []
    return Writer(call, lambda: written.append(None)), written


async def test_a_write_is_begun_before_anything_else_runs():
    call = Call()
    writer, written = writer_of(call)
    writer.begin(b"a")
    assert call.messages == [b"a"]
    assert not writer.is_free
    assert not written


async def test_the_next_write_may_begin_when_one_ends():
    call = Call()
    writer, written = writer_of(call)
    writer.begin(b"a")
    await turns_until(lambda: call.messages == [b"a"])
    assert not writer.is_free
    call.ends[0].set_result(None)
    await turns_until(lambda: writer.is_free)
    assert len(written) == 1
    writer.begin(b"b")
    await turns_until(lambda: call.messages == [b"a", b"b"])


async def test_cancelling_who_began_a_write_does_not_cancel_it():
    call = Call()
    writer, _ = writer_of(call)

    async def begin_and_wait() -> None:
        writer.begin(b"a")
        await asyncio.Event().wait()

    task = asyncio.create_task(begin_and_wait())
    await turns_until(lambda: bool(call.messages))
    task.cancel()
    await asyncio.wait({task})
    assert not call.ends[0].cancelled()
    call.ends[0].set_result(None)
    await turns_until(lambda: writer.is_free)


@pytest.mark.parametrize("lost", [asyncio.InvalidStateError(), asyncio.CancelledError()])
async def test_a_writer_of_a_lost_stream_is_never_free_again(lost):
    call = Call()
    writer, written = writer_of(call)
    writer.begin(b"a")
    await asyncio.sleep(0)
    call.ends[0].set_exception(lost)
    for _ in range(5):
        await asyncio.sleep(0)
    assert (writer.is_free, writer.fault, written) == (False, None, [])


async def test_what_else_a_write_raises_is_its_fault():
    call = Call()
    writer, written = writer_of(call)
    writer.begin(b"a")
    await asyncio.sleep(0)
    call.ends[0].set_exception(ZeroDivisionError())
    await turns_until(lambda: writer.fault is not None)
    assert isinstance(writer.fault, ZeroDivisionError)
    assert len(written) == 1
