"""C47: headers keep order, doubles, case and bytes, by every way in and out."""

import json
from collections.abc import Iterator, Sequence

import grpc
import pytest

from cases.commands import logbroker, output_of
from cases.raw import produce_request
from logbroker.client import Client
from logbroker.client.blocking import BlockingClient
from logbroker.errors import InvalidError
from logbroker.record.record import Header, Record
from logbroker.testing.running_broker import BrokerProcess
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage
from logbroker.v1.records_pb2 import Header as HeaderMessage
from logbroker.wire.status import error_of

ODD = (
    Header("k", b"1"),
    Header("k", b"2"),
    Header("K", b"3"),
    Header("bin", b"\xff\x00"),
    Header("empty", b""),
    Header("nul", None),
    Header("заголовок", "значение".encode()),
    Header("", b"no name"),
)
MANY = tuple(Header(f"h{number % 150}", b"%d" % number) for number in range(200))
LARGE = (Header("large", bytes(range(256)) * 256),)
assert len(LARGE[0].value or b"") == 64 << 10
ALL = (ODD, MANY, LARGE, ())
TOO_MANY = [Header("h", b"")] * 201
TOO_LARGE = [Header("h", bytes((64 << 10) + 200))]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("c47") / "data") as broker:
        yield broker.address


def create(server: str, topic: str) -> None:
    with BlockingClient(server) as client:
        client.admin.create_topic(topic)


def records_of(server: str, topic: str) -> list[Record]:
    with BlockingClient(server) as client, client.reader(topic) as reader:
        return list(reader)


def check(server: str, topic: str) -> None:
    assert [record.headers for record in records_of(server, topic)] == list(ALL)


def message_of(headers: Sequence[Header]) -> RecordMessage:
    made = [HeaderMessage(name=header.name, value=header.value) for header in headers]
    return RecordMessage(value=b"v", headers=made)


async def test_python_keeps_headers_as_they_are(server):
    create(server, "python")
    async with Client(server) as client:
        async with client.producer("python") as producer:
            for headers in ALL:
                await producer.send(b"v", headers=headers)
        async with client.reader("python") as reader:
            assert [record.headers async for record in reader] == list(ALL)
    check(server, "python")


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_blocking_python_keeps_headers_as_they_are(server, codec):
    create(server, f"blocking-{codec}")
    with BlockingClient(server) as client, client.producer(f"blocking-{codec}", codec=codec) as to:
        to.send_many([b"v"] * len(ALL), headers=ALL)
    check(server, f"blocking-{codec}")


async def test_published_headers_are_kept_as_they_are(server):
    create(server, "published")
    async with grpc.aio.insecure_channel(server) as channel:
        request = PublishRequest(topic="published", records=map(message_of, ALL))
        await ProduceServiceStub(channel).Publish(request)
    check(server, "published")


def test_json_out_of_one_topic_and_into_another_changes_nothing(server):
    create(server, "out")
    create(server, "in")
    with BlockingClient(server) as client, client.producer("out") as producer:
        for number, headers in enumerate(ALL):
            producer.send(b"\xfe\xff", key=b"\x00", headers=headers, timestamp_ms=number)
    printed = output_of("fetch", "out", "-o", "json", server=server)
    output_of("produce", "in", "--format", "json", server=server, stdin=printed)
    assert records_of(server, "in") == records_of(server, "out")
    check(server, "in")


def test_json_is_a_list_with_base64_for_bytes(server):
    create(server, "json")
    with BlockingClient(server) as client, client.producer("json") as producer:
        producer.send(b"v", headers=ODD)
    assert json.loads(output_of("fetch", "json", "-o", "json", server=server))["headers"] == [
        {"name": "k", "value": "1"},
        {"name": "k", "value": "2"},
        {"name": "K", "value": "3"},
        {"name": "bin", "value_base64": "/wA="},
        {"name": "empty", "value": ""},
        {"name": "nul", "value": None},
        {"name": "заголовок", "value": "значение"},
        {"name": "", "value": "no name"},
    ]


def test_the_command_takes_headers_as_arguments(server):
    create(server, "arguments")
    given = ("-H", "k=1", "-H", "k=2", "-H", "K=a=b", "-H", "empty=", "-H", "имя=значение")
    output_of("produce", "arguments", *given, server=server, stdin=b"v\n")
    (record,) = records_of(server, "arguments")
    assert record.headers == (
        ("k", b"1"),
        ("k", b"2"),
        ("K", b"a=b"),
        ("empty", b""),
        ("имя", "значение".encode()),
    )


def test_the_dict_like_helpers_say_which_value_they_give_and_offer_all():
    record = Record(0, 0, None, None, ODD)
    assert record.header("k") == b"2", "the last one"
    assert "last" in (Record.header.__doc__ or "")
    assert record.header_values("k") == [b"1", b"2"]
    assert record.header("K") == b"3"
    assert record.header_values("nul") == [None]
    assert record.header_values("none") == []


@pytest.mark.parametrize(
    "headers, reason",
    [(TOO_MANY, "TOO_MANY_HEADERS"), (TOO_LARGE, "HEADER_TOO_LARGE")],
    ids=["201 headers", "a header over 64 KiB and 200 bytes"],
)
async def test_over_the_limits_is_an_invalid_argument_on_every_way_in(server, headers, reason):
    topic = reason.lower()
    create(server, topic)
    async with Client(server) as client, client.producer(topic) as producer:
        with pytest.raises(InvalidError) as caught:
            await producer.send(b"v", headers=headers)
        assert caught.value.reason == reason
        with pytest.raises(InvalidError) as caught:
            await producer.send_many([b"v"] * 2, headers=[None, headers])
        assert caught.value.reason == reason
    async with grpc.aio.insecure_channel(server) as channel:
        stub = ProduceServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await stub.Publish(PublishRequest(topic=topic, records=[message_of(headers)]))
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error_of(failure.value).reason == reason
        call = stub.Produce()
        await call.write(produce_request(topic, [b"v"], headers=headers))
        (result,) = (await call.read()).results
        assert result.error.reason == reason
        await call.write(produce_request(topic, [b"v"]))
        (result,) = (await call.read()).results
        assert result.HasField("receipt"), "the stream goes on"
        await call.done_writing()
    fields = [{"name": header.name, "value": (header.value or b"").decode()} for header in headers]
    stdin = b'{"value": "first"}\n' + json.dumps({"value": "v", "headers": fields}).encode()
    done = logbroker("produce", topic, "--format", "json", "-o", "json", server=server, stdin=stdin)
    assert done.returncode == 1
    assert reason.encode() in done.stderr
    assert b"line 2" in done.stderr
    assert [record.value for record in records_of(server, topic)] == [b"v", b"first"]
