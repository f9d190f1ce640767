"""Errors to status and back: what the broker raises, the caller of a client catches."""

import inspect

import pytest
from google.protobuf.any_pb2 import Any
from google.rpc.error_details_pb2 import DebugInfo, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc import StatusCode
from grpc.aio import AioRpcError, Metadata

from logbroker import errors
from logbroker.errors import LogbrokerError, OutcomeUnknownError
from logbroker.v1.error_pb2 import Error
from logbroker.wire.status import (
    CODE,
    DETAIL_CHARS,
    MESSAGE_CHARS,
    error_from,
    error_of,
    error_to_proto,
    status_of,
)

TRAILER_BYTES = 8 << 10
"""What gRPC takes of metadata by default."""


def failure(status):
    """Returns what a client of grpc.aio raises for a status."""
    metadata = Metadata(*status.trailing_metadata)
    return AioRpcError(status.code, Metadata(), metadata, details=status.details)


def plain_failure(code, details=""):
    return AioRpcError(code, Metadata(), Metadata(), details=details)


@pytest.mark.parametrize("kind", CODE)
def test_an_error_comes_back_as_it_was_raised(kind):
    error = kind("SOME_REASON", "message: żółć\n 100%", offset=7, name="a/b", reason="x")
    status = status_of(error)
    assert status.code is CODE[kind]
    for back in (error_of(failure(status)), error_from(error_to_proto(error))):
        assert type(back) is kind
        assert (back.reason, str(back), back.details) == ("SOME_REASON", str(error), error.details)


def test_every_error_a_broker_raises_has_a_code():
    kinds = {
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, LogbrokerError)
    }
    assert set(CODE) == kinds - {LogbrokerError, OutcomeUnknownError}


def test_the_reason_travels_as_error_info_with_our_domain():
    status = status_of(errors.NotFoundError("TOPIC_NOT_FOUND", "no", topic="a"))
    [(name, data)] = status.trailing_metadata
    [detail] = Status.FromString(data).details
    info = ErrorInfo()
    assert detail.Unpack(info)
    assert name == "grpc-status-details-bin"
    assert (info.reason, info.domain, dict(info.metadata)) == (
        "TOPIC_NOT_FOUND",
        "logbroker",
        {"topic": "a"},
    )


def test_a_delay_to_retry_after_travels_as_retry_info_too():
    error = errors.ExhaustedError("OVERLOADED", "later", retry_after_ms=1_250)
    [(_, data)] = status_of(error).trailing_metadata
    retry = RetryInfo()
    assert [detail.Unpack(retry) for detail in Status.FromString(data).details] == [False, True]
    assert retry.retry_delay.ToMilliseconds() == 1_250
    assert error_of(failure(status_of(error))).details == {"retry_after_ms": "1250"}


@pytest.mark.parametrize("text", ["x", "é", "\U0001f600", "%", "\0"])
def test_a_status_fits_into_trailers_whatever_the_caller_sent(text):
    error = errors.InvalidError("INVALID_NAME", text * 1_000_000, name=text * 1_000_000)
    status = status_of(error)
    [(_, data)] = status.trailing_metadata
    assert 3 * len(status.details.encode()) + len(data) < TRAILER_BYTES + MESSAGE_CHARS * 12
    back = error_of(failure(status))
    assert len(str(back)) == MESSAGE_CHARS
    assert len(back.details["name"]) == DETAIL_CHARS


def test_where_no_broker_answers_the_reason_is_unreachable():
    error = error_of(plain_failure(StatusCode.UNAVAILABLE, "connection refused"))
    assert (type(error), error.reason) == (errors.UnavailableError, "UNREACHABLE")
    assert str(error) == "connection refused"


@pytest.mark.parametrize(
    "code", [StatusCode.DEADLINE_EXCEEDED, StatusCode.CANCELLED, StatusCode.UNKNOWN]
)
def test_what_grpc_gave_up_may_have_happened(code):
    error = error_of(plain_failure(code))
    assert (type(error), error.reason) == (OutcomeUnknownError, code.name)
    assert not error.no_effect


@pytest.mark.parametrize(
    "details, reason",
    [
        ("SERVER: Received message larger than max (9 vs. 8)", "BATCH_TOO_LARGE"),
        ("CLIENT: Sent message larger than max (9 vs. 8)", "BATCH_TOO_LARGE"),
        ("CLIENT: Received message larger than max (9 vs. 8)", "RESPONSE_TOO_LARGE"),
    ],
)
def test_a_message_too_large_for_grpc_is_not_worth_a_retry(details, reason):
    error = error_of(plain_failure(StatusCode.RESOURCE_EXHAUSTED, details))
    assert (type(error), error.reason, error.may_retry) == (errors.InvalidError, reason, False)


def test_a_code_of_a_proxy_is_an_error_with_the_codes_name():
    error = error_of(plain_failure(StatusCode.PERMISSION_DENIED, "no"))
    assert (type(error), error.reason, str(error)) == (LogbrokerError, "PERMISSION_DENIED", "no")


def test_details_of_others_are_passed_over():
    status = Status(code=5, message="gone", details=[Any()])
    status.details[0].Pack(DebugInfo(detail="x"))
    metadata = Metadata(("grpc-status-details-bin", status.SerializeToString()))
    raised = AioRpcError(StatusCode.NOT_FOUND, Metadata(), metadata, details="gone")
    assert error_of(raised).reason == "NOT_FOUND"


def test_an_answer_with_a_code_nobody_knows_is_an_error_all_the_same():
    error = error_from(Error(code=77, reason="NEW", message="m", details={"a": "b"}))
    assert (type(error), error.reason, error.details) == (LogbrokerError, "NEW", {"a": "b"})
