"""Tests that are coroutines run in an event loop of their own; none fails for being slow.

Nor for being run in the background of a shell, which makes what it starts ignore Ctrl-C.
"""

import asyncio
import inspect
import logging
import signal
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

settings.register_profile("a slow, busy machine", deadline=None)
settings.load_profile("a slow, busy machine")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _logs_afterwards_as_before() -> Iterator[None]:
    """A command that runs in this process sets up logging; no later test may hear less for it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    named = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in named}
    asyncio.run(pyfuncitem.obj(**given))
    return True
