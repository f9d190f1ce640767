"""Which failures pass, and how long a client waits."""

from random import Random

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from logbroker.client.retry import Backoff, failure_of, may_pass, wait_ms
from logbroker.errors import ExhaustedError, InvalidError


def test_waits_grow_up_to_the_cap_and_never_go_below_half():
    backoff = Backoff(initial_ms=50, max_ms=1_000)
    random = Random(1)
    for attempt, ceiling in [(1, 50), (2, 100), (3, 200), (5, 800), (6, 1_000), (500, 1_000)]:
        delays = [backoff.delay_ms(attempt, random) for _ in range(200)]
        assert ceiling // 2 <= min(delays)
        assert max(delays) <= ceiling


def test_a_broker_that_names_a_delay_is_not_asked_sooner():
    error = ExhaustedError("OVERLOADED", "full", retry_after_ms=7_000)
    assert wait_ms(error, 1, Backoff(), Random(1)) == 7_000


@pytest.mark.parametrize("code", ["UNAVAILABLE", "CANCELLED", "UNKNOWN", "INTERNAL"])
def test_what_grpc_itself_reports_is_a_broker_that_cannot_be_reached(code):
    failure = AioRpcError(grpc.StatusCode[code], Metadata(), Metadata(), details="reset")
    error = failure_of(failure)
    assert error.reason == "UNREACHABLE"
    assert may_pass(error)


def test_what_the_caller_did_wrong_does_not_pass():
    assert not may_pass(InvalidError("INVALID_ARGUMENT", "wrong"))
