"""Produce over gRPC: batches in, receipts and refusals out, in their order."""

import asyncio
import random

import grpc
import pytest

from logbroker.errors import UnavailableError
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.produce_service_pb2 import (
    CreateProducerRequest,
    ProduceRequest,
    ProduceResponse,
    PublishRequest,
)
from logbroker.v1.record_pb2 import DURABILITY_SYNCED, Record
from logbroker.v1.records_pb2 import Header, Records
from logbroker.v1.stored_batch_pb2 import StoredBatch
from logbroker.v1.topic_service_pb2 import DeleteTopicRequest

from .calls import SMALL, ending, refusal, request, serving, stored, until, within_time
from .producing import answers_to, high_watermarks, log_of, slow


async def test_a_batch_gets_a_receipt():
    async with serving() as calls:
        [result] = await answers_to(calls, request(stored(b"1", b"2"), partition=1))
        receipt = result.receipt
        assert (receipt.topic, receipt.partition, receipt.base_offset) == ("a", 1, 0)
        assert (receipt.record_count, receipt.durability) == (2, DURABILITY_SYNCED)
        assert len(receipt.topic_id) == 24
        assert receipt.append_time_ms > 1_700_000_000_000


@pytest.mark.parametrize("engine", [None, slow], ids=["at once", "later"])
async def test_answers_come_in_the_order_of_the_batches_good_and_bad(engine):
    async with serving(engine=engine and engine()) as calls:
        batches = [stored(b"%d" % at) for at in range(200)]
        for at in range(0, 200, 3):
            batches[at].records_crc ^= 1
        requests, at, seeded = [], 0, random.Random(7)
        while at < 200:
            count = seeded.randint(1, 9)
            requests.append(request(*batches[at : at + count]))
            at += count
        answering = asyncio.create_task(answers_to(calls, *requests))
        if engine:
            log = await log_of(calls)
            while not answering.done():
                await asyncio.sleep(0)
                log.flush(seeded.randint(0, 3))
        results = await within_time(answering)
        kinds = [result.WhichOneof("result") for result in results]
        assert kinds == ["error" if at % 3 == 0 else "receipt" for at in range(200)]
        offsets = [result.receipt.base_offset for result in results if result.receipt.topic]
        assert offsets == list(range(len(offsets)))
        assert {result.error.reason for result in results if result.error.code} == {"BAD_BATCH"}


async def test_a_refused_batch_is_answered_only_when_those_before_it_are():
    async with serving(engine=slow()) as calls:
        stream = calls.produce.Produce()
        await stream.write(request(stored(b"good")))
        await stream.write(request(StoredBatch()))
        log = await log_of(calls)
        await until(lambda: calls.broker.budget.taken and log.next_offset == 1)
        log.flush()
        results = []
        while len(results) < 2:
            results += (await within_time(stream.read())).results
        assert [result.WhichOneof("result") for result in results] == ["receipt", "error"]
        await stream.done_writing()
        assert await within_time(stream.read()) is grpc.aio.EOF


def lying():
    """Returns batches that lie, each with the reason it is refused for."""
    crc, count, attributes, codec = (stored(b"x") for _ in range(4))
    crc.records_crc ^= 1
    count.record_count = 2
    attributes.attributes, codec.attributes = 64, 5
    long = stored(*[b"x" * 500] * 140)
    return [
        (StoredBatch(), "BAD_BATCH"),
        (crc, "BAD_BATCH"),
        (count, "BAD_BATCH"),
        (attributes, "BAD_BATCH"),
        (codec, "BAD_BATCH"),
        (StoredBatch(record_count=2**32 - 1), "BAD_BATCH"),
        (stored(b"x" * 1_001), "RECORD_TOO_LARGE"),
        (long, "BATCH_TOO_LARGE"),
        (stored(b"x", producer_id=-1), "INVALID_ARGUMENT"),
        (stored(b"x", producer_id=5, base_sequence=3), "SEQUENCE_GAP"),
    ]


async def test_a_batch_that_lies_is_refused_alone_and_changes_nothing():
    async with serving(limits=SMALL) as calls:
        for batch, reason in lying():
            good, bad = await answers_to(calls, request(stored(b"x"), batch))
            assert good.receipt.record_count == 1
            assert (bad.error.reason, bad.error.code in (3, 10)) == (reason, True)
        assert await high_watermarks(calls) == [len(lying()), 0]
        assert sum(calls.broker.error_counts.values()) == len(lying())


@pytest.mark.parametrize(
    "fields, code, reason",
    [
        ({"topic": "b"}, 5, "TOPIC_NOT_FOUND"),
        ({"topic": "../b"}, 3, "INVALID_NAME"),
        ({"topic": ""}, 3, "INVALID_NAME"),
        ({"topic": "é" * 60_000}, 3, "INVALID_NAME"),
        ({"topic_id": "x" * 300_000}, 9, "TOPIC_RECREATED"),
        ({"partition": 2}, 5, "PARTITION_NOT_FOUND"),
        ({"partition": -(2**31)}, 5, "PARTITION_NOT_FOUND"),
        ({"expected_offset": -1}, 3, "INVALID_OFFSET"),
        ({"expected_offset": 1}, 9, "UNEXPECTED_OFFSET"),
    ],
)
async def test_a_bad_place_is_refused_alone_and_changes_nothing(fields, code, reason):
    async with serving() as calls:
        bad = request(stored(b"x"), **{"topic": "a", **fields})
        [one, two] = await answers_to(calls, bad, request(stored(b"y"), partition=1))
        assert (one.error.code, one.error.reason) == (code, reason)
        assert one.ByteSize() < 8_000, "an error is never as long as what was sent"
        assert two.receipt.base_offset == 0
        assert await high_watermarks(calls) == [0, 1]


NOISE = [b"\xff", b"\x0a\x05a", b"\x0a\xff\xff\xff\xff\x7f", bytes(range(256)) * 100]


@pytest.mark.parametrize("noise", NOISE)
async def test_bytes_that_are_no_request_end_the_stream_when_all_before_is_answered(noise):
    async with serving(engine=slow()) as calls:
        raw = calls.channel.stream_stream("/logbroker.v1.ProduceService/Produce")
        stream = raw()
        await stream.write(request(stored(b"good")).SerializeToString())
        await stream.write(noise)
        log = await log_of(calls)
        await until(lambda: log.next_offset == 1)
        log.flush()
        answer = ProduceResponse.FromString(await within_time(stream.read()))
        assert answer.results[0].receipt.base_offset == 0
        assert await refusal(stream) == ("INVALID_ARGUMENT", "INVALID_ARGUMENT")


async def test_a_stream_of_noise_never_crashes_the_broker():
    seeded = random.Random(11)
    good = request(stored(b"x"), stored(b"y")).SerializeToString()
    async with serving() as calls:
        raw = calls.channel.stream_stream("/logbroker.v1.ProduceService/Produce")
        for _ in range(60):
            noisy = bytearray(good)
            for _ in range(seeded.randint(1, 4)):
                noisy[seeded.randrange(len(noisy))] = seeded.randrange(256)
            code, info, _ = await ending(raw(iter([bytes(noisy), b""])))
            assert code in (grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT), info.reason


async def test_a_request_without_entries_is_passed_over():
    async with serving(engine=slow()) as calls:
        stream = calls.produce.Produce()
        await stream.write(ProduceRequest())
        await stream.write(request(stored(b"x")))
        await stream.write(ProduceRequest())
        log = await log_of(calls)
        await until(lambda: log.next_offset == 1)
        log.flush()
        assert len((await within_time(stream.read())).results) == 1
        await stream.done_writing()
        assert await within_time(stream.read()) is grpc.aio.EOF


async def test_a_repeated_batch_is_told_to_be_one():
    async with serving() as calls:
        producer_id = (await calls.produce.CreateProducer(CreateProducerRequest())).producer_id
        batch = stored(b"1", b"2", producer_id=producer_id)
        one, two = await answers_to(calls, request(batch), request(batch))
        assert (one.receipt.duplicate, two.receipt.duplicate) == (False, True)
        assert one.receipt.base_offset == two.receipt.base_offset == 0
        assert await high_watermarks(calls) == [2, 0]


async def test_records_are_published_and_fetched_as_they_are():
    async with serving() as calls:
        headers = [Header(name="k", value=b"1"), Header(name="k"), Header(name="", value=b"")]
        record = Record(key=b"", headers=headers, timestamp_ms=-5, partition=1)
        answer = await calls.produce.Publish(PublishRequest(topic="a", records=[record]))
        assert answer.results[0].receipt.partition == 1
        async for response in calls.fetch.Fetch(FetchRequest(topic="a", partition=1)):
            for batch in response.batches:
                found = Records.FromString(batch.records)
                assert (list(found.keys), list(found.null_values)) == ([b""], [0])
                assert list(found.timestamps_ms) == [-5]
                assert list(found.headers[0].headers) == headers


@pytest.mark.parametrize(
    "publish, code, reason",
    [
        ({}, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ({"records": [Record()], "topic": "b"}, "NOT_FOUND", "TOPIC_NOT_FOUND"),
        ({"records": [Record()], "topic": "/"}, "INVALID_ARGUMENT", "INVALID_NAME"),
        ({"records": [Record()], "topic_id": "o"}, "FAILED_PRECONDITION", "TOPIC_RECREATED"),
        ({"records": [Record()], "partition": -1}, "NOT_FOUND", "PARTITION_NOT_FOUND"),
        ({"records": [Record(partition=9)]}, "NOT_FOUND", "PARTITION_NOT_FOUND"),
        ({"records": [Record()], "expected_offset": 7, "partition": 0}, "FAILED_PRECONDITION",
         "UNEXPECTED_OFFSET"),
        ({"records": [Record(value=bytes(1_001))]}, "INVALID_ARGUMENT", "RECORD_TOO_LARGE"),
        ({"records": [Record()] * 10_001}, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ({"records": [Record(headers=[Header()] * 4)]}, "INVALID_ARGUMENT", "TOO_MANY_HEADERS"),
    ],
)  # fmt: skip
async def test_a_bad_publish_is_refused_and_changes_nothing(publish, code, reason):
    async with serving(limits=SMALL) as calls:
        call = calls.produce.Publish(PublishRequest(**{"topic": "a", **publish}))
        assert await refusal(call) == (code, reason)
        assert await high_watermarks(calls) == [0, 0]


async def test_producer_ids_differ():
    async with serving() as calls:
        made = [await calls.produce.CreateProducer(CreateProducerRequest()) for _ in range(5)]
        assert len({answer.producer_id for answer in made}) == 5


async def test_a_deleted_topic_is_not_made_again_by_those_who_write_to_it():
    async with serving() as calls:
        stream = calls.produce.Produce()
        await stream.write(request(stored(b"x")))
        assert (await within_time(stream.read())).results[0].receipt.topic == "a"
        await calls.topics.DeleteTopic(DeleteTopicRequest(topic="a"))
        await stream.write(request(stored(b"x")))
        assert (await within_time(stream.read())).results[0].error.reason == "TOPIC_NOT_FOUND"
        assert calls.broker.list_topics(0, "") == ([], "")
        stream.cancel()


async def test_an_error_nobody_foresaw_is_a_fault_that_is_logged_and_told_apart():
    async with serving(fault_count=1) as calls:
        log = await log_of(calls)
        log.append = lambda batch, **_: 1 / 0
        publish = PublishRequest(topic="a", records=[Record(partition=0)])
        assert await refusal(calls.produce.Publish(publish)) == ("INTERNAL", "BROKER_FAULT")
        [logged] = [entry for entry in calls.logs if entry["event"] == "broker fault"]
        assert isinstance(logged["exc_info"], ZeroDivisionError)


async def test_a_failed_disk_is_told_in_the_answer():
    async with serving(engine=slow()) as calls:
        log = await log_of(calls)
        answering = asyncio.create_task(answers_to(calls, request(stored(b"x"), stored(b"y"))))
        await until(lambda: log.next_offset == 2)
        log.fail()
        results = await within_time(answering)
        assert [result.error.reason for result in results] == ["STORAGE_FAILED"] * 2
        assert UnavailableError.may_retry
        assert not UnavailableError.no_effect
