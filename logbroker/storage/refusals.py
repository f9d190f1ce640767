"""What every engine says when it refuses. Worded once, so that callers see no difference."""

from logbroker.errors import (
    DataLossError,
    ExhaustedError,
    LogbrokerError,
    NotFoundError,
    OffsetOutOfRangeError,
    PreconditionError,
    UnavailableError,
)
from logbroker.record.partition_id import PartitionId
from logbroker.storage.engine import Bounds


def out_of_range(partition: PartitionId, offset: int, bounds: Bounds) -> OffsetOutOfRangeError:
    """Returns the error of an offset that cannot be read, or not yet."""
    start, mark = bounds.log_start_offset, bounds.high_watermark
    return OffsetOutOfRangeError(
        "OFFSET_OUT_OF_RANGE",
        f"offset {offset} of {partition} is not from {start} to {mark}",
        topic=partition.topic,
        partition=partition.partition,
        offset=offset,
        log_start_offset=start,
        high_watermark=mark,
    )


def disk_full(partition: PartitionId, error: ExhaustedError) -> ExhaustedError:
    """Returns the error of an append that found no room, and left nothing behind."""
    details: dict[str, str | int] = {**error.details}
    details |= {"topic": partition.topic, "partition": partition.partition}
    message = f"no room on the disk for {partition}; nothing was stored"
    return ExhaustedError(error.reason, message, **details)


def unexpected_offset(
    partition: PartitionId, expected_offset: int, next_offset: int
) -> PreconditionError:
    """Returns the error of an append that names another offset than the next."""
    return PreconditionError(
        "UNEXPECTED_OFFSET",
        f"the next offset of {partition} is {next_offset}, not {expected_offset}",
        topic=partition.topic,
        partition=partition.partition,
        expected_offset=expected_offset,
        next_offset=next_offset,
    )


def damaged(partition: PartitionId, offset: int, next_offset: int) -> DataLossError:
    """Returns the error of offsets that are lost, and where to go on."""
    return DataLossError(
        "DAMAGED_BATCH",
        f"offsets {offset} to {next_offset} of {partition} are damaged; go on at {next_offset}",
        topic=partition.topic,
        partition=partition.partition,
        offset=offset,
        next_offset=next_offset,
    )


def deleted(partition: PartitionId) -> NotFoundError:
    """Returns the error of everything asked of a partition that was deleted."""
    return NotFoundError(
        "PARTITION_NOT_FOUND",
        f"partition {partition.partition} of topic {partition.topic} has been deleted",
        topic=partition.topic,
        partition=partition.partition,
    )


def other_incarnation(partition: PartitionId, topic_id: str) -> PreconditionError:
    """Returns the error of a partition whose bytes belong to an older topic of the name."""
    return PreconditionError(
        "TOPIC_RECREATED",
        f"the bytes of {partition} belong to topic id {topic_id}, not {partition.topic_id}",
        topic=partition.topic,
        partition=partition.partition,
        topic_id=topic_id,
    )


def closed() -> UnavailableError:
    """Returns the error of everything asked of an engine that is closed."""
    return UnavailableError("SHUTTING_DOWN", "the broker is stopping")


def storage_failed(partition: PartitionId, cause: LogbrokerError) -> UnavailableError:
    """Returns the error of writes to a partition whose disk has failed."""
    return UnavailableError(
        "STORAGE_FAILED",
        f"{partition} takes no writes until the broker is started again: {cause}",
        topic=partition.topic,
        partition=partition.partition,
    )
