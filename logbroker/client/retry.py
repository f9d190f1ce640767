"""Which failures pass by themselves, and how long to wait for that. Pure."""

from dataclasses import dataclass
from random import Random

from grpc import StatusCode
from grpc.aio import AioRpcError

from logbroker.errors import REASONS, LogbrokerError
from logbroker.wire.status import error_of

CONNECTION_CODES = {
    StatusCode.UNAVAILABLE,
    StatusCode.CANCELLED,
    StatusCode.UNKNOWN,
    StatusCode.INTERNAL,
    StatusCode.DEADLINE_EXCEEDED,
}
"""What gRPC itself reports when a connection breaks or a broker stops under a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that double up to a cap, less up to half: many clients do not come at once."""

    initial_ms: int = 50
    max_ms: int = 1_000

    def delay_ms(self, attempt: int, random: Random) -> int:
        """Returns the wait after this many failures in a row, from 1."""
        assert attempt >= 1
        ceiling = min(self.initial_ms << min(attempt - 1, 20), self.max_ms)
        return random.randint(ceiling // 2, ceiling)


def may_pass(error: LogbrokerError) -> bool:
    """Tells whether the same call may soon succeed: a lost connection, a full disk.

    Not TOPIC_DAMAGED: that waits for an operator.
    """
    return error.may_retry and error.reason != "TOPIC_DAMAGED"


def failure_of(failure: AioRpcError) -> LogbrokerError:
    """Returns the broker's error; UNREACHABLE where none of ours answered and gRPC broke."""
    error = error_of(failure)
    if error.reason not in REASONS and failure.code() in CONNECTION_CODES:
        return unreachable(failure.details() or failure.code().name)
    return error


def unreachable(why: str) -> LogbrokerError:
    """Returns the error for a broker that does not answer."""
    kind, _ = REASONS["UNREACHABLE"]
    return kind("UNREACHABLE", f"no broker answers: {why}")


def wait_ms(error: LogbrokerError, attempt: int, backoff: Backoff, random: Random) -> int:
    """Returns how long to wait: the back-off, and at least what the broker asks for."""
    asked = error.details.get("retry_after_ms", "0")
    return max(backoff.delay_ms(attempt, random), int(asked) if asked.isdigit() else 0)
