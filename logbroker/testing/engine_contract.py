"""The rules any engine must keep. Each is a function over a fresh log, named as a sentence.

    from logbroker.testing.engine_contract import CONTRACT
    from logbroker.testing.engine_harness import Harness

    @pytest.mark.parametrize("rule", CONTRACT, ids=lambda rule: rule.__name__)
    def test_the_engine_keeps_its_contract(rule):
        async def run():
            async with Harness(start_my_engine) as harness:
                await rule(await harness.open(), harness)
        asyncio.run(run())

`start_my_engine(clock, before)` starts an engine; `before`, when it is not None, is the
closed one whose partitions the new one must have.
"""

from logbroker.config import LogConfig
from logbroker.errors import NotFoundError, PreconditionError, UnavailableError
from logbroker.storage.engine import Bounds, PartitionLog
from logbroker.testing.engine_harness import (
    EVERYTHING,
    PARTITION,
    Harness,
    Rule,
    appended,
    batch_of,
    error_of,
    records_of,
    values_from,
)
from logbroker.testing.log_contract import LOG_CONTRACT


async def everything_is_there_after_reopening(log: PartitionLog, harness: Harness) -> None:
    values = [str(number) * 50 for number in range(100)]
    for value in values:
        await log.append(batch_of(value))
    before = log.bounds()
    log = await harness.reopen()
    assert log.bounds() == before
    assert await values_from(log, 0) == values
    assert (await log.append(batch_of("on"))).header.base_offset == 100


async def opened_again_it_is_the_same_log(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    again = await harness.open(config=LogConfig(retention_ms=1))
    assert again is log


async def partitions_do_not_mix(log: PartitionLog, harness: Harness) -> None:
    second_id = PARTITION._replace(partition=1)
    second = await harness.open(second_id)
    await log.append(batch_of("a"))
    await second.append(batch_of("b"))
    await second.append(batch_of("c"))
    assert (log.bounds().next_offset, second.bounds().next_offset) == (1, 2)
    assert sorted(harness.engine.partitions()) == [PARTITION, second_id]
    await harness.reopen()
    assert sorted(harness.engine.partitions()) == [PARTITION, second_id]


async def a_deleted_partition_is_gone(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    await harness.engine.delete(PARTITION)
    assert list(harness.engine.partitions()) == []
    for call in (log.read(0, 1), log.find(0), log.trim(0), log.wait_beyond(0)):
        assert isinstance(await error_of(call), NotFoundError)
    error = await error_of(appended(log, batch_of("b")))
    assert isinstance(error, NotFoundError)
    assert error.reason == "PARTITION_NOT_FOUND"
    await harness.engine.delete(PARTITION)  # and nothing happens


async def a_partition_made_anew_is_empty(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    await harness.engine.delete(PARTITION)
    second_id = PARTITION._replace(topic_id="another")
    second = await harness.open(second_id)
    assert second.bounds() == Bounds(0, 0, 0)
    await second.append(batch_of("b"))
    second = await harness.reopen(second_id)
    run = await second.read(0, EVERYTHING)
    assert [record.value for record in records_of(run.batches, second_id)] == [b"b"]


async def another_incarnation_is_not_opened(log: PartitionLog, harness: Harness) -> None:
    await log.append(batch_of("a"))
    other = PARTITION._replace(topic_id="another")
    error = await error_of(harness.open(other))
    assert isinstance(error, PreconditionError)
    await harness.engine.delete(other)
    assert await values_from(log, 0) == ["a"]


async def a_closed_engine_opens_nothing(log: PartitionLog, harness: Harness) -> None:
    await harness.engine.close()
    assert isinstance(await error_of(harness.open()), UnavailableError)
    assert isinstance(await error_of(log.read(0, 1)), UnavailableError)
    await harness.engine.close()  # and nothing happens


CONTRACT: tuple[Rule, ...] = (
    *LOG_CONTRACT,
    everything_is_there_after_reopening,
    opened_again_it_is_the_same_log,
    partitions_do_not_mix,
    a_deleted_partition_is_gone,
    a_partition_made_anew_is_empty,
    another_incarnation_is_not_opened,
    a_closed_engine_opens_nothing,
)
