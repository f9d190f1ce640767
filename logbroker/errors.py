"""Every error logbroker raises on purpose, with its status and its reasons.

    LogbrokerError
      InvalidError           INVALID_ARGUMENT     INVALID_NAME, INVALID_ARGUMENT, INVALID_OFFSET,
                                                  INVALID_SETTING, BAD_BATCH, RECORD_TOO_LARGE,
                                                  BATCH_TOO_LARGE, TOO_MANY_HEADERS,
                                                  HEADER_TOO_LARGE, RESPONSE_TOO_LARGE
      NotFoundError          NOT_FOUND            TOPIC_NOT_FOUND, PARTITION_NOT_FOUND,
                                                  GROUP_NOT_FOUND, DEAD_LETTER_NOT_FOUND,
                                                  REDRIVE_NOT_FOUND
      AlreadyExistsError     ALREADY_EXISTS       TOPIC_ALREADY_EXISTS, GROUP_ALREADY_EXISTS
      OffsetOutOfRangeError  OUT_OF_RANGE         OFFSET_OUT_OF_RANGE
      PreconditionError      FAILED_PRECONDITION  TOPIC_RECREATED, UNEXPECTED_OFFSET, GROUP_IN_USE,
                                                  CLIENT_CLOSED, BROKER_RUNNING
      ConflictError          ABORTED              SEQUENCE_GAP, SEQUENCE_TOO_OLD, PRODUCER_FENCED,
                                                  LEASE_LOST, MEMBER_FENCED, REDRIVE_RUNNING
      ExhaustedError         RESOURCE_EXHAUSTED   DISK_FULL, OVERLOADED, TOO_MANY_PARTITIONS,
                                                  TOO_MANY_GROUPS
      UnavailableError       UNAVAILABLE          STORAGE_FAILED, SHUTTING_DOWN, TOPIC_DAMAGED,
                                                  UNREACHABLE
      DataLossError          DATA_LOSS            DAMAGED_BATCH
      InternalError          INTERNAL             BROKER_FAULT
      OutcomeUnknownError    (clients alone)      OUTCOME_UNKNOWN

The reason is the stable name: it travels as google.rpc.ErrorInfo, clients switch on
it, logs and metrics count it. Details hold every value the message mentions. All
classes share one constructor, so that a client raises what the broker raised.
"""

from typing import ClassVar, Self


class LogbrokerError(Exception):
    """The root. Its class says whether to try again, and whether anything happened."""

    may_retry: ClassVar[bool] = False
    """The same call, unchanged, may succeed later."""
    no_effect: ClassVar[bool] = True
    """The broker surely changed nothing."""

    def __init__(self, reason: str, message: str, /, **details: str | int) -> None:
        super().__init__(message)
        self.reason = reason
        self.details = {name: str(value) for name, value in details.items()}

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.reason, str(self), self.details)

    def again(self) -> Self:
        """Returns a copy to raise: one error may be the answer of many who wait."""
        return type(self)(self.reason, str(self), **self.details)


def _restore(
    kind: type[LogbrokerError], reason: str, message: str, details: dict[str, str]
) -> LogbrokerError:
    return kind(reason, message, **details)


class InvalidError(LogbrokerError):
    """The call is wrong; the message names the rule."""


class NotFoundError(LogbrokerError):
    """What the call names does not exist."""


class AlreadyExistsError(LogbrokerError):
    """What the call would create exists."""


class OffsetOutOfRangeError(LogbrokerError):
    """Outside the bounds, which details name: `log_start_offset` and `high_watermark`."""


class PreconditionError(LogbrokerError):
    """The call does not fit the state of things."""


class ConflictError(LogbrokerError):
    """The state has moved on; look again first."""


class DataLossError(LogbrokerError):
    """Stored bytes are bad; details name the bad `offset` and the `next_offset` that is good."""


class InternalError(LogbrokerError):
    """The broker is at fault: an error nobody foresaw. Its log says more."""

    no_effect = False


class ExhaustedError(LogbrokerError):
    """A limit is reached and nothing was done; details may name `retry_after_ms`."""

    may_retry = True


class UnavailableError(LogbrokerError):
    """The broker cannot do this now; part of it may be done."""

    may_retry, no_effect = True, False


class OutcomeUnknownError(LogbrokerError):
    """The request was sent and no answer came: it may have happened."""

    no_effect = False


REASONS: dict[str, tuple[type[LogbrokerError], str]] = {
    "INVALID_NAME": (InvalidError, "A name breaks the rule that the message states."),
    "INVALID_ARGUMENT": (InvalidError, "A field has a value that it cannot have."),
    "INVALID_OFFSET": (InvalidError, "An offset is negative or not one of this partition."),
    "INVALID_SETTING": (InvalidError, "A setting is out of its range."),
    "BAD_BATCH": (InvalidError, "A batch's checksum, count or columns contradict its records."),
    "RECORD_TOO_LARGE": (InvalidError, "A record is over the limit `record_bytes`."),
    "BATCH_TOO_LARGE": (InvalidError, "A batch is over the limit `batch_bytes`."),
    "TOO_MANY_HEADERS": (InvalidError, "A record has more headers than `header_count`."),
    "HEADER_TOO_LARGE": (InvalidError, "A header is over the limit `header_bytes`."),
    "RESPONSE_TOO_LARGE": (
        InvalidError,
        "A batch is larger than what the client says it can receive (`max_response_bytes`).",
    ),
    "TOPIC_NOT_FOUND": (NotFoundError, "There is no such topic, or no more."),
    "PARTITION_NOT_FOUND": (NotFoundError, "The topic has no such partition."),
    "GROUP_NOT_FOUND": (NotFoundError, "There is no such group, or no more."),
    "DEAD_LETTER_NOT_FOUND": (NotFoundError, "There is no such dead letter."),
    "REDRIVE_NOT_FOUND": (NotFoundError, "There is no such redrive, or it ended long ago."),
    "TOPIC_ALREADY_EXISTS": (AlreadyExistsError, "The name is taken."),
    "GROUP_ALREADY_EXISTS": (AlreadyExistsError, "There is a group of this name."),
    "OFFSET_OUT_OF_RANGE": (OffsetOutOfRangeError, "The offset cannot be read, or not yet."),
    "TOPIC_RECREATED": (PreconditionError, "The name means another topic now than `topic_id`."),
    "UNEXPECTED_OFFSET": (PreconditionError, "`expected_offset` is not the next offset."),
    "GROUP_IN_USE": (
        PreconditionError,
        "The group has members or leases; end them first, or force it.",
    ),
    "CLIENT_CLOSED": (PreconditionError, "Given by clients: this client has been closed."),
    "BROKER_RUNNING": (PreconditionError, "A broker holds this data directory."),
    "SEQUENCE_GAP": (ConflictError, "A producer's batch came before the one it follows."),
    "SEQUENCE_TOO_OLD": (ConflictError, "A repeated batch from before the remembered ones."),
    "PRODUCER_FENCED": (ConflictError, "The producer id is used with a greater epoch."),
    "LEASE_LOST": (ConflictError, "The lease is over: its records may be with another member."),
    "MEMBER_FENCED": (
        ConflictError,
        "The member is replaced, or the partition is not its own any more.",
    ),
    "REDRIVE_RUNNING": (ConflictError, "A redrive of the same records is running."),
    "DISK_FULL": (ExhaustedError, "No room on the disk. Writing resumes when there is."),
    "OVERLOADED": (ExhaustedError, "The broker holds as many bytes as it may."),
    "TOO_MANY_PARTITIONS": (ExhaustedError, "The broker has as many partitions as it may."),
    "TOO_MANY_GROUPS": (ExhaustedError, "The broker has as many groups as it may."),
    "STORAGE_FAILED": (UnavailableError, "The disk failed; the partition takes no writes."),
    "SHUTTING_DOWN": (UnavailableError, "The broker is stopping."),
    "TOPIC_DAMAGED": (UnavailableError, "The topic's files are there, its settings are lost."),
    "UNREACHABLE": (UnavailableError, "Given by clients: no broker answers."),
    "DAMAGED_BATCH": (DataLossError, "Stored bytes are bad; go on at `next_offset`."),
    "BROKER_FAULT": (InternalError, "An error nobody foresaw; the broker's log says more."),
    "OUTCOME_UNKNOWN": (OutcomeUnknownError, "Given by clients: sent, and no answer came."),
}
"""Every reason: the error that carries it, and what it means. error.proto lists the same."""
