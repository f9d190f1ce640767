"""Many answers at once: few records in the journal, a turn for others, each answered by itself."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from logbroker.broker.membership import MemberSpec
from logbroker.broker.settle import RUN_ACKNOWLEDGEMENTS, RUN_OTHERS, Settlement
from logbroker.errors import ConflictError, ExhaustedError, InvalidError
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings, Order

from .brokers import batch_of, next_delivery, topic_on, values_of

ACK, RETRY, REJECT, RELEASE = Cause.ACKNOWLEDGE, Cause.RETRY, Cause.REJECT, Cause.RELEASE


@asynccontextmanager
async def leased(count, order=Order.NONE, *, keys=None):
    """Yields a broker, and a member with the token of its lease on so many records."""
    async with topic_on() as broker:
        values = [b"%d" % number for number in range(count)]
        await broker.produce("a", "", 0, batch_of(*values, keys=keys))
        settings = GroupSettings(order=order, retry=RetryPolicy(max_failures=2))
        spec = MemberSpec(group="g", topics=("a",), settings=settings, max_records=10 * count)
        member = await broker.join(spec)
        delivery = await next_delivery(broker, member)
        assert delivery.runs[-1].end == count
        yield broker, member, delivery.token
        await broker.leave(member, has_vanished=False)


def singles(token, cause, *offsets, **fields):
    """Returns an answer for each record."""
    return [Settlement(token, offset, offset + 1, cause, **fields) for offset in offsets]


def reasons(results):
    """Returns the reason of each result's error, None where there is none."""
    return [result.error and result.error.reason for result in results]


def journal_of(broker):
    """Returns the log of the groups' journal."""
    [journal] = [log for key, log in broker.engine._logs.items() if key[0] == "__groups"]
    return journal


@pytest.mark.parametrize("order", [Order.NONE, Order.KEY])
@pytest.mark.parametrize(
    ("cause", "at_once"),
    [(ACK, RUN_ACKNOWLEDGEMENTS), (RETRY, RUN_OTHERS), (RELEASE, RUN_OTHERS)],
)
async def test_many_answers_are_few_appends_to_the_journal_and_others_have_a_turn(
    order, cause, at_once
):
    count = 3 * at_once
    keys = [b"%d" % number for number in range(count)]
    async with leased(count, order, keys=keys) as (broker, _, token):
        journal, appends = journal_of(broker), []
        append = journal.append

        def noting(batch, **kwargs):
            appends.append(batch)
            return append(batch, **kwargs)

        journal.append = noting
        turns = []

        async def other():
            while True:
                turns.append(len(appends))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        results = await broker.settle("g", singles(token, cause, *range(count)))
        task.cancel()
        assert reasons(results) == [None] * count
        assert len(appends) == (0 if cause is RELEASE else 3)
        assert len(turns) > 3


async def test_each_answer_of_a_run_has_its_own_result():
    async with leased(10) as (broker, _, token):
        results = await broker.settle(
            "g",
            [
                *singles(token, ACK, 0, 1),
                *singles(token, RETRY, 1, 2),
                *singles(token + 7, ACK, 3),
                *singles(token, None, 3),
                *singles(token, ACK, 2, 4),
                *singles(token, RETRY, 4, 20),
                *singles(token, RETRY, 5, delay_ms=-1),
                Settlement(token, 6, 6, RETRY),
                *singles(token, REJECT, 7, reason="bad"),
                *singles(token, RELEASE, 8),
                *singles(token, ACK, 1),
            ],
        )
        assert reasons(results) == [
            *(None, None),
            *("LEASE_LOST", None),
            "LEASE_LOST",
            "INVALID_ARGUMENT",
            *("LEASE_LOST", None),
            *("LEASE_LOST", "LEASE_LOST"),
            "INVALID_ARGUMENT",
            "INVALID_OFFSET",
            None,
            None,
            None,
        ]
        assert results[3].error is None
        assert isinstance(results[2].error, ConflictError)
        assert isinstance(results[5].error, InvalidError)
        assert await values_of(broker, "a.g.dlq") == [b"7"]
        [told] = [one for one in await broker.groups.progress("g") if one.topic == "a"]
        assert (told.progress.committed, told.progress.waiting) == (2, 1)


async def test_in_partition_order_a_failure_takes_back_what_is_answered_behind_it():
    async with leased(6, Order.PARTITION) as (broker, _, token):
        results = await broker.settle(
            "g",
            [
                *singles(token, ACK, 0, 3),
                *singles(token, RETRY, 1),
                *singles(token, ACK, 2, 4),
            ],
        )
        assert reasons(results) == [None, None, None, "LEASE_LOST", "LEASE_LOST"]
        [told] = await broker.groups.progress("g")
        assert told.progress.committed == 1


async def test_a_journal_that_refuses_refuses_each_answer_and_changes_nothing():
    async with leased(4) as (broker, _, token):
        journal = journal_of(broker)
        append = journal.append

        def refusing(batch, **kwargs):
            raise ExhaustedError("DISK_FULL", "no room")

        journal.append = refusing
        answers = [*singles(token, ACK, 0), *singles(token, RETRY, 1)]
        assert reasons(await broker.settle("g", answers)) == ["DISK_FULL", "DISK_FULL"]
        journal.append = append
        assert reasons(await broker.settle("g", answers)) == [None, None]
