"""One flush for all that wait."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from logbroker.errors import UnavailableError
from logbroker.record.batch import Batch
from logbroker.storage.file.flusher import Flusher, Threads

BATCH = Batch.unstamped(b"v", record_count=1)


@asynccontextmanager
async def threads(count=1):
    made = Threads(count)
    yield made
    await made.close()


class Flush:
    """A flush that ends when it is told to."""

    def __init__(self):
        self.count = 0
        self.ends = asyncio.Event()
        self.error = None

    async def __call__(self):
        self.count += 1
        await self.ends.wait()
        if self.error:
            raise self.error


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_appends_during_a_flush_wait_for_the_next_one_and_share_it():
    async def test():
        flush = Flush()
        async with threads() as made:
            flusher = Flusher(made, flush)
            first = [flusher.wait_flushed(BATCH) for _ in range(3)]
            await settle()
            later = [flusher.wait_flushed(BATCH) for _ in range(3)]
            flush.ends.set()
            await asyncio.gather(*first, *later)
            assert flush.count == 2

    asyncio.run(test())


def test_a_failure_answers_those_that_wait_and_those_that_came_meanwhile():
    async def test():
        flush = Flush()
        flush.error = UnavailableError("STORAGE_FAILED", "it failed")
        async with threads() as made:
            flusher = Flusher(made, flush)
            waiting = [flusher.wait_flushed(BATCH)]
            await settle()
            waiting.append(flusher.wait_flushed(BATCH))
            flush.ends.set()
            for appended in waiting:
                with pytest.raises(UnavailableError):
                    await appended
            assert flush.count == 1

    asyncio.run(test())


def test_one_that_gave_up_disturbs_nobody():
    async def test():
        flush = Flush()
        async with threads() as made:
            flusher = Flusher(made, flush)
            gone, waiting = flusher.wait_flushed(BATCH), flusher.wait_flushed(BATCH)
            gone.cancel()
            flush.ends.set()
            assert await waiting is BATCH

    asyncio.run(test())


def test_at_most_so_many_flushes_run_at_once():
    async def test():
        flushes = [Flush() for _ in range(4)]
        async with threads(2) as made:
            waiting = [Flusher(made, flush).wait_flushed(BATCH) for flush in flushes]
            await settle()
            assert [flush.count for flush in flushes] == [1, 1, 0, 0]
            for flush in flushes:
                flush.ends.set()
            await asyncio.gather(*waiting)

    asyncio.run(test())


def test_who_is_cancelled_waits_until_the_thread_has_done_its_work():
    async def test():
        done = []
        async with threads() as made:
            gate = asyncio.Event()
            loop = asyncio.get_running_loop()

            def work():
                loop.call_soon_threadsafe(gate.set)
                done.append(True)

            call = asyncio.create_task(made.run(work))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert done == [True]

    asyncio.run(test())
