"""The verbs of groups against a real broker in memory."""

import pytest

from client.brokers import client_of_broker, send_all
from logbroker.client import Client, Commit, Shift, Timestamp
from logbroker.errors import (
    AlreadyExistsError,
    InvalidError,
    LogbrokerError,
    NotFoundError,
    PreconditionError,
)
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import GroupSettings, Order, Start


async def fill(client: Client, count: int) -> None:
    async with client.producer("t") as producer:
        await send_all(producer, [b"%d" % number for number in range(count)])


async def test_a_group_is_made_shown_changed_and_deleted():
    async with client_of_broker() as client:
        admin = client.admin
        made = await admin.create_group("g", GroupSettings(order=Order.KEY, lease_ms=5_000))
        assert (made.group, made.settings.order, made.settings.lease_ms) == ("g", Order.KEY, 5_000)
        with pytest.raises(AlreadyExistsError):
            await admin.create_group("g")
        changed = await admin.update_group("g", max_failures=2, exhausted="discard", start="latest")
        assert changed.settings == GroupSettings(
            order=Order.KEY,
            lease_ms=5_000,
            retry=RetryPolicy(max_failures=2, exhausted=Exhausted.DISCARD),
            start=Start.LATEST,
        )
        assert [one.group.group for one in await admin.list_groups()] == ["g"]
        assert (await admin.get_group("g")).group == changed
        await admin.delete_group("g")
        with pytest.raises(NotFoundError):
            await admin.get_group("g")


async def test_wrong_changes_are_refused_before_they_are_sent():
    async with client_of_broker() as client:
        await client.admin.create_group("g")
        for wrong in ({"order": "random"}, {"start": "tomorrow"}, {"no_such": 1}):
            with pytest.raises(InvalidError):
                await client.admin.update_group("g", **wrong)
        with pytest.raises(InvalidError):
            await client.admin.reset_offsets("g", "t", "tomorrow")


async def test_a_reader_with_its_own_loop_commits_and_is_told_how_far_it_is():
    async with client_of_broker(2) as client:
        await fill(client, 10)
        commits = [Commit("t", 0, 0), Commit("t", 1, 0), Commit("t", 7, 1)]
        first, second, refused = await client.admin.commit_offsets("g", commits)
        assert (first, second) == (0, 0)
        assert isinstance(refused, LogbrokerError)
        progress = await client.admin.get_offsets("g", "t")
        assert [one.partition for one in progress] == [0, 1]
        assert sum(one.lag for one in progress) == 10


async def test_a_group_is_moved_and_its_members_go_on_from_there_if_forced():
    async with client_of_broker() as client:
        await fill(client, 10)
        async with client.consumer("g", "t") as consumer:
            for _ in range(10):
                await anext(consumer)
            await consumer.commit()
            with pytest.raises(PreconditionError):
                await client.admin.reset_offsets("g", "t", 3)
            dry = await client.admin.reset_offsets("g", "t", 3, force=True, dry_run=True)
            assert dry == [("t", 0, 10, 3)]
            assert await client.admin.reset_offsets("g", "t", Shift(-4), force=True) == [
                ("t", 0, 10, 6)
            ]
            assert [(await anext(consumer)).offset for _ in range(4)] == [6, 7, 8, 9]
            await consumer.commit()
        assert (await client.admin.reset_offsets("g", "t", Timestamp(0)))[0].to_offset == 0
        assert (await client.admin.reset_offsets("g", "t", "latest"))[0].to_offset == 10


async def test_members_and_what_they_hold_are_shown_and_a_record_is_explained():
    async with client_of_broker() as client:
        await fill(client, 5)
        async with client.consumer("g", "t", client_id="me", auto_settle=False) as consumer:
            record = await anext(consumer)
            described = await client.admin.get_group("g")
            (member,) = described.members
            assert (member.client_id, member.assignment) == ("me", (("t", 0),))
            assert member.leased_count == 5
            assert described.lag == 5
            explained = await client.admin.explain("g", "t", 0, record.offset)
            assert explained.state == "leased"
            assert explained.message
