"""C46: same key, same partition, whoever sends it: CRC-32 of its bytes, as the vectors say."""

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import grpc
import pytest

from cases.commands import logbroker, output_of
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.errors import NotFoundError
from logbroker.record.partitioner import partition_of
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage

VECTORS_FILE = Path(__file__).parents[1] / "golden" / "partitions.json"
VECTORS = {
    bytes.fromhex(vector["key_hex"]): vector["partition"]
    for vector in json.loads(VECTORS_FILE.read_text())
}
PARTITION_COUNT = 12
KEYS = list(VECTORS)
NUMBERS = count()

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("c46") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(server: str) -> str:
    """The name of a new topic of 12 partitions."""
    name = f"topic-{next(NUMBERS)}"
    with BlockingClient(server) as client:
        client.admin.create_topic(name, PARTITION_COUNT)
    return name


def partitions_of_keys(server: str, topic: str) -> dict[bytes | None, set[int]]:
    found: dict[bytes | None, set[int]] = {}
    with BlockingClient(server) as client, client.reader(topic) as reader:
        for record in reader:
            found.setdefault(record.key, set()).add(record.partition)
    return found


def expected() -> dict[bytes | None, set[int]]:
    return {key: {partition} for key, partition in VECTORS.items()}


def test_the_vectors_are_for_12_partitions_and_hold_every_kind_of_key():
    assert len(VECTORS) >= 8
    assert {b"", b"a", b"order-2", b"\xff\x00\xfe", "zażółć".encode()} <= VECTORS.keys()
    assert all(partition_of(key, PARTITION_COUNT) == VECTORS[key] for key in KEYS)


async def test_python_puts_keys_where_the_vectors_say(server, topic):
    async with Client(server) as client, client.producer(topic) as producer:
        for key in KEYS:
            receipt = await producer.publish(b"v", key=key)
            assert receipt.partition == VECTORS[key]
            await producer.send(b"v", key=bytearray(key))
        await (await producer.send_many([b"v"] * len(KEYS), KEYS))
    assert partitions_of_keys(server, topic) == expected()


def test_blocking_python_puts_keys_where_the_vectors_say(server, topic):
    with BlockingClient(server) as client, client.producer(topic) as producer:
        for key in KEYS:
            producer.send(b"v", key=key)
        producer.send_many([b"v"] * len(KEYS), KEYS)
    assert partitions_of_keys(server, topic) == expected()


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_the_command_puts_keys_where_the_vectors_say_whatever_pythons_hash_seed(
    server, topic, hash_seed
):
    as_bytes = [json.dumps({"key_base64": b64encode(key).decode()}) for key in KEYS]
    as_text = [json.dumps({"key": key.decode()}) for key in KEYS if key != b"\xff\x00\xfe"]
    stdin = "\n".join(as_bytes + as_text).encode()
    output_of(
        "produce", topic, "--format", "json", server=server, stdin=stdin, PYTHONHASHSEED=hash_seed
    )
    assert partitions_of_keys(server, topic) == expected()


def test_a_key_given_as_an_argument_or_before_a_separator_is_the_same_key(server, topic):
    output_of("produce", topic, "--key", "zażółć", server=server, stdin=b"v\n")
    lines = "zażółć:v\norder-2:v\n".encode()
    output_of("produce", topic, "--key-separator", ":", server=server, stdin=lines)
    key = "zażółć".encode()
    assert partitions_of_keys(server, topic) == {key: {VECTORS[key]}, b"order-2": {9}}


async def test_the_broker_routes_published_records_as_the_clients_do(server, topic):
    async with grpc.aio.insecure_channel(server) as channel:
        records = [RecordMessage(key=key, value=b"v") for key in KEYS]
        request = PublishRequest(topic=topic, records=records)
        response = await ProduceServiceStub(channel).Publish(request)
    assert [result.receipt.partition for result in response.results] == list(VECTORS.values())
    assert partitions_of_keys(server, topic) == expected()


async def test_records_without_a_key_are_spread(server, topic):
    async with Client(server) as client, client.producer(topic) as producer:
        receipts = [await producer.publish(b"v") for _ in range(100)]
    counts = Counter(receipt.partition for receipt in receipts)
    assert sorted(counts.values()) == [8] * 8 + [9] * 4, "one after another"


async def test_published_records_without_a_key_are_spread(server, topic):
    request = PublishRequest(topic=topic, records=[RecordMessage(value=b"v")])
    async with grpc.aio.insecure_channel(server) as channel:
        stub = ProduceServiceStub(channel)
        responses = [await stub.Publish(request) for _ in range(100)]
    counts = Counter(response.results[0].receipt.partition for response in responses)
    assert sorted(counts.values()) == [8] * 8 + [9] * 4, "one after another"


async def test_many_producers_of_one_record_each_spread_too(server, topic):
    partitions = set()
    async with Client(server) as client:
        for _ in range(30):
            async with client.producer(topic) as producer:
                partitions.add((await producer.publish(b"v")).partition)
    assert len(partitions) > 3, "scripts that send one record must not all send to partition 0"


async def test_an_explicit_partition_wins(server, topic):
    async with Client(server) as client, client.producer(topic) as producer:
        for partition in range(PARTITION_COUNT):
            assert (await producer.publish(b"v", key=b"a", partition=partition)).partition == (
                partition
            )
        with pytest.raises(NotFoundError) as caught:
            await producer.publish(b"v", key=b"a", partition=PARTITION_COUNT)
        assert caught.value.reason == "PARTITION_NOT_FOUND"
    output_of("produce", topic, "--key", "order-1", "-p", "2", server=server, stdin=b"v\n")
    async with grpc.aio.insecure_channel(server) as channel:
        stub = ProduceServiceStub(channel)
        records = [
            RecordMessage(key=b"order-2", partition=4), RecordMessage(key=b"order-2")
        ]  # fmt: skip
        response = await stub.Publish(PublishRequest(topic=topic, records=records, partition=6))
    assert [result.receipt.partition for result in response.results] == [4, 6]
    found = partitions_of_keys(server, topic)
    assert found[b"a"] == set(range(PARTITION_COUNT))
    assert (found[b"order-1"], found[b"order-2"]) == ({2}, {4, 6})


async def test_growth_warns_that_keys_move_and_they_do(server, topic):
    async with Client(server) as client:
        grown = await client.admin.grow_topic(topic, 16)
        assert grown.topic.partition_count == 16
        assert "keys" in grown.warning
        async with client.producer(topic) as producer:
            for key in KEYS:
                assert (await producer.publish(b"v", key=key)).partition == partition_of(key, 16)
    moved = [key for key in KEYS if partition_of(key, 16) != VECTORS[key]]
    assert moved, "that is what the warning is about"
    done = logbroker("topic", "grow", topic, "-p", "20", server=server)
    assert done.returncode == 0
    assert b"warning: keys may map to other partitions" in done.stderr


async def test_a_producer_notices_growth_when_somebody_names_a_new_partition(server, topic):
    async with Client(server) as client, client.producer(topic) as producer:
        await producer.publish(b"v", key=b"order-17")
        await client.admin.grow_topic(topic, 16)
        assert (await producer.publish(b"v", partition=15)).partition == 15
        for key in KEYS:
            assert (await producer.publish(b"v", key=key)).partition == partition_of(key, 16)
