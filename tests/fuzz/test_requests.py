"""Whatever bytes arrive at a method, the answer is a documented one, and the broker works on."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_status import rpc_status
from server.calls import serving, until_no_stream
from server.members import member_on, publish

from fuzz.requests import Method, methods, requests
from fuzz.runs import COUNTS, corpus_of, first_seed, keep, seconds
from logbroker.errors import REASONS
from logbroker.v1.topic_service_pb2 import (
    CreateTopicRequest,
    DeleteTopicRequest,
    ListTopicsRequest,
)
from logbroker.wire.status import CODE

SHARE = 0.4
"""Of the time."""
AT_ONCE = 16
WAITS_S = 0.3
"""For what may wait by its nature: a stream, a `Lease`."""
ANSWERS_S = 60
"""For what may not. It is answered in a millisecond, on a machine that does nothing else."""
MAY_WAIT = ("/Lease", "/Fetch", "/Consume", "/Produce")
FAULTS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED}
OUR_END = 'Failed "execute_batch"'
"""gRPC's own client says so, and hides the status, where it was writing as the stream ended."""
ENDED = (grpc.aio.AioRpcError, grpc.aio.InternalError, asyncio.InvalidStateError)
"""What a write raises on a stream that has ended."""
TOPICS = 30
LOOK_EVERY = 20


@pytest.mark.slow
async def test_any_bytes_at_any_method_get_an_answer_that_is_documented():
    until = time.monotonic() + seconds() * SHARE
    async with serving() as calls:
        for seed in itertools.count(first_seed()):
            random = Random(seed)
            chosen = random.choices(methods(), k=AT_ONCE)
            tried = [
                (method, requests(random, method, random.randint(1, 3) if method[3] else 1))
                for method in chosen
            ]
            await asyncio.gather(*(_try(calls, method, sent) for method, sent in tried))
            if seed % LOOK_EVERY == 0:
                await _look(calls)
            if time.monotonic() > until:
                break
        await until_no_stream(calls)
        await _look(calls)
    assert COUNTS["requests"]["given"] >= AT_ONCE


@pytest.mark.slow
async def test_every_method_answers_noise_nothing_and_what_once_failed():
    noise = Random(1).randbytes(200)
    async with serving() as calls:
        for method in methods():
            kept = corpus_of(_name(method))
            for data in (b"", noise, b"\xff" * 9, *kept):
                await _try(calls, method, [data])
        await until_no_stream(calls)
        await _look(calls)


def _name(method: Method) -> str:
    return "requests-" + method.path.rpartition(".")[2].replace("/", "-")


async def _try(calls: object, method: Method, sent: list[bytes]) -> None:
    """Fails, with what was sent in the corpus, unless the answer is one that is documented."""
    counts = COUNTS.setdefault("requests", Counter())
    try:
        code = await _answered(calls.channel, method, sent)  # type: ignore[attr-defined]
    except AssertionError as error:
        paths = [keep(_name(method), data) for data in sent]
        raise AssertionError(f"{method.path} at {paths}: {error}") from error
    counts["given"] += len(sent)
    counts["taken"] += len(sent) * (code is grpc.StatusCode.OK)


async def _answered(channel: grpc.aio.Channel, method: Method, sent: list[bytes]) -> object:
    may_wait = method.path.endswith(MAY_WAIT)
    try:
        async for response in _responses(channel, method, sent, may_wait):
            _check_errors(method.response.FromString(response))
    except grpc.aio.AioRpcError as error:
        _check_refusal(error, may_wait)
        return error.code()
    return grpc.StatusCode.OK


async def _responses(
    channel: grpc.aio.Channel, method: Method, sent: list[bytes], may_wait: bool
) -> AsyncIterator[bytes]:
    timeout = WAITS_S if may_wait else ANSWERS_S
    match method.is_stream_in, method.is_stream_out:
        case True, True:
            call = channel.stream_stream(method.path)(timeout=timeout)
            with suppress(*ENDED):
                for data in sent:
                    await call.write(data)
                await call.done_writing()
        case False, True:
            call = channel.unary_stream(method.path)(sent[0], timeout=timeout)
        case _:
            yield await channel.unary_unary(method.path)(sent[0], timeout=timeout)
            return
    while (response := await call.read()) is not grpc.aio.EOF:
        yield response


def _check_refusal(error: grpc.aio.AioRpcError, may_wait: bool) -> None:
    if OUR_END in (error.debug_error_string() or ""):
        return
    assert error.code() not in FAULTS, error
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        assert may_wait, "no answer"
        return
    status = rpc_status.from_call(error)  # type: ignore[arg-type]
    assert status, f"a status without details: {error}"
    info = ErrorInfo()
    assert status.details[0].Unpack(info), status
    assert info.domain == "logbroker", info
    assert CODE[REASONS[info.reason][0]] is error.code(), info


def _check_errors(message: object) -> None:
    """Fails for a fault among the answers within a response."""
    for field, value in message.ListFields():  # type: ignore[attr-defined]
        if field.name == "error":
            assert value.reason in REASONS, value
            assert value.code == CODE[REASONS[value.reason][0]].value[0], value
            assert value.reason != "BROKER_FAULT", value
        elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for one in value if field.is_repeated else [value]:
                _check_errors(one)


async def _look(calls: object) -> None:
    """Fails unless the broker works: a topic made, records through it, settled."""
    topics, name = calls.topics, "looked-at"  # type: ignore[attr-defined]
    found = (await topics.ListTopics(ListTopicsRequest(page_size=1_000))).topics
    for topic in found if len(found) > TOPICS else ():
        if topic.topic != "a":
            await topics.DeleteTopic(DeleteTopicRequest(topic=topic.topic))
    await topics.CreateTopic(CreateTopicRequest(topic=name, partition_count=1))
    await publish(calls, b"1", b"2", topic=name)
    async with member_on(calls, "looking", topics=(name,)) as member:
        delivered = await member.delivery()
        assert delivered.values == [b"1", b"2"]
        assert not (await member.settle(delivered)).HasField("error")
    await topics.DeleteTopic(DeleteTopicRequest(topic=name))
