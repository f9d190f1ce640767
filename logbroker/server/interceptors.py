"""Written once for all methods: status, log, counts."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from logbroker.errors import InternalError, InvalidError, LogbrokerError
from logbroker.server.open_streams import OpenStreams
from logbroker.wire.status import status_of

log = structlog.get_logger()


class StatusInterceptor(grpc.aio.ServerInterceptor):
    """Ends a call that raised a LogbrokerError with its status; counts and logs it.

    Anything else raised is our mistake: it is logged with its trace, and the caller gets
    INTERNAL (BROKER_FAULT). Requests are read here, so that bytes which are none are
    refused like any other bad call; gRPC would say INTERNAL, which is not the caller's fault.
    """

    def __init__(self, error_counts: Counter[str], streams: OpenStreams) -> None:
        self._error_counts = error_counts
        self._streams = streams

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Wraps the handler of the method."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or not method.startswith("/logbroker."):
            return handler
        read = handler.request_deserializer or _as_it_is
        if handler.stream_stream:  # its requests come one by one: the handler reads them
            return grpc.stream_stream_rpc_method_handler(
                self._of_call(handler.stream_stream, method, _as_it_is),
                handler.request_deserializer,
                handler.response_serializer,
            )
        if handler.unary_stream:
            return grpc.unary_stream_rpc_method_handler(
                self._of_call(handler.unary_stream, method, read),  # it writes its responses
                response_serializer=handler.response_serializer,
            )
        return grpc.unary_unary_rpc_method_handler(
            self._of_call(handler.unary_unary, method, read),
            response_serializer=handler.response_serializer,
        )

    def _of_call(
        self, call: Callable[..., Any], method: str, read: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        async def wrapped(data: Any, context: Any) -> Any:
            try:
                self._streams.begin_call()
                return await call(_read(read, data), context)
            except Exception as error:  # noqa: BLE001  # the outermost edge
                await self._abort(error, method, context)

        return wrapped

    async def _abort(self, error: Exception, method: str, context: Any) -> None:
        if isinstance(error, (grpc.aio.AbortError, asyncio.CancelledError)):
            raise error
        if _is_gone(error):
            raise asyncio.CancelledError from error
        if not isinstance(error, LogbrokerError):
            log.error("broker fault", method=method, exc_info=error)
            message = f"an unforeseen {type(error).__name__}; the broker's log says more"
            error = InternalError("BROKER_FAULT", message)
        self._error_counts[error.reason] += 1
        log.info("call failed", method=method, reason=error.reason, error=str(error))
        await context.abort_with_status(status_of(error))


def _is_gone(error: BaseException) -> bool:
    """Returns whether a write failed, perhaps in a task of the call: nobody is there any more."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_gone, error.exceptions))
    return isinstance(error, grpc.aio.InternalError)


def _as_it_is(data: Any) -> Any:
    return data


def _read(read: Callable[[Any], Any], data: Any) -> Any:
    try:
        return read(data)
    except DecodeError as error:
        raise InvalidError("INVALID_ARGUMENT", f"the request cannot be read: {error}") from error
