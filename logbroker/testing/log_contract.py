"""The rules any partition's log must keep, whatever engine it is of. Part of `engine_contract`."""

import asyncio
from functools import partial

from logbroker.config import Durability, LogConfig
from logbroker.errors import (
    NotFoundError,
    OffsetOutOfRangeError,
    PreconditionError,
    UnavailableError,
)
from logbroker.storage.engine import Bounds, PartitionLog
from logbroker.testing.engine_harness import (
    EVERYTHING,
    PARTITION,
    Harness,
    Rule,
    appended,
    batch_of,
    batches_of,
    error_of,
    values_from,
)

# Appending


async def a_fresh_log_is_empty(log: PartitionLog, harness: Harness) -> None:
    assert log.bounds() == Bounds(0, 0, 0)
    assert await log.read(0, EVERYTHING) == (b"", 0)
    assert await log.find(0) is None


async def an_append_is_stamped_with_offset_and_time(log: PartitionLog, harness: Harness) -> None:
    first = await log.append(batch_of("a", "b"))
    await harness.clock.advance(5)
    second = await log.append(batch_of("c"))
    assert (first.header.base_offset, second.header.base_offset) == (0, 2)
    assert second.header.append_time_ms == first.header.append_time_ms + 5
    assert log.bounds() == Bounds(0, 3, 3)


async def the_records_are_kept_as_they_came(log: PartitionLog, harness: Harness) -> None:
    sent = batch_of("a", "b", timestamps_ms=[7, 3])
    sent = sent._replace(header=sent.header._replace(producer_id=9, base_sequence=4))
    stamped = await log.append(sent)
    [found] = batches_of((await log.read(0, EVERYTHING)).batches)
    assert found == stamped
    assert found.records == sent.records
    assert found.header[2:] == sent.header[2:]


async def offsets_follow_the_order_of_the_calls(log: PartitionLog, harness: Harness) -> None:
    appends = [log.append(batch_of(str(number))) for number in range(20)]
    assert log.bounds().next_offset == 20
    stamped = [await append for append in reversed(appends)]
    assert [batch.header.base_offset for batch in stamped] == list(reversed(range(20)))
    assert await values_from(log, 0) == [str(number) for number in range(20)]


async def append_times_never_fall(log: PartitionLog, harness: Harness) -> None:
    first = await log.append(batch_of("a"))
    harness.clock.step_wall(-10_000)
    second = await log.append(batch_of("b"))
    log = await harness.reopen()
    third = await log.append(batch_of("c"))
    times = [batch.header.append_time_ms for batch in (first, second, third)]
    assert times == [times[0]] * 3


async def the_expected_offset_is_accepted(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b"), expected_offset=0)
    await log.append(batch_of("c"), expected_offset=2)
    assert await values_from(log, 0) == ["a", "b", "c"]


async def an_unexpected_offset_is_refused_and_nothing_is_written(
    log: PartitionLog, harness: Harness
) -> None:
    await log.append(batch_of("a"))
    error = await error_of(appended(log, batch_of("b"), expected_offset=0))
    assert isinstance(error, PreconditionError)
    assert (error.reason, error.details["next_offset"]) == ("UNEXPECTED_OFFSET", "1")
    assert log.bounds() == Bounds(0, 1, 1)
    assert await values_from(log, 0) == ["a"]


async def what_is_written_can_be_read_at_once(log: PartitionLog, harness: Harness) -> None:
    log = await harness.open(config=LogConfig(durability=Durability.WRITTEN))
    appended = log.append(batch_of("a"))
    assert log.bounds() == Bounds(0, 1, 1)
    assert await values_from(log, 0) == ["a"]
    assert (await appended).header.base_offset == 0


# Reading


async def a_read_inside_a_batch_returns_the_whole_batch(
    log: PartitionLog, harness: Harness
) -> None:
    await log.append(batch_of("a"))
    await log.append(batch_of("b", "c", "d"))
    assert await values_from(log, 2) == ["b", "c", "d"]
    assert (await log.read(2, EVERYTHING)).next_offset == 4


async def a_read_returns_one_batch_however_large(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a" * 100_000))
    await log.append(batch_of("b" * 100_000))
    assert (await log.read(0, 1)).next_offset == 1
    assert (await log.read(1, 1)).next_offset == 2


async def a_read_stays_within_max_bytes(log: PartitionLog, harness: Harness) -> None:
    for _ in range(50):
        await log.append(batch_of("v" * 200))
    whole = (await log.read(0, EVERYTHING)).batches
    size = len(whole) // 50
    assert await log.read(0, 3 * size) == (whole[: 3 * size], 3)
    assert await log.read(40, 4 * size - 1) == (whole[40 * size : 43 * size], 43)


async def reading_on_meets_every_batch_once(log: PartitionLog, harness: Harness) -> None:
    values = [f"{number}" * (number % 37 + 1) for number in range(300)]
    for value in values:
        log.append(batch_of(value))
    await log.append(batch_of("last"))
    assert await values_from(log, 0, max_bytes=1_000) == [*values, "last"]
    assert await values_from(log, 150, max_bytes=10_000) == [*values[150:], "last"]


async def a_read_at_the_high_watermark_is_empty(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b"))
    assert await log.read(2, EVERYTHING) == (b"", 2)


async def a_read_outside_the_bounds_names_them(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b"))
    await log.trim(1)
    for offset in (-1, 0, 3):
        error = await error_of(log.read(offset, EVERYTHING))
        assert isinstance(error, OffsetOutOfRangeError), offset
        assert (error.details["log_start_offset"], error.details["high_watermark"]) == ("1", "2")


# Finding


async def find_takes_the_first_in_log_order(log: PartitionLog, harness: Harness) -> None:
    for timestamps_ms in ([100, 50, 200, 150], [120], [90, 300]):
        await log.append(batch_of(*("v" * len(timestamps_ms)), timestamps_ms=timestamps_ms))
    for _ in range(2):
        found = [await log.find(target) for target in (-5, 0, 50, 101, 151, 201, 301)]
        assert found == [0, 0, 0, 2, 2, 6, None]
        log = await harness.reopen()


async def find_meets_each_record_of_a_long_log(log: PartitionLog, harness: Harness) -> None:
    for number in range(100):
        await log.append(batch_of("v" * 500, timestamps_ms=[number * 10]))
    assert [await log.find(number * 10 - 5) for number in range(100)] == list(range(100))


async def find_never_answers_below_the_log_start(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b", "c", timestamps_ms=[500, 10, 20]))
    await log.append(batch_of("d", timestamps_ms=[30]))
    await log.trim(1)
    assert [await log.find(target) for target in (0, 15, 25, 31)] == [1, 2, 3, None]


# Trimming


async def a_trim_raises_the_log_start(log: PartitionLog, harness: Harness) -> None:
    for value in "abc":
        await log.append(batch_of(value))
    await log.trim(2)
    assert log.bounds() == Bounds(2, 3, 3)
    assert await values_from(log, 2) == ["c"]
    log = await harness.reopen()
    assert log.bounds() == Bounds(2, 3, 3)


async def a_trim_below_the_log_start_changes_nothing(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b"))
    await log.trim(2)
    await log.trim(1)
    assert log.bounds() == Bounds(2, 2, 2)


async def a_trim_beyond_the_high_watermark_is_refused(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    assert isinstance(await error_of(log.trim(2)), OffsetOutOfRangeError)
    assert log.bounds() == Bounds(0, 1, 1)


async def offsets_go_on_after_everything_was_trimmed(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a", "b"))
    await log.trim(2)
    log = await harness.reopen()
    assert log.bounds() == Bounds(2, 2, 2)
    assert (await log.append(batch_of("c"))).header.base_offset == 2
    assert await values_from(log, 2) == ["c"]


# Waiting


async def wait_beyond_returns_at_once_if_it_can(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    await log.wait_beyond(0)


async def wait_beyond_returns_when_the_mark_has_passed(log: PartitionLog, harness: Harness) -> None:
    waiting = [log.wait_beyond(offset) for offset in (0, 1, 2)]
    await log.append(batch_of("a", "b"))
    await asyncio.wait(waiting[:2], timeout=5)
    assert [task.done() for task in waiting] == [True, True, False]
    waiting[2].cancel()
    await asyncio.wait(waiting)


async def call_beyond_calls_once_when_the_mark_has_passed(
    log: PartitionLog, harness: Harness
) -> None:
    called: list[int] = []
    for offset in (0, 1, 2):
        log.call_beyond(offset, partial(called.append, offset))
    await log.append(batch_of("a", "b"))
    await log.wait_beyond(1)
    assert called == [0, 1]
    log.call_beyond(1, partial(called.append, 1))
    assert called == [0, 1, 1]
    await harness.engine.delete(PARTITION)
    assert called == [0, 1, 1, 2]
    log.call_beyond(0, partial(called.append, 0))
    assert called == [0, 1, 1, 2, 0]


async def a_delete_wakes_what_waits(log: PartitionLog, harness: Harness) -> None:
    waiting = asyncio.create_task(error_of(log.wait_beyond(0)))
    await asyncio.sleep(0)
    await harness.engine.delete(PARTITION)
    error = await waiting
    assert isinstance(error, NotFoundError)
    assert PARTITION.topic in str(error)


async def a_close_wakes_what_waits(log: PartitionLog, harness: Harness) -> None:
    waiting = asyncio.create_task(error_of(log.wait_beyond(0)))
    await asyncio.sleep(0)
    await harness.engine.close()
    error = await waiting
    assert isinstance(error, UnavailableError)
    assert error.reason == "SHUTTING_DOWN"


LOG_CONTRACT: tuple[Rule, ...] = (
    a_fresh_log_is_empty,
    an_append_is_stamped_with_offset_and_time,
    the_records_are_kept_as_they_came,
    offsets_follow_the_order_of_the_calls,
    append_times_never_fall,
    the_expected_offset_is_accepted,
    an_unexpected_offset_is_refused_and_nothing_is_written,
    what_is_written_can_be_read_at_once,
    a_read_inside_a_batch_returns_the_whole_batch,
    a_read_returns_one_batch_however_large,
    a_read_stays_within_max_bytes,
    reading_on_meets_every_batch_once,
    a_read_at_the_high_watermark_is_empty,
    a_read_outside_the_bounds_names_them,
    find_takes_the_first_in_log_order,
    find_meets_each_record_of_a_long_log,
    find_never_answers_below_the_log_start,
    a_trim_raises_the_log_start,
    a_trim_below_the_log_start_changes_nothing,
    a_trim_beyond_the_high_watermark_is_refused,
    offsets_go_on_after_everything_was_trimmed,
    wait_beyond_returns_at_once_if_it_can,
    wait_beyond_returns_when_the_mark_has_passed,
    call_beyond_calls_once_when_the_mark_has_passed,
    a_delete_wakes_what_waits,
    a_close_wakes_what_waits,
)
