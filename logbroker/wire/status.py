"""Errors to google.rpc.Status and back; the reason travels as ErrorInfo."""

from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
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
NUMBER: dict[type[LogbrokerError], int] = {error: code.value[0] for error, code in CODE.items()}
ERROR_OF_NUMBER = {number: error for error, number in NUMBER.items()}


def status_of(error: LogbrokerError) -> GrpcStatus:
    """Returns the status that a call which raised `error` ends with."""
    details = [Any()]
    details[0].Pack(ErrorInfo(reason=error.reason, domain=DOMAIN, metadata=error.details))
    if "retry_after_ms" in error.details:
        delay = Duration()
        delay.FromMilliseconds(int(error.details["retry_after_ms"]))
        details.append(Any())
        details[1].Pack(RetryInfo(retry_delay=delay))
    status = Status(code=NUMBER[type(error)], message=str(error), details=details)
    return rpc_status.to_status(status)


def error_of(failure: AioRpcError) -> LogbrokerError:
    """Returns the error the broker raised, as the caller of a client should see it.

    Where no broker of ours has answered, the reason is UNREACHABLE or the code's name.
    """
    info = ErrorInfo(reason=failure.code().name)
    status = rpc_status.from_call(failure)  # type: ignore[arg-type]  # the stub forgets grpc.aio
    for detail in status.details if status else ():
        if detail.Is(ErrorInfo.DESCRIPTOR):
            detail.Unpack(info)
    if not status and failure.code() is StatusCode.UNAVAILABLE:
        info.reason = "UNREACHABLE"
    kind = ERROR.get(failure.code(), LogbrokerError)
    return kind(info.reason, failure.details() or "", **info.metadata)


def error_to_proto(error: LogbrokerError) -> error_pb2.Error:
    """Returns the error as an answer inside a stream carries it."""
    return error_pb2.Error(
        code=NUMBER[type(error)], reason=error.reason, message=str(error), details=error.details
    )


def error_from(error: error_pb2.Error) -> LogbrokerError:
    """Returns the error that the broker put into an answer."""
    kind = ERROR_OF_NUMBER.get(error.code, LogbrokerError)
    return kind(error.reason, error.message, **error.details)
