"""Tests that are coroutines run in an event loop of their own; none fails for being slow.

Nor for being run in the background of a shell, which makes what it starts ignore Ctrl-C.
"""

import asyncio
import inspect
import signal

import pytest
from hypothesis import settings

settings.register_profile("a slow, busy machine", deadline=None)
settings.load_profile("a slow, busy machine")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    named = inspect.signature(pyfuncitem.obj).parameters
    given = {name: pyfuncitem.funcargs[name] for name in named}
    asyncio.run(pyfuncitem.obj(**given))
    return True
