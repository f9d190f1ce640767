"""C45: a producer that sends again: what was stored is stored once, and in order.

Between producer and broker stands a proxy that loses answers, loses requests, and cuts.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from signal import Signals

import grpc
import pytest

from cases.effort import effort
from cases.proxy import Proxy, Way
from cases.raw import produce_request
from cases.watching import becomes_true
from logbroker.client import Client, Producer
from logbroker.config import LimitsConfig
from logbroker.errors import OutcomeUnknownError, UnavailableError
from logbroker.testing.clock import ManualClock
from logbroker.testing.running_broker import BrokerProcess, running_broker
from logbroker.topic.topic import TopicSettings
from logbroker.v1 import produce_service_pb2 as pb
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import ProduceResult

RECORD_COUNT = 1_000
BATCH_RECORDS = 200
VALUES = [b"%d" % number for number in range(1, RECORD_COUNT + 1)]
BATCHES = [VALUES[at : at + BATCH_RECORDS] for at in range(0, RECORD_COUNT, BATCH_RECORDS)]
ABORTED = grpc.StatusCode.ABORTED.value[0]

pytestmark = pytest.mark.slow
both_kinds = pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data") as started:
        yield started


class Behind:
    """A producer behind a proxy, and a client that sees the broker directly."""

    def __init__(self, proxy: Proxy, direct: Client, producer: Producer) -> None:
        self.proxy = proxy
        self.direct = direct
        self.producer = producer

    async def wait_stored(self, count: int) -> None:
        async def are_stored() -> bool:
            found = await self.direct.admin.get_topic("numbers")
            return found.partitions[0].high_watermark >= count

        await becomes_true(are_stored, f"{count} records are stored")

    async def values(self) -> list[bytes | None]:
        async with self.direct.reader("numbers") as reader:
            return [record.value async for record in reader]


@asynccontextmanager
async def behind_a_proxy(
    address: str, *, idempotent: bool, delivery_timeout_ms: int = 30_000
) -> AsyncIterator[Behind]:
    async with (
        Proxy(address) as proxy,
        Client(address) as direct,
        Client(proxy.address) as client,
    ):
        await direct.admin.create_topic("numbers")
        producer = client.producer(
            "numbers", idempotent=idempotent, delivery_timeout_ms=delivery_timeout_ms
        )
        yield Behind(proxy, direct, producer)


def check_log(values: list[bytes | None], *, idempotent: bool) -> None:
    """Each record is there, in order; once, or in doubles that are whole batches sent again."""
    if idempotent:
        assert values == VALUES
        return
    assert list(dict.fromkeys(values)) == VALUES
    backwards = list(dict.fromkeys(reversed(values)))
    assert backwards == VALUES[::-1], "a batch that was sent again lies behind a later one"


@both_kinds
async def test_an_answer_lost_after_the_append_is_given_again(broker, idempotent):
    async with behind_a_proxy(broker.address, idempotent=idempotent) as setting:
        await (await setting.producer.send_many(BATCHES[0]))
        setting.proxy.lose(Way.TO_CLIENT)
        pending = [await setting.producer.send_many(batch) for batch in BATCHES[1:]]
        await setting.wait_stored(2 * BATCH_RECORDS)
        setting.proxy.cut()
        receipts = [receipt for each in pending for receipt in await each]
        check_log(await setting.values(), idempotent=idempotent)
        if idempotent:
            assert receipts[0].duplicate
            assert [receipt.base_offset for receipt in receipts] == [200, 400, 600, 800]
        else:
            assert len(await setting.values()) > RECORD_COUNT, "the lost answer's batch, again"
            assert not any(receipt.duplicate for receipt in receipts)


@both_kinds
async def test_a_connection_cut_before_the_batch_arrives_costs_nothing(broker, idempotent):
    async with behind_a_proxy(broker.address, idempotent=idempotent) as setting:
        for batch in BATCHES[:2]:
            await (await setting.producer.send_many(batch))
        setting.proxy.lose(Way.TO_BROKER)
        pending = [await setting.producer.send_many(batch) for batch in BATCHES[2:]]
        await becomes_true(lambda: setting.proxy.lost[Way.TO_BROKER] > 0, "the batch is sent")
        setting.proxy.cut()
        receipts = [receipt for each in pending for receipt in await each]
        assert await setting.values() == VALUES
        assert [receipt.base_offset for receipt in receipts] == [400, 600, 800]
        assert not any(receipt.duplicate for receipt in receipts)


@both_kinds
@pytest.mark.parametrize("end", [Signals.SIGKILL, Signals.SIGTERM])
async def test_a_broker_that_restarts_knows_what_it_had_stored(broker, idempotent, end):
    async with behind_a_proxy(broker.address, idempotent=idempotent) as setting:
        for batch in BATCHES[:3]:
            await (await setting.producer.send_many(batch))
        setting.proxy.lose(Way.TO_CLIENT)
        pending = [await setting.producer.send_many(batch) for batch in BATCHES[3:]]
        await setting.wait_stored(4 * BATCH_RECORDS)
        broker.send(end)
        setting.proxy.cut()
        await asyncio.to_thread(broker.wait)
        await asyncio.to_thread(broker.start)
        receipts = [receipt for each in pending for receipt in await each]
        check_log(await setting.values(), idempotent=idempotent)
        if idempotent:
            assert receipts[0].duplicate
            assert [receipt.base_offset for receipt in receipts] == [600, 800]


@both_kinds
@pytest.mark.parametrize("seed", range(effort(4, 60)))
async def test_cuts_at_any_byte_lose_nothing(seed, idempotent):
    random = Random(seed)
    async with (
        running_broker() as (address, _),
        behind_a_proxy(address, idempotent=idempotent) as setting,
    ):
        for batch in BATCHES:
            setting.proxy.cut_after(random.choice(list(Way)), random.randint(1, 500))
            parts = [batch[at : at + 10] for at in range(0, BATCH_RECORDS, 10)]
            pending = [await setting.producer.send_many(part) for part in parts]
            for each in pending:
                await each
        check_log(await setting.values(), idempotent=idempotent)
        assert setting.proxy.connection_count > 4, "it was cut"


@both_kinds
async def test_a_batch_that_was_sent_and_not_answered_in_time_is_outcome_unknown(
    broker, idempotent
):
    async with behind_a_proxy(
        broker.address, idempotent=idempotent, delivery_timeout_ms=1_000
    ) as setting:
        await (await setting.producer.send_many(BATCHES[0]))
        setting.proxy.lose(Way.TO_CLIENT)
        lost = await setting.producer.send_many(BATCHES[1])
        with pytest.raises(OutcomeUnknownError) as caught:
            await lost
        assert not caught.value.no_effect
        assert caught.value.reason == "OUTCOME_UNKNOWN"
        setting.proxy.cut()
        for batch in BATCHES[2:]:  # the same producer goes on
            await (await setting.producer.send_many(batch))
        check_log(await setting.values(), idempotent=idempotent)


@both_kinds
async def test_what_was_never_sent_is_no_unknown_outcome(broker, idempotent):
    async with behind_a_proxy(
        broker.address, idempotent=idempotent, delivery_timeout_ms=1_000
    ) as setting:
        await (await setting.producer.send_many(BATCHES[0]))
        broker.kill()
        setting.proxy.cut()
        with pytest.raises((OutcomeUnknownError, UnavailableError)):  # sent before it noticed?
            await (await setting.producer.send_many(BATCHES[1]))
        with pytest.raises(UnavailableError):
            await (await setting.producer.send_many(BATCHES[2]))


async def test_a_sequence_gap_is_retriable_and_the_producer_id_stays_good():
    async with (
        running_broker() as (address, broker),
        grpc.aio.insecure_channel(address) as channel,
    ):
        await broker.create_topic("numbers", 1, TopicSettings())
        stub = ProduceServiceStub(channel)
        producer_id = (await stub.CreateProducer(pb.CreateProducerRequest())).producer_id
        call = stub.Produce()

        async def send(sequence: int) -> ProduceResult:
            request = produce_request(
                "numbers", [b"v"], producer_id=producer_id, base_sequence=sequence
            )
            await call.write(request)
            response = await call.read()
            (result,) = response.results
            return result

        assert (await send(0)).receipt.base_offset == 0
        gap = await send(2)
        assert (gap.error.reason, gap.error.code) == ("SEQUENCE_GAP", ABORTED)
        assert gap.error.details["expected_sequence"] == "1"
        assert (await send(1)).receipt.base_offset == 1
        assert (await send(2)).receipt.base_offset == 2, "the same stream, the same producer"
        repeated = await send(1)
        assert (repeated.receipt.base_offset, repeated.receipt.duplicate) == (1, True)
        await call.done_writing()


async def test_a_producer_that_the_broker_has_forgotten_goes_on_without_being_made_anew():
    clock = ManualClock()
    limits = LimitsConfig(producer_retention_ms=60_000)
    async with (
        running_broker(clock=clock, limits=limits) as (address, _),
        Client(address) as client,
    ):
        await client.admin.create_topic("numbers")
        producer = client.producer("numbers")
        await producer.publish(b"1")
        await clock.advance(120_000)
        for number in range(2, 20):
            await producer.publish(b"%d" % number)
        async with client.reader("numbers") as reader:
            assert [record.value async for record in reader] == VALUES[:19]
