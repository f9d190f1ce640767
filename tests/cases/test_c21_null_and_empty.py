"""C21: null and empty, key and value: all nine pairs, by every way in and every way out."""

import json
from collections.abc import Awaitable, Callable, Iterator
from itertools import product

import grpc
import pytest

from cases.commands import output_of
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1 import produce_service_pb2
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage
from logbroker.v1.records_pb2 import Records

Pair = tuple[bytes | None, bytes | None]

PAIRS: list[Pair] = list(product((None, b"", b"k"), (None, b"", b"v")))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("c21") / "data") as broker:
        yield broker.address


def create(server: str, topic: str) -> None:
    with BlockingClient(server) as client:
        client.admin.create_topic(topic)


async def send_by_python(server: str, topic: str) -> None:
    async with Client(server) as client, client.producer(topic) as producer:
        for key, value in PAIRS:
            await producer.send(value, key=key)


async def send_many_by_python(server: str, topic: str) -> None:
    async with Client(server) as client, client.producer(topic) as producer:
        await (await producer.send_many([v for _, v in PAIRS], [k for k, _ in PAIRS]))


async def send_by_blocking_python(server: str, topic: str) -> None:
    with BlockingClient(server) as client, client.producer(topic) as producer:
        for key, value in PAIRS:
            producer.send(value, key=key)


async def send_by_command(server: str, topic: str) -> None:
    lines = [json.dumps({"key": text(key), "value": text(value)}) for key, value in PAIRS]
    stdin = "\n".join(lines).encode()
    output_of("produce", topic, "--format", "json", server=server, stdin=stdin)


async def publish(server: str, topic: str) -> None:
    records = [RecordMessage(key=key, value=value) for key, value in PAIRS]
    request = produce_service_pb2.PublishRequest(topic=topic, records=records)
    async with grpc.aio.insecure_channel(server) as channel:
        await ProduceServiceStub(channel).Publish(request)


async def read_by_python(server: str, topic: str) -> list[Pair]:
    async with Client(server) as client, client.reader(topic) as reader:
        return [(record.key, record.value) async for record in reader]


async def read_columns_by_python(server: str, topic: str) -> list[Pair]:
    pairs: list[Pair] = []
    async with Client(server) as client, client.reader(topic) as reader:
        async for batch in reader.batches():
            keys = batch.keys or [None] * len(batch)
            pairs += zip(keys, batch.values, strict=True)
    return pairs


async def read_by_blocking_python(server: str, topic: str) -> list[Pair]:
    with BlockingClient(server) as client, client.reader(topic) as reader:
        return [(record.key, record.value) for record in reader]


async def read_by_command(server: str, topic: str) -> list[Pair]:
    lines = output_of("fetch", topic, "-o", "json", server=server).splitlines()
    records = [json.loads(line) for line in lines]
    return [(data(record["key"]), data(record["value"])) for record in records]


async def fetch(server: str, topic: str) -> list[Pair]:
    """As a client without any of our code reads them."""
    pairs: list[Pair] = []
    async with grpc.aio.insecure_channel(server) as channel:
        async for response in FetchServiceStub(channel).Fetch(FetchRequest(topic=topic)):
            for batch in response.batches:
                columns = Records.FromString(batch.records)
                keys = with_nulls(list(columns.keys), list(columns.null_keys))
                values = with_nulls(list(columns.values), list(columns.null_values))
                pairs += zip(keys or [None] * len(values), values, strict=True)
    return pairs


def with_nulls(column: list[bytes], nulls: list[int]) -> list[bytes | None]:
    return [None if index in nulls else each for index, each in enumerate(column)]


def text(part: bytes | None) -> str | None:
    return None if part is None else part.decode()


def data(part: str | None) -> bytes | None:
    return None if part is None else part.encode()


Send = Callable[[str, str], Awaitable[None]]
WRITERS = (
    send_by_python, send_many_by_python, send_by_blocking_python, send_by_command, publish,
)  # fmt: skip
READERS = (
    read_by_python, read_columns_by_python, read_by_blocking_python, read_by_command, fetch,
)  # fmt: skip


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
async def test_all_nine_pairs_come_back_unchanged_and_distinct(server, write: Send):
    topic = f"pairs-{write.__name__}"
    create(server, topic)
    await write(server, topic)
    for read in READERS:
        assert await read(server, topic) == PAIRS, read.__name__


def test_the_command_tells_null_from_empty_for_people_too(server):
    create(server, "for-people")
    stdin = b'{"key": null, "value": null}\n{"key": "", "value": ""}'
    output_of("produce", "for-people", "--format", "json", server=server, stdin=stdin)
    null, empty = output_of("fetch", "for-people", server=server).decode().splitlines()
    assert null.split()[-2:] == ["(null)", "(null)"]
    assert empty.split()[-2:] == ["(empty)", "(empty)"]


def test_an_empty_key_and_an_empty_line_are_no_nulls(server):
    create(server, "empty-lines")
    output_of("produce", "empty-lines", "--key", "", server=server, stdin=b"\n")
    line = output_of("fetch", "empty-lines", "-o", "json", server=server)
    assert (json.loads(line)["key"], json.loads(line)["value"]) == ("", "")
