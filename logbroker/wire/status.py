"""Errors to google.rpc.Status and back; the reason travels as ErrorInfo."""

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import Status as GrpcStatus
from grpc import StatusCode
from grpc.aio import AioRpcError
from grpc_status import rpc_status

from logbroker import errors
from logbroker.errors import LogbrokerError
from logbroker.v1 import error_pb2

DOMAIN = "logbroker"
MESSAGE_CHARS = 600
DETAIL_CHARS = 200
"""A status travels in HTTP/2 trailers, of which gRPC takes 8 KiB; a caller may send more."""
CODE: dict[type[LogbrokerError], StatusCode] = {
    errors.InvalidError: StatusCode.INVALID_ARGUMENT,
    errors.NotFoundError: StatusCode.NOT_FOUND,
    errors.AlreadyExistsError: StatusCode.ALREADY_EXISTS,
    errors.OffsetOutOfRangeError: StatusCode.OUT_OF_RANGE,
    errors.PreconditionError: StatusCode.FAILED_PRECONDITION,
    errors.ConflictError: StatusCode.ABORTED,
    errors.ExhaustedError: StatusCode.RESOURCE_EXHAUSTED,
    errors.UnavailableError: StatusCode.UNAVAILABLE,
    errors.DataLossError: StatusCode.DATA_LOSS,
    errors.InternalError: StatusCode.INTERNAL,
}
ERROR = {code: error for error, code in CODE.items()}
GIVEN_UP = {StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED, StatusCode.UNKNOWN}
NUMBER: dict[type[LogbrokerError], int] = {error: code.value[0] for error, code in CODE.items()}
ERROR_OF_NUMBER = {number: error for error, number in NUMBER.items()}


def status_of(error: LogbrokerError) -> GrpcStatus:
    """Returns the status that a call which raised `error` ends with."""
    details = [Any()]
    details[0].Pack(ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=_details_of(error)))
    if "retry_after_ms" in error.details:
        delay = Duration()
        delay.FromMilliseconds(int(error.details["retry_after_ms"]))
        details.append(Any())
        details[1].Pack(RetryInfo(retry_delay=delay))
    status = Status(code=NUMBER[type(error)], message=_message_of(error), details=details)
    return rpc_status.to_status(status)


def _message_of(error: LogbrokerError) -> str:
    return _cut(str(error), MESSAGE_CHARS)


def _details_of(error: LogbrokerError) -> dict[str, str]:
    return {name: _cut(value, DETAIL_CHARS) for name, value in error.details.items()}


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - 3]}..."


def error_of(failure: AioRpcError) -> LogbrokerError:
    """Returns the error the broker raised, as the caller of a client should see it.

    Where no broker of ours has answered, the reason is UNREACHABLE or the code's name, and
    what gRPC itself gave up, as at a deadline, is an OutcomeUnknownError. A message that one
    of the two gRPC ends finds too large is one that no retry makes smaller: InvalidError.
    """
    info = ErrorInfo(reason=failure.code().name)
    try:
        status = rpc_status.from_call(failure)  # type: ignore[arg-type]  # the stub forgets grpc.aio
        for detail in status.details if status else ():
            if detail.Is(ErrorInfo.DESCRIPTOR):
                detail.Unpack(info)
    except (DecodeError, ValueError):  # what is there is none, or of another call
        status = None
    if not status and failure.code() is StatusCode.UNAVAILABLE:
        info.reason = "UNREACHABLE"
    kind = ERROR.get(failure.code(), LogbrokerError)
    if not status and failure.code() in GIVEN_UP:
        kind = errors.OutcomeUnknownError
    if not status and failure.code() is StatusCode.RESOURCE_EXHAUSTED:
        is_received = "CLIENT: Received" in (failure.details() or "")
        info.reason = "RESPONSE_TOO_LARGE" if is_received else "BATCH_TOO_LARGE"
        kind = errors.InvalidError
    return kind(info.reason, failure.details() or "", **info.metadata)


def error_to_proto(error: LogbrokerError) -> error_pb2.Error:
    """Returns the error as an answer inside a stream carries it."""
    return error_pb2.Error(
        code=NUMBER[type(error)],
        reason=error.reason,
        message=_message_of(error),
        details=_details_of(error),
    )


def error_from(error: error_pb2.Error) -> LogbrokerError:
    """Returns the error that the broker put into an answer."""
    kind = ERROR_OF_NUMBER.get(error.code, LogbrokerError)
    return kind(error.reason, error.message, **error.details)
