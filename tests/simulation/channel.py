"""What stands in for `grpc.aio.insecure_channel`: the client's side of calls."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
from grpc.aio import EOF, AioRpcError

from .loop import current_process
from .network import Link, Network
from .stream import Half, Status

State = grpc.ChannelConnectivity
RECONNECT_S = 0.1, 1.0


class SimulatedCall(Half):
    """A call as its caller has it: what `grpc.aio` calls offer of what we use."""

    def __init__(self, channel: "SimulatedChannel", method: str, decode: Any) -> None:
        super().__init__()
        self.method = method
        self._channel = channel
        self._decode = decode or bytes
        self._has_written_all = False
        self._timer: asyncio.TimerHandle | None = None
        self._first: list[bytes | None] = []
        """What was sent before the call could begin; None: that this was all."""

    def begin(self, request: bytes | None, timeout_s: float | None) -> None:
        """Sends it off, as soon as the channel can."""
        if timeout_s is not None:
            loop = asyncio.get_running_loop()
            late = Status(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
            self._timer = loop.call_later(timeout_s, self._give_up, late)
        if request is not None:
            self._first = [request, None]
            self._has_written_all = True
        self._channel.begin(self)

    def connected(self, link: Link) -> None:
        """The channel has a link."""
        server = link.ends[1]
        self.link, self.far = link, server
        first, self._first = self._first, []
        self.send(server.open_call, link, self, self.method)  # type: ignore[attr-defined]
        for message in first:
            if message is None:
                self.send(self._end_of_messages)
            else:
                self._unread_bytes += len(message)
                self.send(self._message_over, message)

    def _message_over(self, message: bytes) -> None:
        """Runs at the server: its half exists by then, unless the call was refused."""
        if self.other:
            self.other.take_message(message)

    def _end_of_messages(self) -> None:
        if self.other:
            self.other.take_read_out()

    def _cancel_over(self) -> None:
        if self.other:
            self.other.take_end(Status(grpc.StatusCode.CANCELLED))

    def _give_up(self, status: Status) -> None:
        if self.end is None:
            self.send(self._cancel_over)
            self.take_end(status)

    def take_end(self, status: Status) -> None:
        """The call is over."""
        super().take_end(status)
        if self._timer:
            self._timer.cancel()
        self._channel.forget(self)

    # As grpc.aio has it

    def cancel(self) -> bool:
        """Ends the call at once."""
        if self.end:
            return False
        self._give_up(Status(grpc.StatusCode.CANCELLED, "Locally cancelled by application!"))
        return True

    def done(self) -> bool:
        """Returns whether it is over."""
        return self.end is not None

    def cancelled(self) -> bool:
        """Returns whether it was cancelled here."""
        return self.end is not None and self.end.code is grpc.StatusCode.CANCELLED

    async def code(self) -> grpc.StatusCode:
        """Returns how it has ended, once it has."""
        while not self.end:
            await self.wait_news()
        return self.end.code

    async def read(self) -> Any:
        """Returns the next message, or EOF; raises how the call has failed."""
        try:
            message = await self._next()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if message is not None:
            return self._decode(message)
        assert self.end
        if self.end.code is grpc.StatusCode.OK:
            return EOF
        raise self._failure()

    async def _next(self) -> bytes | None:
        while not self._messages and not self.end:
            await self.wait_news()
        return await self.read_bytes()

    async def write(self, message: Any) -> None:
        """Sends a message."""
        data = message if isinstance(message, bytes) else message.SerializeToString()
        if self.end and self.end.code is not grpc.StatusCode.OK:
            raise self._failure()
        if self.end or self._has_written_all:
            raise asyncio.InvalidStateError("RPC already finished.")
        if self.link is None:
            self._first.append(data)
            return
        try:
            self._unread_bytes += len(data)
            self.send(self._message_over, data)
            while self._unread_bytes > 64 << 10 and not self.end:
                await self.wait_news()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self.end and self.end.code is not grpc.StatusCode.OK:
            raise self._failure()

    async def done_writing(self) -> None:
        """Tells the server that this was all."""
        self._has_written_all = True
        if self.link is None:
            self._first.append(None)
        else:
            self.send(self._end_of_messages)

    def __await__(self) -> Any:
        return self._answer().__await__()

    async def _answer(self) -> Any:
        try:
            message = await self._next()
            while not self.end:
                await self.wait_news()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self.end.code is not grpc.StatusCode.OK or message is None:
            raise self._failure()
        return self._decode(message)

    def _failure(self) -> BaseException:
        assert self.end
        code, details, trailing = self.end
        if code is grpc.StatusCode.CANCELLED and details.startswith("Locally"):
            return asyncio.CancelledError()
        return AioRpcError(code, (), trailing, details, "simulated")  # type: ignore[arg-type]


class SimulatedChannel:
    """Connects when first used, and again."""

    def __init__(self, network: Network, target: str) -> None:
        self.process = current_process()
        self._network = network
        self._target = target
        self._state = State.IDLE
        self._link: Link | None = None
        self._calls: dict[SimulatedCall, None] = {}
        self._queued: list[SimulatedCall] = []
        self._waiters: list[asyncio.Future[None]] = []

    def get_state(self, try_to_connect: bool = False) -> State:
        """As grpc.aio."""
        if try_to_connect and self._state is State.IDLE:
            self._connect()
        return self._state

    async def wait_for_state_change(self, last: State) -> None:
        """As grpc.aio."""
        while self._state is last:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def unary_unary(self, path: str, *coding: Any, **options: Any) -> Callable[..., Any]:
        """As grpc.aio."""
        return self._method(path, coding, options, has_request=True)

    def unary_stream(self, path: str, *coding: Any, **options: Any) -> Callable[..., Any]:
        """As grpc.aio."""
        return self._method(path, coding, options, has_request=True)

    def stream_stream(self, path: str, *coding: Any, **options: Any) -> Callable[..., Any]:
        """As grpc.aio."""
        return self._method(path, coding, options, has_request=False)

    def _method(
        self, path: str, coding: Any, options: Any, *, has_request: bool
    ) -> Callable[..., Any]:
        encode, decode = coding or (
            options.get("request_serializer"),
            options.get("response_deserializer"),
        )

        def call(request: Any = None, timeout: float | None = None) -> SimulatedCall:
            data = encode(request) if encode and has_request else request
            made = SimulatedCall(self, path, decode)
            made.begin(data if has_request else None, timeout)
            return made

        return call

    async def close(self) -> None:
        """As grpc.aio."""
        self._set(State.SHUTDOWN)
        for call in list(self._calls):
            call.cancel()
        link, self._link = self._link, None
        if link:
            link.close(self)

    # Calls

    def begin(self, call: SimulatedCall) -> None:
        """Begins a call now, or as soon as there is a connection."""
        self._calls[call] = None
        if self._state is State.READY and self._link:
            call.connected(self._link)
        elif self._state in (State.TRANSIENT_FAILURE, State.SHUTDOWN):
            loop = asyncio.get_running_loop()
            loop.call_soon(call.take_end, _unavailable("failed to connect"))
        else:
            self._queued.append(call)
            if self._state is State.IDLE:
                self._connect()

    def forget(self, call: SimulatedCall) -> None:
        """Takes note that a call is over."""
        self._calls.pop(call, None)

    def link_lost(self, link: Link) -> None:
        """The connection is gone, and all calls with it."""
        if link is self._link:
            self._link = None
            self._set(State.IDLE)
        for call in list(self._calls):
            if call.link is link:
                call.take_end(_unavailable("Connection reset by peer"))

    # Connecting

    def _connect(self) -> None:
        self._set(State.CONNECTING)
        network = self._network
        loop = asyncio.get_running_loop()
        loop.call_later(2 * network.latency_s(), self._connected, context=self.process.context)

    def _connected(self) -> None:
        if self._state is not State.CONNECTING:
            return
        network = self._network
        server = network.listening.get(self._target)
        queued, self._queued = self._queued, []
        if server is None or network.is_parted:
            self._set(State.TRANSIENT_FAILURE)
            loop = asyncio.get_running_loop()
            loop.call_later(network.random.uniform(*RECONNECT_S), self._try_again)
            for call in queued:
                call.take_end(_unavailable("failed to connect"))
            return
        self._link = Link(network, self, server)
        self._set(State.READY)
        for call in queued:
            if not call.end:
                call.connected(self._link)

    def _try_again(self) -> None:
        if self._state is State.TRANSIENT_FAILURE:
            self._connect()

    def _set(self, state: State) -> None:
        if self._state is not State.SHUTDOWN:
            self._state = state
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)


def _unavailable(details: str) -> Status:
    return Status(grpc.StatusCode.UNAVAILABLE, details)
