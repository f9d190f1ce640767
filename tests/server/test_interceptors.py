"""What becomes of an error that leaves a handler."""

import asyncio
from collections import Counter

import grpc
import pytest
from structlog.testing import capture_logs

from logbroker.server.interceptors import StatusInterceptor
from logbroker.server.open_streams import OpenStreams


@pytest.mark.parametrize("is_in_a_task", [False, True])
async def test_a_caller_who_has_gone_is_no_fault_of_the_broker(is_in_a_task):
    async def write():
        raise grpc.aio.InternalError

    async def handler(_request, _context):
        if not is_in_a_task:
            await write()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(write())

    counts = Counter()
    wrapped = StatusInterceptor(counts, OpenStreams())._of_call(handler, "/logbroker.x", bytes)
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await wrapped(b"", None)
    assert (counts, logs) == ({}, [])
