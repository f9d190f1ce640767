"""A loop on a thread of its own: whoever uses it where it does not run is told so at once."""

import asyncio

import pytest

from logbroker.client.loop_thread import LoopThread
from logbroker.errors import PreconditionError


async def nothing() -> None:
    pass


async def for_ever() -> None:
    await asyncio.Event().wait()


def refuse_all(thread: LoopThread) -> None:
    for use in (
        lambda: thread.wait(nothing()),  # closed, or Python would warn, which is an error here
        lambda: thread.start(nothing()),
        lambda: thread.call_soon(print),
        thread.check,
        thread.stop,
    ):
        with pytest.raises(PreconditionError) as caught:
            use()
        assert caught.value.reason == "CLIENT_CLOSED"


def test_it_runs_work_until_it_is_stopped_and_refuses_it_then():
    thread = LoopThread()
    assert thread.wait(asyncio.sleep(0, "done")) == "done"
    with pytest.raises(TimeoutError):
        thread.wait(for_ever(), timeout_ms=1)
    thread.stop()
    refuse_all(thread)


def test_in_a_child_process_it_refuses_all():
    thread = LoopThread()
    thread.forked()
    refuse_all(thread)
    thread.loop.call_soon_threadsafe(thread.loop.stop)  # it was none, after all
    thread._thread.join()
