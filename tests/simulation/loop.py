"""An event loop without a clock, sockets or threads: time jumps to whatever is next.

    whose turn it is among processes that have something to do, the seed decides
    within a process callbacks run in the order in which they came, as asyncio promises
    a process that is killed runs nothing any more, not even what ends its tasks

A process is not the machine's: it is what was started in one `Process.run`, and all that this
started since, by way of the context that every task and callback has.
"""

import asyncio
import heapq
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")

CALLBACK_S = 1e-6
"""How long a callback takes: so who spins until something has happened lives to see it."""
MOST_CALLBACKS = 8_000_000
MOST_CLOSES = 1_000


class Process:
    """What lives and dies together."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.ready: deque[asyncio.Handle] = deque()
        self.context: Context = copy_context()
        self.context.run(_process.set, self)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts a task in this process."""
        loop = asyncio.get_running_loop()
        return loop.create_task(work, context=self.context.copy())

    def run(self, call: Callable[..., T], *args: Any) -> T:
        """Calls within this process."""
        return self.context.copy().run(call, *args)

    def kill(self) -> None:
        """Ends it where it stands."""
        self.is_alive = False
        self.ready.clear()

    def __repr__(self) -> str:
        return self.name


_process: ContextVar[Process] = ContextVar("process")


def current_process() -> Process:
    """Returns whose code this is."""
    return _process.get()


class SimulatedTask(asyncio.Task):
    """A task with a hash that is the same in every run: sets of tasks have one order."""

    def __init__(self, number: int, *args: Any, **kwargs: Any) -> None:
        self._number = number
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number


class SimulatedFuture(asyncio.Future):
    """A future with a hash that is the same in every run."""

    def __init__(self, number: int, *args: Any, **kwargs: Any) -> None:
        self._number = number
        super().__init__(*args, **kwargs)

    def __hash__(self) -> int:
        return self._number


class Stuck(AssertionError):
    """Nothing will ever happen again, or far too much does."""


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs a simulation; `faults` are errors that nobody caught."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random
        self.callback_count = 0
        self.faults: list[str] = []
        self._now = 0.0
        self._numbers = 0
        self._root = Process("root")
        self._runnable: list[Process] = []
        """Those with something to do, in the order in which they got it."""
        self._tasks: list[SimulatedTask] = []
        """Kept, so that none of a killed process is collected, which would run its end."""
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._note_fault)

    def time(self) -> float:
        """Returns the seconds since the simulation began."""
        return self._now

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what the work does, and clears away all that is left of it."""
        try:
            task = self.create_task(work, context=self._root.context.copy())
            return self.run_until_complete(task)
        finally:
            self._clear()

    def create_future(self) -> asyncio.Future[Any]:
        """As asyncio."""
        self._numbers += 1
        return SimulatedFuture(self._numbers, loop=self)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """Makes the call at some moment soon."""
        future = self.create_future()

        def make() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001  # it is for who waits
                future.set_exception(error)

        self.call_later(self.random.uniform(0, 0.002), make)
        return future

    def call_soon_threadsafe(
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """As `call_soon`: there are no threads."""
        return self.call_soon(callback, *args, context=context)

    # What asyncio asks of a loop

    def _make_task(self, loop: Any, work: Any, context: Context | None = None) -> SimulatedTask:
        self._numbers += 1
        task = SimulatedTask(self._numbers, work, loop=self, context=context)
        self._tasks.append(task)
        if len(self._tasks) > 10_000:
            self._tasks = [task for task in self._tasks if not task.done()]
        return task

    def _call_soon(self, callback: Any, args: Any, context: Context | None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._make_ready(handle)
        return handle

    def _make_ready(self, handle: asyncio.Handle) -> None:
        process = handle._context.get(_process, self._root)
        if process.is_alive:
            if not process.ready:
                self._runnable.append(process)
            process.ready.append(handle)

    def _run_once(self) -> None:
        if not self._runnable:
            self._jump()
        while self._scheduled and self._scheduled[0]._when <= self._now:
            timer = heapq.heappop(self._scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                self._make_ready(timer)
        for _ in range(len(self._runnable)):
            at = self.random.randrange(len(self._runnable)) if len(self._runnable) > 1 else 0
            process = self._runnable.pop(at)
            for _ in range(len(process.ready)):
                if not process.ready:  # it has been killed
                    break
                handle = process.ready.popleft()
                if not handle._cancelled:
                    self._now += CALLBACK_S
                    self.callback_count += 1
                    handle._run()
            if process.ready and process not in self._runnable:
                self._runnable.append(process)
        if self.callback_count > MOST_CALLBACKS:
            raise Stuck(f"{MOST_CALLBACKS} callbacks, and no end")

    def _jump(self) -> None:
        """Moves the time to the next timer."""
        while self._scheduled:
            timer = self._scheduled[0]
            if timer._cancelled or not timer._context.get(_process, self._root).is_alive:
                heapq.heappop(self._scheduled)
                timer._scheduled = False
                continue
            self._now = max(self._now, timer._when)
            return
        if not self._stopping:
            raise Stuck("nothing will ever happen again")

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _note_fault(self, loop: Any, context: dict[str, Any]) -> None:
        if self.is_closed():
            return
        error = context.get("exception")
        self.faults.append(f"{context['message']}: {error!r}")

    def _clear(self) -> None:
        """Ends what is left, of killed processes too; what that does is of no interest."""
        self.close()
        asyncio._set_running_loop(self)  # what they try to start then has nowhere to go
        try:
            with warnings.catch_warnings(action="ignore"):
                for task in self._tasks:
                    task._log_destroy_pending = False
                    if not task.done():
                        _close(task.get_coro())
        finally:
            asyncio._set_running_loop(None)
        self._tasks.clear()
        self._runnable.clear()


def _close(work: Any) -> None:
    """Closes a coroutine, though what ends it may wait for something more, some times."""
    for _ in range(MOST_CLOSES):
        if getattr(work, "cr_frame", None) is None:
            return
        with suppress(BaseException):
            work.close()
