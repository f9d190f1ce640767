"""The connection to one broker: a channel made when first needed, and calls through it.

A channel belongs to the process and the event loop that made it. In any other, and after
`close`, every use raises PreconditionError CLIENT_CLOSED at once.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from grpc.aio import AioRpcError, Channel, StreamStreamCall, UnaryStreamCall

from logbroker.client.forks import check_unspoilt, note_connected, tell_of_forks
from logbroker.client.retry import Backoff, failure_of, may_pass, unreachable, wait_ms
from logbroker.clock import Clock
from logbroker.errors import LogbrokerError, OutcomeUnknownError, PreconditionError
from logbroker.limits import RESPONSE_FIELDS_BYTES

M = TypeVar("M", bound=Message)
T = TypeVar("T")

KEEPALIVE_MS = 10_000
"""A connection without traffic is probed this often..."""
KEEPALIVE_TIMEOUT_MS = 5_000
"""... and given up when the probe is not answered in this time."""
RECONNECT_MS = 100, 1_000
"""The shortest and the longest wait between attempts to connect."""


class Connection:
    """Calls to one broker. Survives its restarts."""

    def __init__(
        self, target: str, *, timeout_ms: int, max_response_bytes: int, clock: Clock
    ) -> None:
        """Remembers these. PreconditionError CLIENT_CLOSED in a process where no client works."""
        check_unspoilt()
        self.target = target
        self.timeout_ms = timeout_ms
        self.max_response_bytes = max_response_bytes
        self.clock = clock
        self.random = Random()
        self.backoff = Backoff()
        self._channel: Channel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed_because = ""
        self._calls: dict[str, Callable[..., Any]] = {}
        tell_of_forks(self)

    def check_open(self) -> None:
        """Raises PreconditionError CLIENT_CLOSED unless the connection can be used here."""
        if self._closed_because:
            raise PreconditionError("CLIENT_CLOSED", self._closed_because)

    async def wait_ready(self, deadline_ms: int) -> None:
        """Returns once the channel is connected; UNREACHABLE at `deadline_ms` (monotonic)."""
        channel = self._open()
        try:
            while (state := channel.get_state(try_to_connect=True)) != READY:
                left = deadline_ms - self.clock.monotonic_ms()
                if left <= 0:
                    raise TimeoutError
                await self.clock.wait_for(channel.wait_for_state_change(state), left)
        except TimeoutError as error:
            raise unreachable(f"nothing listens at {self.target}, or it is too slow") from error

    async def call(
        self,
        method: str,
        request: Message,
        response: type[M],
        *,
        repeatable: bool = True,
        on_retry: Callable[[LogbrokerError], None] | None = None,
    ) -> M:
        """Returns the answer of a unary call, within the client's `timeout_ms`.

        `method` is as `TopicService/GetTopic`. Raises what the broker raised; UNREACHABLE
        if nothing could be sent; where a call that is not `repeatable` was sent and not
        answered, OutcomeUnknownError. What is repeatable is tried until the time is over;
        `on_retry` hears why.
        """
        deadline_ms = self.clock.monotonic_ms() + self.timeout_ms
        attempt = 0
        while True:
            await self.wait_ready(deadline_ms)
            send = self._method("unary_unary", method, response.FromString)
            left = max(1, deadline_ms - self.clock.monotonic_ms())
            try:
                answer: M = await send(request.SerializeToString(), timeout=left / 1_000)
                return answer
            except AioRpcError as failure:
                self.check_open()
                error = failure_of(failure)
                if not repeatable:
                    raise _once(error, method) from failure
                attempt += 1
                resume_ms = self.clock.monotonic_ms()
                resume_ms += wait_ms(error, attempt, self.backoff, self.random)
                if not may_pass(error) or resume_ms >= deadline_ms:
                    raise error from failure
                if on_retry:
                    on_retry(error)
                await self.clock.wait_until(resume_ms)

    def open_stream(self, method: str, read: Callable[[bytes], T]) -> StreamStreamCall[bytes, T]:
        """Returns a new stream in both directions: bytes out, and what `read` makes of bytes in."""
        call: StreamStreamCall[bytes, T] = self._method("stream_stream", method, read)()
        return call

    def open_answers(
        self, method: str, request: Message, read: Callable[[bytes], T]
    ) -> UnaryStreamCall[bytes, T]:
        """Returns a new stream of answers to one request, as `read` makes them of bytes."""
        send = self._method("unary_stream", method, read)
        call: UnaryStreamCall[bytes, T] = send(request.SerializeToString())
        return call

    async def close(self) -> None:
        """Ends all calls. Closing again does nothing."""
        channel, self._channel = self._channel, None
        self._closed_because = self._closed_because or "this client has been closed"
        self._calls.clear()
        if channel:
            await channel.close()

    def forked(self) -> None:
        """Refuses everything from now on: this is a child process."""
        self._closed_because = "this client was made in another process; make one in this"

    def _open(self) -> Channel:
        self.check_open()
        loop = asyncio.get_running_loop()
        if self._channel is None:
            self._loop = loop
            note_connected()
            self._channel = grpc.aio.insecure_channel(self.target, options=self._options())
        if self._loop is not loop:
            message = "this client was used in another event loop; make one in this"
            raise PreconditionError("CLIENT_CLOSED", message)
        return self._channel

    def _options(self) -> list[tuple[str, Any]]:
        initial_ms, max_ms = RECONNECT_MS
        return [
            ("grpc.max_receive_message_length", self.max_response_bytes + RESPONSE_FIELDS_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS),
            ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
            ("grpc.http2.ping_timeout_ms", KEEPALIVE_TIMEOUT_MS),  # else a minute counts
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.initial_reconnect_backoff_ms", initial_ms),
            ("grpc.min_reconnect_backoff_ms", max_ms),
            ("grpc.max_reconnect_backoff_ms", max_ms),
            ("grpc.use_local_subchannel_pool", 1),
        ]

    def _method(self, kind: str, method: str, decode: Callable[[bytes], Any]) -> Callable[..., Any]:
        channel = self._open()
        if method not in self._calls:
            make = getattr(channel, kind)
            path = f"/logbroker.v1.{method}"
            self._calls[method] = make(path, None, decode)
        return self._calls[method]


READY = grpc.ChannelConnectivity.READY


def _once(error: LogbrokerError, method: str) -> LogbrokerError:
    """Returns the error of a call that was sent once and must not be sent again unasked."""
    if error.reason != "UNREACHABLE":
        return error
    return OutcomeUnknownError("OUTCOME_UNKNOWN", f"{method} was sent and not answered: {error}")
