"""TopicService over gRPC: what it answers, and what it refuses, with its reason."""

import pytest

from logbroker.v1 import topic_service_pb2 as pb
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.record_pb2 import DURABILITY_SYNCED, DURABILITY_WRITTEN, Record
from logbroker.v1.topic_pb2 import TopicSettings

from .calls import ending, refusal, serving

BAD_NAMES = ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", "/etc/x", "%2e%2e%2f", "x" * 201, "é",
             "-rf", "__x", "a ", "a\n", "x" * 100_000, "\0" * 100_000, "é" * 100_000]  # fmt: skip


async def test_a_topic_lives_from_its_creation_to_its_deletion():
    async with serving(topic="") as calls:
        settings = TopicSettings(durability=DURABILITY_WRITTEN, retention_ms=0)
        created = await calls.topics.CreateTopic(
            pb.CreateTopicRequest(topic="a", partition_count=2, settings=settings)
        )
        topic = created.topic
        assert (topic.topic, topic.partition_count, len(topic.topic_id)) == ("a", 2, 24)
        assert topic.settings.durability == DURABILITY_WRITTEN
        assert topic.settings.HasField("retention_ms")
        assert topic.settings.segment_bytes == 256 << 20
        got = await calls.topics.GetTopic(pb.GetTopicRequest(topic="a", topic_id=topic.topic_id))
        assert got.topic == topic
        assert [status.partition for status in got.partitions] == [0, 1]
        update = pb.UpdateTopicRequest(topic="a", settings=TopicSettings(segment_ms=7))
        updated = (await calls.topics.UpdateTopic(update)).topic
        assert (updated.settings.segment_ms, updated.settings.durability) == (7, DURABILITY_WRITTEN)
        grown = await calls.topics.GrowTopic(pb.GrowTopicRequest(topic="a", partition_count=3))
        assert grown.topic.partition_count == 3
        assert "keys" in grown.warning
        await calls.topics.DeleteTopic(pb.DeleteTopicRequest(topic="a"))
        assert (await calls.topics.ListTopics(pb.ListTopicsRequest())).topics == []


async def test_partitions_tell_their_offsets_and_a_trim_raises_the_start():
    async with serving(partition_count=1) as calls:
        records = [Record(value=b"x")] * 5
        await calls.produce.Publish(PublishRequest(topic="a", records=records))
        trimmed = await calls.topics.TrimTopic(pb.TrimTopicRequest(topic="a", offset=3))
        assert trimmed.log_start_offset == 3
        [status] = (await calls.topics.GetTopic(pb.GetTopicRequest(topic="a"))).partitions
        offsets = status.log_start_offset, status.high_watermark, status.next_offset
        assert (offsets, status.failure, len(status.damaged)) == ((3, 5, 5), "", 0)


async def test_topics_are_listed_in_pages_of_at_most_1000():
    async with serving(topic="") as calls:
        for number in range(3):
            await calls.topics.CreateTopic(pb.CreateTopicRequest(topic=f"t{number}"))
        page = await calls.topics.ListTopics(pb.ListTopicsRequest(page_size=2))
        assert ([topic.topic for topic in page.topics], page.next_page_token) == (
            ["t0", "t1"],
            "t1",
        )
        rest = pb.ListTopicsRequest(page_size=2**31 - 1, page_token=page.next_page_token)
        page = await calls.topics.ListTopics(rest)
        assert ([topic.topic for topic in page.topics], page.next_page_token) == (["t2"], "")


@pytest.mark.parametrize("name", BAD_NAMES)
async def test_a_bad_name_is_refused_by_every_method_with_the_rule(name):
    async with serving() as calls:
        topics = calls.topics
        for call in (
            topics.CreateTopic(pb.CreateTopicRequest(topic=name)),
            topics.GetTopic(pb.GetTopicRequest(topic=name)),
            topics.UpdateTopic(pb.UpdateTopicRequest(topic=name)),
            topics.GrowTopic(pb.GrowTopicRequest(topic=name, partition_count=5)),
            topics.DeleteTopic(pb.DeleteTopicRequest(topic=name)),
            topics.TrimTopic(pb.TrimTopicRequest(topic=name)),
        ):
            code, info, message = await ending(call)
            assert (code.name, info.reason) == ("INVALID_ARGUMENT", "INVALID_NAME")
            assert "1 to 200 of A-Z a-z 0-9 . _ -" in message
        listed = await topics.ListTopics(pb.ListTopicsRequest())
        assert [topic.topic for topic in listed.topics] == ["a"]


INVALID, NOT_FOUND = "INVALID_ARGUMENT", "NOT_FOUND"
REFUSED = [
    (pb.CreateTopicRequest(topic="a"), "ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS"),
    (pb.CreateTopicRequest(topic="b", partition_count=-1), INVALID, "INVALID_ARGUMENT"),
    (pb.CreateTopicRequest(topic="b", partition_count=10_001), INVALID, "INVALID_ARGUMENT"),
    (
        pb.CreateTopicRequest(topic="b", settings=TopicSettings(segment_bytes=1)),
        INVALID,
        "INVALID_SETTING",
    ),
    (
        pb.CreateTopicRequest(topic="b", settings=TopicSettings(retention_ms=-1)),
        INVALID,
        "INVALID_SETTING",
    ),
    (
        pb.CreateTopicRequest(topic="b", settings=TopicSettings(durability=7)),
        INVALID,
        "INVALID_SETTING",
    ),
    (pb.GetTopicRequest(topic="b"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    (
        pb.GetTopicRequest(topic="a", topic_id="x" * 100_000),
        "FAILED_PRECONDITION",
        "TOPIC_RECREATED",
    ),
    (pb.ListTopicsRequest(page_size=-1), INVALID, "INVALID_ARGUMENT"),
    (pb.UpdateTopicRequest(topic="b"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    (pb.UpdateTopicRequest(topic="a", topic_id="old"), "FAILED_PRECONDITION", "TOPIC_RECREATED"),
    (
        pb.UpdateTopicRequest(topic="a", settings=TopicSettings(flush_interval_ms=0)),
        INVALID,
        "INVALID_SETTING",
    ),
    (pb.GrowTopicRequest(topic="b", partition_count=9), NOT_FOUND, "TOPIC_NOT_FOUND"),
    (pb.GrowTopicRequest(topic="a", partition_count=2), INVALID, "INVALID_ARGUMENT"),
    (pb.GrowTopicRequest(topic="a", partition_count=-3), INVALID, "INVALID_ARGUMENT"),
    (pb.DeleteTopicRequest(topic="b"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    (pb.DeleteTopicRequest(topic="a", topic_id="old"), "FAILED_PRECONDITION", "TOPIC_RECREATED"),
    (pb.TrimTopicRequest(topic="b"), NOT_FOUND, "TOPIC_NOT_FOUND"),
    (pb.TrimTopicRequest(topic="a", partition=2), NOT_FOUND, "PARTITION_NOT_FOUND"),
    (pb.TrimTopicRequest(topic="a", partition=-1), NOT_FOUND, "PARTITION_NOT_FOUND"),
    (pb.TrimTopicRequest(topic="a", offset=-1), INVALID, "INVALID_OFFSET"),
    (pb.TrimTopicRequest(topic="a", offset=1), "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
    (pb.TrimTopicRequest(topic="a", offset=2**63 - 1), "OUT_OF_RANGE", "OFFSET_OUT_OF_RANGE"),
]


@pytest.mark.parametrize("bad, code, reason", REFUSED)
async def test_a_bad_request_is_refused_and_changes_nothing(bad, code, reason):
    async with serving() as calls:
        before = await calls.topics.GetTopic(pb.GetTopicRequest(topic="a"))
        method = type(bad).__name__.removesuffix("Request")
        assert await refusal(getattr(calls.topics, method)(bad)) == (code, reason)
        assert await calls.topics.GetTopic(pb.GetTopicRequest(topic="a")) == before
        assert len((await calls.topics.ListTopics(pb.ListTopicsRequest())).topics) == 1
        assert calls.broker.error_counts == {reason: 1}


def test_synced_is_the_default_and_has_a_number():
    assert DURABILITY_SYNCED == 1
