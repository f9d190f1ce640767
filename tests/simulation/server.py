"""What stands in for `grpc.aio.server`: runs the real services, with their interceptors."""

import asyncio
from typing import Any, NamedTuple

import grpc
from grpc.aio import EOF, AbortError

from .channel import SimulatedCall
from .loop import current_process
from .network import Link, Network
from .stream import Half, Status


class Details(NamedTuple):
    """Which method is called."""

    method: str
    invocation_metadata: tuple[Any, ...] = ()


class ServerCall(Half):
    """A call as its handler has it: what a context of `grpc.aio` offers of what we use."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._peer_name = name
        self.task: asyncio.Task[None] | None = None
        self.encode: Any = None
        self.decode: Any = None
        self.aborted: Status | None = None

    def take_end(self, status: Status) -> None:
        """The caller has given up, or is gone."""
        super().take_end(status)
        if self.task:
            self.task.cancel()

    # As grpc.aio has it

    def peer(self) -> str:
        """Returns a name of the connection."""
        return self._peer_name

    async def read(self) -> Any:
        """Returns the next message, or EOF."""
        data = await self.read_bytes()
        if data is None:
            return EOF
        return self.decode(data) if self.decode else data

    async def write(self, message: Any) -> None:
        """Sends a message."""
        data = self.encode(message) if self.encode else message
        if not await self.write_bytes(data):
            raise grpc.aio.InternalError("the connection is gone")

    async def abort_with_status(self, status: Any) -> None:
        """Ends the call with this status."""
        self.aborted = Status(status.code, status.details, tuple(status.trailing_metadata))
        raise AbortError("aborted")


class SimulatedServer:
    """Listens at an address of the network, in the process that made it."""

    def __init__(self, network: Network, interceptors: Any = (), options: Any = ()) -> None:
        self.process = current_process()
        self._network = network
        self._interceptors = tuple(interceptors)
        self._handlers: list[Any] = []
        self._address = ""
        self._calls: dict[ServerCall, Link] = {}
        self._links: dict[Link, None] = {}

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        """As grpc.aio."""
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        """As grpc.aio: the generic ones do as well."""

    def add_insecure_port(self, address: str) -> int:
        """As grpc.aio."""
        self._address = address
        return int(address.rpartition(":")[2])

    async def start(self) -> None:
        """As grpc.aio."""
        self._network.listening[self._address] = self

    async def stop(self, grace: float | None) -> None:
        """As grpc.aio."""
        self._network.listening.pop(self._address, None)
        tasks = [call.task for call in self._calls if call.task]
        if tasks and grace:
            await asyncio.wait(tasks, timeout=grace)
        for call in list(self._calls):
            call.take_end(Status(grpc.StatusCode.CANCELLED))
        left = [call.task for call in self._calls if call.task]
        if left:
            await asyncio.wait(left)
        for link in list(self._links):
            link.close(self)

    # Calls

    def open_call(self, link: Link, caller: SimulatedCall, method: str) -> None:
        """Begins a call; runs in this server's process."""
        self._links[link] = None
        call = ServerCall(f"link:{link.number}")
        call.link, call.far, call.other = link, link.ends[0], caller
        caller.other = call
        self._calls[call] = link
        call.task = self.process.start(self._serve(call, method))

    def link_lost(self, link: Link) -> None:
        """A connection is gone, and all calls with it."""
        self._links.pop(link, None)
        for call, over in list(self._calls.items()):
            if over is link:
                call.take_end(Status(grpc.StatusCode.CANCELLED))

    async def _serve(self, call: ServerCall, method: str) -> None:
        try:
            status = await self._handle(call, method)
        except AbortError:
            assert call.aborted
            status = call.aborted
        except asyncio.CancelledError:
            status = Status(grpc.StatusCode.CANCELLED)
        except Exception as error:  # noqa: BLE001  # so does gRPC
            status = Status(grpc.StatusCode.UNKNOWN, f"Unexpected {error!r}")
        finally:
            del self._calls[call]
        if call.end is None:
            call.end = status
            assert call.other
            call.send(call.other.take_end, status)

    async def _handle(self, call: ServerCall, method: str) -> Status:
        handler = await self._handler(Details(method))
        if handler is None:
            return Status(grpc.StatusCode.UNIMPLEMENTED, method)
        call.encode, call.decode = handler.response_serializer, handler.request_deserializer
        if handler.stream_stream:
            await handler.stream_stream(None, call)
            return Status(grpc.StatusCode.OK)
        request = await call.read()
        if handler.unary_stream:
            await handler.unary_stream(request, call)
        else:
            await call.write(await handler.unary_unary(request, call))
        return Status(grpc.StatusCode.OK)

    async def _handler(self, details: Details) -> Any:
        async def find(wanted: Any) -> Any:
            found = (one.service(wanted) for one in self._handlers)
            return next((handler for handler in found if handler), None)

        if not self._interceptors:
            return await find(details)
        [interceptor] = self._interceptors
        return await interceptor.intercept_service(find, details)
