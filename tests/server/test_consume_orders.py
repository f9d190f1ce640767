"""The orders `key` and `none`, and calls without a stream."""

from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1 import group_pb2

from .calls import refusal, serving, within_time
from .members import ACK, REJECT, RETRY, Delivered, member_of, member_on, publish

KEY, NONE = group_pb2.ORDER_KEY, group_pb2.ORDER_NONE


async def test_records_of_a_key_come_one_after_another_and_others_do_not_wait():
    clock = ManualClock()
    keys = [b"A", b"B"] * 3
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, order=KEY, retry_initial_ms=1_000, max_failures=3) as member,
    ):
        await publish(calls, *(b"%d" % number for number in range(6)), keys=keys)
        first = await member.delivery()
        assert first.records == [(0, b"0"), (1, b"1")]
        await member.settle(first, RETRY, 0, 1)
        await member.settle(first, ACK, 1, 2)
        for offset in (3, 5):
            delivered = await member.delivery()
            assert delivered.offsets == [offset]
            await member.settle(delivered)
        await clock.advance(1_000)
        for offset in (0, 2, 4):
            delivered = await member.delivery()
            assert delivered.offsets == [offset]
            await member.settle(delivered)


async def test_two_members_of_a_key_ordered_group_never_hold_one_key_together():
    async with (
        serving(partition_count=1) as calls,
        member_on(calls, order=KEY, limits=1) as one,
        member_on(calls, order=KEY, limits=1) as two,
    ):
        await publish(calls, b"0", b"1", b"2", keys=[b"A", b"A", b"B"])
        held = {each.offsets[0] for each in (await one.delivery(), await two.delivery())}
        assert held == {0, 2}


async def test_without_an_order_only_the_record_that_failed_waits():
    clock = ManualClock()
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, order=NONE, retry_initial_ms=1_000) as member,
    ):
        await publish(calls, b"0", b"1", b"2")
        first = await member.delivery()
        await member.settle(first, RETRY, 1, 2)
        assert (await member.settle(first, ACK, 0, 1)).committed_offset == 1
        assert (await member.settle(first, ACK, 2, 3)).committed_offset == 1
        await clock.advance(1_000)
        again = await member.delivery()
        assert (again.records, again.numbers, again.failures) == ([(1, b"1")], [2], [1])
        assert (await member.settle(again)).committed_offset == 3


async def test_members_of_a_group_without_an_order_share_a_partition():
    async with (
        serving(partition_count=1) as calls,
        member_on(calls, order=NONE, limits=2) as one,
        member_on(calls, order=NONE, limits=2) as two,
    ):
        await publish(calls, b"0", b"1", b"2", b"3")
        offsets = (await one.delivery()).offsets + (await two.delivery()).offsets
        assert sorted(offsets) == [0, 1, 2, 3]


async def test_a_worker_without_a_stream_leases_settles_and_extends():
    clock = ManualClock()
    async with serving(partition_count=1, clock=clock) as calls:
        await publish(calls, b"0", b"1", b"2")
        request = pb.LeaseRequest(group="g", topics=["a"], max_records=2)
        first = Delivered(await calls.consume.Lease(request))
        assert (first.records, first.delivery.lease_ms) == ([(0, b"0"), (1, b"1")], 30_000)
        nothing = await calls.consume.Lease(request)
        assert not nothing.HasField("delivery")
        extension = pb.Extension(token=first.token, lease_ms=60_000)
        extended = await calls.consume.Extend(pb.ExtendRequest(group="g", extensions=[extension]))
        assert not extended.results[0].HasField("error")
        await clock.advance(50_000)
        settlement = pb.Settlement(token=first.token, first_offset=0, end_offset=2, outcome=ACK)
        settlements = pb.SettleRequest(group="g", settlements=[settlement])
        settled = await calls.consume.Settle(settlements)
        assert [each.committed_offset for each in settled.results] == [2]
        second = Delivered(await calls.consume.Lease(request))
        assert second.offsets == [2]


async def test_a_lease_call_waits_for_a_record():
    async with serving(partition_count=1) as calls:
        request = pb.LeaseRequest(group="g", topics=["a"], wait_ms=10_000)
        call = calls.consume.Lease(request)
        await publish(calls, b"0")
        assert Delivered(await within_time(call)).offsets == [0]


async def test_each_settlement_is_answered_on_its_own():
    async with serving(partition_count=1) as calls, member_on(calls, order=NONE) as member:
        await publish(calls, b"0", b"1", b"2")
        first = await member.delivery()
        settlements = [
            pb.Settlement(token=token, first_offset=at, end_offset=end, outcome=outcome)
            for token, at, end, outcome in [
                (first.token, 0, 1, ACK),
                (first.token + 1, 1, 2, ACK),
                (first.token, 1, 2, 99),
                (first.token, 2, 2, ACK),
                (first.token, 1, 3, ACK),
            ]
        ]
        request = pb.ConsumeRequest(settle=pb.Settlements(settlements=settlements))
        await member.call.write(request)
        await member.until(lambda: len(member.settled) == 5)
        reasons = [each.error.reason for each in member.settled]
        assert reasons == ["", "LEASE_LOST", "INVALID_ARGUMENT", "INVALID_OFFSET", ""]
        assert member.settled[-1].committed_offset == 3


async def test_a_member_that_expects_another_order_is_refused():
    async with serving(partition_count=1) as calls, member_on(calls, order=NONE):
        call = calls.consume.Consume()
        opening = pb.OpenConsume(group="g", topics=["a"])
        opening.settings.order = KEY
        await call.write(pb.ConsumeRequest(open=opening))
        assert (await refusal(call))[1] == "GROUP_IN_USE"


async def test_a_rejected_record_is_a_dead_letter_with_its_reason():
    async with serving(partition_count=1) as calls, member_on(calls) as member:
        await publish(calls, b"0", b"1", keys=[b"k", b"l"])
        first = await member.delivery()
        assert (await member.settle(first, REJECT, 0, 1, reason="bad")).committed_offset == 1
        reader = await member_of(calls, "reader", topics=["a.g.dlq"])
        response = None
        while response is None or not response.HasField("delivery"):
            response = await within_time(reader.call.read())
        [batch] = response.batches
        from logbroker.v1.records_pb2 import Records

        records = Records.FromString(batch.records)
        headers = {header.name: header.value for header in records.headers[0].headers}
        assert (list(records.values), list(records.keys)) == ([b"0"], [b"k"])
        assert headers["logbroker-dead-letter-reason"] == b"bad"
        assert headers["logbroker-dead-letter-offset"] == b"0"
        assert headers["logbroker-dead-letter-group"] == b"g"
        reader.vanish()


async def test_a_record_that_fails_too_often_is_one_dead_letter_and_its_key_goes_on():
    clock = ManualClock()
    settings = {"retry_initial_ms": 1_000, "max_failures": 3}
    async with (
        serving(partition_count=1, clock=clock) as calls,
        member_on(calls, order=KEY, **settings) as member,
    ):
        await publish(calls, b"0", b"1", keys=[b"A", b"A"])
        for failures in range(3):
            delivered = await member.delivery()
            assert (delivered.offsets, delivered.failures) == ([0], [failures])
            await member.settle(delivered, RETRY)
            await clock.advance(10_000)
        assert (await member.delivery()).offsets == [1]
        bounds = calls.broker.partition_statuses(calls.broker.get_topic("a.g.dlq"))
        assert bounds[0].high_watermark == 1
