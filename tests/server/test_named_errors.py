"""The errors that the comments of group, consume and dead_letter_service.proto name."""

from collections.abc import Callable
from typing import Any

import pytest

from logbroker.v1 import consume_service_pb2 as consume_pb
from logbroker.v1 import dead_letter_service_pb2 as letters_pb
from logbroker.v1 import group_pb2
from logbroker.v1 import group_service_pb2 as pb

from .calls import refusal, serving
from .members import member_on, publish

OTHER = group_pb2.GroupSettings(order=group_pb2.ORDER_KEY)
HELD_WITHOUT_ORDER = group_pb2.GroupSettings(
    order=group_pb2.ORDER_NONE, after_dead_letter=group_pb2.AFTER_DEAD_LETTER_HOLD
)


def which(**fields: Any) -> letters_pb.DeadLetterFilter:
    return letters_pb.DeadLetterFilter(**{"group": "g", "topic": "a"} | fields)


ERRORS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "CreateGroup": (
        "INVALID_SETTING",
        lambda calls: calls.groups.CreateGroup(
            pb.CreateGroupRequest(group="h", settings=HELD_WITHOUT_ORDER)
        ),
    ),
    "GetGroup": (
        "GROUP_NOT_FOUND",
        lambda calls: calls.groups.GetGroup(pb.GetGroupRequest(group="h")),
    ),
    "UpdateGroup in use": (
        "GROUP_IN_USE",
        lambda calls: calls.groups.UpdateGroup(pb.UpdateGroupRequest(group="g", settings=OTHER)),
    ),
    "DeleteGroup in use": (
        "GROUP_IN_USE",
        lambda calls: calls.groups.DeleteGroup(pb.DeleteGroupRequest(group="g")),
    ),
    "GetOffsets": (
        "GROUP_NOT_FOUND",
        lambda calls: calls.groups.GetOffsets(pb.GetOffsetsRequest(group="h")),
    ),
    "ResetOffsets in use": (
        "GROUP_IN_USE",
        lambda calls: calls.groups.ResetOffsets(
            pb.ResetOffsetsRequest(group="g", topic="a", earliest=True)
        ),
    ),
    "ResetOffsets to nowhere": (
        "INVALID_ARGUMENT",
        lambda calls: calls.groups.ResetOffsets(pb.ResetOffsetsRequest(group="g", topic="a")),
    ),
    "ResetOffsets of no partition": (
        "PARTITION_NOT_FOUND",
        lambda calls: calls.groups.ResetOffsets(
            pb.ResetOffsetsRequest(group="g", topic="a", partitions=[9], earliest=True)
        ),
    ),
    "Explain what it does not read": (
        "TOPIC_NOT_FOUND",
        lambda calls: calls.groups.Explain(pb.ExplainRequest(group="other", topic="a")),
    ),
    "Lease of no topic": (
        "TOPIC_NOT_FOUND",
        lambda calls: calls.consume.Lease(consume_pb.LeaseRequest(group="g", topics=["nowhere"])),
    ),
    "ListDeadLetters of no group": (
        "GROUP_NOT_FOUND",
        lambda calls: calls.dead_letters.ListDeadLetters(
            letters_pb.ListDeadLettersRequest(filter=which(group="h"))
        ),
    ),
    "ListDeadLetters of no topic": (
        "TOPIC_NOT_FOUND",
        lambda calls: calls.dead_letters.ListDeadLetters(
            letters_pb.ListDeadLettersRequest(filter=which(topic="nowhere"))
        ),
    ),
    "ListDeadLetters of what it does not read": (
        "TOPIC_NOT_FOUND",
        lambda calls: calls.dead_letters.ListDeadLetters(
            letters_pb.ListDeadLettersRequest(filter=which(group="other"))
        ),
    ),
    "GetDeadLetter": (
        "DEAD_LETTER_NOT_FOUND",
        lambda calls: calls.dead_letters.GetDeadLetter(
            letters_pb.GetDeadLetterRequest(group="g", topic="a", offset=9)
        ),
    ),
    "StartRedrive too fast": (
        "INVALID_ARGUMENT",
        lambda calls: calls.dead_letters.StartRedrive(
            letters_pb.StartRedriveRequest(filter=which(), records_per_second=1e10)
        ),
    ),
    "GetRedrive": (
        "REDRIVE_NOT_FOUND",
        lambda calls: calls.dead_letters.GetRedrive(letters_pb.GetRedriveRequest(redrive_id="r")),
    ),
    "CancelRedrive": (
        "REDRIVE_NOT_FOUND",
        lambda calls: calls.dead_letters.CancelRedrive(
            letters_pb.CancelRedriveRequest(redrive_id="r")
        ),
    ),
}


@pytest.mark.parametrize(("reason", "call"), ERRORS.values(), ids=ERRORS)
async def test_a_call_ends_with_the_error_that_is_documented(
    reason: str, call: Callable[[Any], Any]
) -> None:
    async with serving() as calls:
        await calls.groups.CreateGroup(pb.CreateGroupRequest(group="other"))
        await publish(calls, b"v")
        async with member_on(calls) as member:
            await member.delivery()
            assert (await refusal(call(calls)))[1] == reason


async def test_entries_of_commits_and_settlements_have_the_errors_that_are_documented() -> None:
    async with serving() as calls:
        await publish(calls, b"v")
        commits = [
            pb.Commit(topic="a", offset=7), pb.Commit(topic="a", offset=-1),
            pb.Commit(topic="a", partition=9), pb.Commit(topic="nowhere"),
        ]  # fmt: skip
        request = pb.CommitOffsetsRequest(group="g", commits=commits)
        results = (await calls.groups.CommitOffsets(request)).results
        assert [one.error.reason for one in results] == [
            "INVALID_OFFSET", "INVALID_OFFSET", "INVALID_ARGUMENT", "TOPIC_NOT_FOUND"
        ]  # fmt: skip
        leased = await calls.consume.Lease(consume_pb.LeaseRequest(group="g", topics=["a"]))
        token, done = leased.delivery.token, consume_pb.OUTCOME_ACKNOWLEDGE
        answers = [
            consume_pb.Settlement(token=token, first_offset=2, end_offset=1, outcome=done),
            consume_pb.Settlement(token=token, end_offset=1),
            consume_pb.Settlement(token=token + 1, end_offset=1, outcome=done),
            consume_pb.Settlement(token=token, end_offset=1, outcome=done),
        ]
        settle = consume_pb.SettleRequest(group="g", settlements=answers)
        settled = (await calls.consume.Settle(settle)).results
        assert [one.error.reason for one in settled] == [
            "INVALID_OFFSET", "INVALID_ARGUMENT", "LEASE_LOST", ""
        ]  # fmt: skip


async def test_offsets_of_a_topic_that_is_not_read_are_none() -> None:
    async with serving() as calls:
        await calls.groups.CreateGroup(pb.CreateGroupRequest(group="g"))
        for topic in ("a", "nowhere"):
            request = pb.GetOffsetsRequest(group="g", topic=topic)
            assert list((await calls.groups.GetOffsets(request)).progress) == []
