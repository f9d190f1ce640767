"""Who is taken for whom: instances, streams, and topics for dead letters."""

from logbroker.testing.clock import ManualClock
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import CreateTopicRequest

from .calls import refusal, serving
from .members import member_on


async def test_an_instance_whose_name_is_that_of_a_stream_is_not_taken_for_it():
    clock = ManualClock()
    async with (
        serving(partition_count=2, clock=clock) as calls,
        member_on(calls, client_id="instance i") as stream,
        member_on(calls, instance_id=stream.joined.member_id.removeprefix("instance ")) as instance,
    ):
        await clock.advance(1_000)
        for member in (stream, instance):
            await member.until(lambda member=member: member.assignments)
            assert len(member.assignments[-1]) == 1, "each has its half"


async def test_a_group_does_not_begin_to_read_where_its_dead_letters_would_meet_anothers():
    async with serving(topic="a", partition_count=1) as calls:
        await calls.topics.CreateTopic(CreateTopicRequest(topic="a.b", partition_count=1))

        def lease(group, topic):
            return calls.consume.Lease(pb.LeaseRequest(group=group, topics=[topic]))

        await lease("b.c", "a")
        assert await refusal(lease("c", "a.b")) == ("ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS")
        for group, topic in (("c", "a"), ("b.c", "a.b"), ("b.c", "a"), ("b", "a"), ("b", "a.b")):
            await lease(group, topic)
