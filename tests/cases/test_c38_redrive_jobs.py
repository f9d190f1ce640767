"""C38: a redrive as a job of a real broker: what it takes, how fast, and through a kill -9."""

import pytest
from server.calls import refusal
from server.members import ACK, REJECT, member_of, member_on, publish

from cases.grouped import calls_to, letters_of, make_topic, settle_each
from cases.watching import becomes_true
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_pb2
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.records_pb2 import Records

pytestmark = pytest.mark.slow

COUNT = 60
NONE = group_pb2.ORDER_NONE
OFFSETS = list(range(COUNT))


@pytest.fixture
def broker(tmp_path):
    with BrokerProcess(tmp_path / "data") as process:
        yield process


def value_of(offset: int) -> bytes:
    return b"%d" % offset


async def make_letters(calls, partition_count: int = 1) -> None:
    """Makes COUNT dead letters; of every third one the key is `third`, of the odd the reason."""
    await make_topic(calls, partition_count=partition_count)
    keys = [b"third" if at % 3 == 0 else b"other" for at in OFFSETS]
    await publish(calls, *map(value_of, OFFSETS), keys=keys)
    async with member_on(calls, order=NONE) as member:
        for held in await member.take(COUNT):
            for offset in held.offsets:
                reason = "odd one" if offset % 2 else "even one"
                await member.settle(held, REJECT, offset, offset + 1, reason=reason)


def which(**fields) -> dlq.DeadLetterFilter:
    return dlq.DeadLetterFilter(**{"group": "g", "topic": "a", **fields})


async def start(calls, rate: float = 0, dry_run: bool = False, **fields) -> dlq.Redrive:
    request = dlq.StartRedriveRequest(
        filter=which(**fields), records_per_second=rate, dry_run=dry_run
    )
    return (await calls.dead_letters.StartRedrive(request)).redrive


async def look(calls, redrive_id: str) -> dlq.Redrive:
    request = dlq.GetRedriveRequest(redrive_id=redrive_id)
    return (await calls.dead_letters.GetRedrive(request)).redrive


async def ended(calls, redrive_id: str) -> dlq.Redrive:
    """Returns the redrive once it does not run any more."""

    async def has_ended() -> bool:
        return (await look(calls, redrive_id)).state != "running"

    await becomes_true(has_ended, "the redrive has ended", within_s=60)
    return await look(calls, redrive_id)


async def come(calls, count: int, outcome=ACK) -> list[int]:
    """Returns what comes to the group next, so many records, and settles it."""
    async with member_on(calls, order=NONE) as member:
        found: list[int] = []
        for held in await member.take(count):
            found += [int(value) for value in held.values]
            await settle_each(member, held, outcome)
        return sorted(found)


async def test_c38_each_filter_is_exact_counted_first_and_told_of_afterwards(broker):
    async with calls_to(broker.address) as calls:
        await make_letters(calls)
        letters = await letters_of(calls, limit=COUNT)
        middle_ms = letters[30].dead_lettered_ms
        later = [one.source_offset for one in letters if one.dead_lettered_ms >= middle_ms]
        odd, third = OFFSETS[1::2], OFFSETS[::3]
        steps = [
            ({"first_offset": 10, "end_offset": 20}, OFFSETS[10:20]),
            ({"reason_contains": "odd", "limit": 3}, [1, 3, 5]),
            ({"key": b"third", "end_offset": 30}, [at for at in third if at < 30]),
            ({"from_ms": middle_ms}, later),
            ({"until_ms": middle_ms, "reason_contains": "odd one"}, [at for at in odd if at < 30]),
            ({"partition": 0}, OFFSETS),
        ]
        gone: set[int] = set()
        for fields, meant in steps:
            expected = [at for at in meant if at not in gone]
            if "limit" in fields:
                expected = expected[: fields["limit"]]
            assert (await start(calls, dry_run=True, **fields)).selected_count == len(expected)
            started = await start(calls, **fields)
            assert started.filter == which(**fields)
            if expected:
                assert await come(calls, len(expected)) == expected, fields
            done = await ended(calls, started.redrive_id)
            counts = (done.state, done.selected_count, done.redriven_count, done.resolved_count)
            assert counts == ("done", *[len(expected)] * 3)
            gone |= set(expected)
        assert gone == set(OFFSETS)
        assert not await letters_of(calls)


async def test_c38_a_redrive_goes_on_after_a_kill_where_it_was(broker):
    async with calls_to(broker.address) as calls:
        await make_letters(calls)
        started = await start(calls, rate=10, reason_contains="odd one")

        async def has_begun() -> bool:
            return (await look(calls, started.redrive_id)).redriven_count >= 3

        await becomes_true(has_begun, "some are redriven")
        before = await look(calls, started.redrive_id)
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        now = await look(calls, started.redrive_id)
        assert before.redriven_count <= now.redriven_count <= COUNT // 2
        assert (now.filter, now.records_per_second) == (before.filter, 10)
        call = calls.dead_letters.StartRedrive(dlq.StartRedriveRequest(filter=which()))
        assert await refusal(call) == ("ABORTED", "REDRIVE_RUNNING")
        assert await come(calls, COUNT // 2) == OFFSETS[1::2], "each of them, and once"
        done = await ended(calls, started.redrive_id)
        assert (done.redriven_count, done.resolved_count) == (COUNT // 2, COUNT // 2)
        assert {one.redrives for one in await letters_of(calls)} == {0}
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        assert await look(calls, started.redrive_id) == done, "what became of it stays known"
        [listed] = (
            await calls.dead_letters.ListRedrives(dlq.ListRedrivesRequest(group="g"))
        ).redrives
        assert listed == done


async def test_c38_a_cancelled_redrive_stays_so_and_another_may_begin(broker):
    async with calls_to(broker.address) as calls:
        await make_letters(calls)
        started = await start(calls, rate=1)
        request = dlq.CancelRedriveRequest(redrive_id=started.redrive_id)
        cancelled = (await calls.dead_letters.CancelRedrive(request)).redrive
        assert cancelled.state == "cancelled"
        assert cancelled.ended_ms >= cancelled.started_ms
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        again = await look(calls, started.redrive_id)
        assert (again.state, again.redriven_count) == ("cancelled", cancelled.redriven_count)
        rest = await start(calls)
        assert rest.selected_count == COUNT - cancelled.redriven_count
        assert await come(calls, COUNT) == OFFSETS
        unknown = dlq.CancelRedriveRequest(redrive_id="nope")
        call = calls.dead_letters.CancelRedrive(unknown)
        assert await refusal(call) == ("NOT_FOUND", "REDRIVE_NOT_FOUND")


async def test_c38_what_fails_again_is_counted_and_not_taken_up_by_the_same_redrive(broker):
    async with calls_to(broker.address) as calls:
        await make_letters(calls)
        started = await start(calls, end_offset=10)
        assert await come(calls, 10, REJECT) == OFFSETS[:10]
        done = await ended(calls, started.redrive_id)
        assert (done.redriven_count, done.parked_again_count, done.resolved_count) == (10, 10, 0)
        redrives = [one.redrives for one in await letters_of(calls)]
        assert redrives == [1] * 10 + [0] * 50
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        assert [one.redrives for one in await letters_of(calls)] == redrives
        assert (await look(calls, started.redrive_id)).parked_again_count == 10


async def test_c38_resolving_and_copying_are_exact_and_durable(broker):
    async with calls_to(broker.address) as calls:
        await make_letters(calls, partition_count=2)
        await make_topic(calls, "b")
        copy = dlq.CopyDeadLettersRequest(
            filter=which(reason_contains="odd", limit=2), to_topic="b", dry_run=True
        )
        assert (await calls.dead_letters.CopyDeadLetters(copy)).count == 2
        copy.dry_run = False
        assert (await calls.dead_letters.CopyDeadLetters(copy)).count == 2
        copied = await calls.fetch.Fetch(FetchRequest(topic="b", partition=0, offset=0)).read()
        records = [Records.FromString(batch.records) for batch in copied.batches]
        assert [value for one in records for value in one.values] == [b"1", b"3"]
        names = [h.name for one in records for row in one.headers for h in row.headers]
        assert not [name for name in names if "dead-letter" in name]
        resolve = dlq.ResolveDeadLettersRequest(filter=which(key=b"third"), dry_run=True)
        assert (await calls.dead_letters.ResolveDeadLetters(resolve)).count == 20
        resolve.dry_run = False
        assert (await calls.dead_letters.ResolveDeadLetters(resolve)).count == 20
        assert (await calls.dead_letters.ResolveDeadLetters(resolve)).count == 0
        broker.kill()
    broker.start()
    async with calls_to(broker.address) as calls:
        left = {one.source_offset for one in await letters_of(calls)}
        assert left == set(OFFSETS) - set(OFFSETS[::3])
        member = await member_of(calls, order=NONE)
        await start(calls, limit=1)
        assert (await member.delivery()).values == [b"1"]
