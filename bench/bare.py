"""The bare limit: grpc.aio streams of messages of one size, with no disk and no parsing.

What any broker behind grpc.aio can reach at most. Server and client are two processes on
uvloop, as a broker and its client are. `push` is what a producer does: messages one way,
small answers the other way, as many under way as the producer has. `pull` is what a reader
does. `ping` is one message and its answer, with nothing else under way.

Run by itself it is the server, or a client that takes its orders from stdin: for streams
between processes that left the allocator as it comes.
"""

import argparse
import asyncio
import gc
import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import grpc
import uvloop

from bench.child import Child
from logbroker.app import GC_THRESHOLD
from logbroker.malloc import keep_freed_memory

IN_FLIGHT = 5
"""Messages under way. More make it no faster."""
LEAST = 2
"""Messages pulled however short the time is: the first one only starts the clock."""
ANSWER = b"a" * 80
"""As large as the answer to a produce."""
MESSAGES = 8
"""Different messages of one size that take turns: nobody's data is always in the cache."""
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.so_reuseport", 0),
]
SERVICE = "bench.Bare"


@cache
def messages_of(size: int) -> list[bytes]:
    """Returns messages of this size."""
    return [os.urandom(size) for _ in range(MESSAGES)]


async def push(call: Any, messages: list[bytes], seconds: float) -> float:
    """Sends for so long, and returns messages answered per second."""
    sent = answered = 0
    has_room = asyncio.Event()

    async def read() -> None:
        nonlocal answered
        while await call.read() is not grpc.aio.EOF:
            answered += 1
            has_room.set()

    begun = perf_counter()
    reader = asyncio.create_task(read())
    while not sent or perf_counter() - begun < seconds:
        while sent - answered >= IN_FLIGHT:
            has_room.clear()
            await has_room.wait()
        await call.write(messages[sent % MESSAGES])
        sent += 1
    await call.done_writing()
    await reader
    assert answered == sent
    return sent / (perf_counter() - begun)


async def pull(channel: grpc.aio.Channel, size: int, seconds: float) -> float:
    """Receives for so long, and returns messages per second."""
    order = json.dumps({"size": size, "seconds": seconds}).encode()
    call: Any = channel.unary_stream(f"/{SERVICE}/Pull")(order)  # type: ignore[arg-type]  # bytes
    await call.read()
    begun, received = perf_counter(), 0
    while (message := await call.read()) is not grpc.aio.EOF:
        received += 1
        assert len(message) == size
    return received / (perf_counter() - begun)


class BareStreams:
    """A server in a process of its own, and this process as its client."""

    def __init__(self) -> None:
        self._server = Child("bench.bare", "server", "--keep")
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        """Returns once the server listens."""
        address = await asyncio.to_thread(self._server.read)
        self._channel = grpc.aio.insecure_channel(address, options=OPTIONS)

    async def push(self, size: int, seconds: float) -> float:
        """Returns messages answered per second."""
        return await push(self._open(), messages_of(size), seconds)

    async def pull(self, size: int, seconds: float) -> float:
        """Returns messages received per second."""
        assert self._channel
        return await pull(self._channel, size, seconds)

    async def open_ping(self, size: int) -> "Ping":
        """Returns a stream for messages that go alone."""
        ping = Ping(self._open(), os.urandom(size))
        await ping()
        return ping

    async def close(self) -> None:
        """Ends the server."""
        if self._channel:
            await self._channel.close()
        self._server.end()

    def _open(self) -> Any:
        assert self._channel
        return _open(self._channel)


@dataclass
class Ping:
    """One open stream."""

    call: Any
    message: bytes

    async def __call__(self) -> None:
        """Sends a message and returns with its answer."""
        await self.call.write(self.message)
        assert await self.call.read() == ANSWER

    async def close(self) -> None:
        """Ends the stream."""
        await self.call.done_writing()
        assert await self.call.read() is grpc.aio.EOF


class BareProcesses:
    """Server and client both in processes of their own, which leave the allocator as it comes."""

    def __init__(self) -> None:
        self._server = Child("bench.bare", "server")
        self._client = Child("bench.bare", "client")

    async def open(self) -> None:
        """Returns once the two are connected."""
        address = await asyncio.to_thread(self._server.read)
        await asyncio.to_thread(self._client.ask, address)

    async def push(self, size: int, seconds: float) -> float:
        """Returns messages answered per second."""
        return await self._order("push", size, seconds)

    async def pull(self, size: int, seconds: float) -> float:
        """Returns messages received per second."""
        return await self._order("pull", size, seconds)

    async def close(self) -> None:
        """Ends both."""
        self._client.end()
        self._server.end()

    async def _order(self, verb: str, size: int, seconds: float) -> float:
        order = json.dumps({"verb": verb, "size": size, "seconds": seconds})
        return float(await asyncio.to_thread(self._client.ask, order))


def _open(channel: grpc.aio.Channel) -> Any:
    return channel.stream_stream(f"/{SERVICE}/Push")()


class _Service:
    """The other end."""

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the methods: bytes in, bytes out."""
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Push": grpc.stream_stream_rpc_method_handler(self._push),
            "Pull": grpc.unary_stream_rpc_method_handler(self._pull),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    async def _push(self, _: Any, context: Any) -> None:
        while await context.read() is not grpc.aio.EOF:
            await context.write(ANSWER)

    async def _pull(self, order: bytes, context: Any) -> None:
        asked = json.loads(order)
        messages, sent, begun = messages_of(asked["size"]), 0, perf_counter()
        while sent < LEAST or perf_counter() - begun < asked["seconds"]:
            await context.write(messages[sent % MESSAGES])
            sent += 1


async def _serve() -> None:
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((_Service().handler(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD)
    print(f"127.0.0.1:{port}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop(1)


async def _obey() -> None:
    address = (await asyncio.to_thread(sys.stdin.readline)).strip()
    async with grpc.aio.insecure_channel(address, options=OPTIONS) as channel:
        print("ready", flush=True)
        while order := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(order)
            if asked["verb"] == "push":
                rate = await push(_open(channel), messages_of(asked["size"]), asked["seconds"])
            else:
                rate = await pull(channel, asked["size"], asked["seconds"])
            print(rate, flush=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("role", choices=["server", "client"])
    arguments.add_argument("--keep", action="store_true")
    args = arguments.parse_args()
    if args.keep:
        keep_freed_memory()
    uvloop.run(_serve() if args.role == "server" else _obey())
