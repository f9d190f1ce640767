"""BrokerService, health and reflection."""

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from logbroker.clock import SystemClock
from logbroker.storage.memory import MemoryEngine
from logbroker.v1 import broker_service_pb2 as pb
from logbroker.v1.fetch_service_pb2 import FetchRequest
from logbroker.v1.topic_service_pb2 import GetTopicRequest

from .calls import SMALL, ending, serving, within_time

SERVICES = {
    "logbroker.v1.TopicService",
    "logbroker.v1.ProduceService",
    "logbroker.v1.FetchService",
    "logbroker.v1.BrokerService",
}


async def test_the_broker_tells_its_version_and_the_limits_in_force():
    async with serving(limits=SMALL) as calls:
        about = await calls.about.GetBroker(pb.GetBrokerRequest())
        assert about.version == "test"
        assert (about.limits.record_bytes, about.limits.batch_bytes) == (1_000, 66_536)
        assert (about.limits.header_count, about.limits.header_bytes) == (3, 100)


async def test_the_stats_tell_of_open_streams_errors_and_memory():
    async with serving() as calls:
        stream = calls.fetch.Fetch(FetchRequest(topic="a", follow=True))
        await within_time(stream.read())
        await ending(calls.topics.GetTopic(GetTopicRequest(topic="b")))
        stats = await calls.about.GetStats(pb.GetStatsRequest())
        assert (stats.topic_count, stats.partition_count, stats.open_stream_count) == (1, 2, 1)
        assert dict(stats.error_counts) == {"TOPIC_NOT_FOUND": 1}
        assert stats.rss_bytes > 1 << 20
        stream.cancel()


@pytest.mark.parametrize("service", ["", *sorted(SERVICES)])
async def test_health_says_that_every_service_serves(service):
    async with serving() as calls:
        stub = health_pb2_grpc.HealthStub(calls.channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_says_that_publishing_does_not_serve_while_a_disk_has_failed_under_a_topic():
    engine = MemoryEngine(SystemClock())
    async with serving(engine=engine) as calls:
        stub = health_pb2_grpc.HealthStub(calls.channel)
        name = "logbroker.v1.ProduceService"
        watched = stub.Watch(health_pb2.HealthCheckRequest(service=name))
        status = health_pb2.HealthCheckResponse
        assert (await within_time(watched.read())).status == status.SERVING
        [broken, other] = [one for one in engine.partitions() if one.topic == "a"]
        [journal, *_] = [one for one in engine.partitions() if one.is_internal]
        for partition in (journal, broken, other):
            engine.failures.add(partition)
        assert (await within_time(watched.read())).status == status.NOT_SERVING
        whole = await stub.Check(health_pb2.HealthCheckRequest(service=""))
        assert whole.status == status.SERVING
        assert (await calls.about.GetStats(pb.GetStatsRequest())).failed_partition_count == 2
        engine.failures.remove(broken)
        assert broken not in engine.failures
        engine.failures.remove(other)
        assert (await within_time(watched.read())).status == status.SERVING
        watched.cancel()


async def test_reflection_lists_the_services_and_finds_their_files():
    async with serving() as calls:
        stub = reflection_pb2_grpc.ServerReflectionStub(calls.channel)
        asked = [
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(
                file_containing_symbol="logbroker.v1.ProduceService"
            ),
        ]
        listed, found = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
        names = {service.name for service in listed.list_services_response.service}
        assert names >= SERVICES
        assert found.file_descriptor_response.file_descriptor_proto


ALL_METHODS = [
    *(
        f"TopicService/{verb}"
        for verb in (
            "CreateTopic", "GetTopic", "ListTopics", "UpdateTopic", "GrowTopic", "DeleteTopic",
            "TrimTopic",
        )
    ),
    "ProduceService/Publish", "ProduceService/CreateProducer", "FetchService/FindOffset",
    "FetchService/Fetch", "BrokerService/GetBroker", "BrokerService/GetStats",
]  # fmt: skip


@pytest.mark.parametrize("method", ALL_METHODS)
@pytest.mark.parametrize("noise", [b"\xff", b"\x0a\x05a", b"\x0a\x02\xff\xfe", bytes(range(256))])
async def test_noise_is_an_invalid_argument_and_no_fault_of_the_broker(method, noise):
    async with serving() as calls:
        kind = "unary_stream" if method.endswith("/Fetch") else "unary_unary"
        call = getattr(calls.channel, kind)(f"/logbroker.v1.{method}")(noise)
        code, info, _ = await ending(call)
        assert code is grpc.StatusCode.INVALID_ARGUMENT or not reads(method, noise)
        assert info.reason in ("INVALID_ARGUMENT", "INVALID_NAME", "")


def reads(method, noise):
    """Whether these bytes break any request; a string that is not UTF-8 needs a string there."""
    return noise != b"\x0a\x02\xff\xfe" or method.split("/")[1] not in (
        "CreateProducer", "GetBroker", "GetStats", "ListTopics"
    )  # fmt: skip


async def test_a_method_there_is_not_is_unimplemented():
    async with serving() as calls:
        call = calls.channel.unary_unary("/logbroker.v1.TopicService/Unheard")(b"")
        assert (await ending(call))[0] is grpc.StatusCode.UNIMPLEMENTED
