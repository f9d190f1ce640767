"""C54: names of groups and members: the same rule, by every call and command."""

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from server.calls import ending, stubs_of
from server.members import REJECT, member_of, member_on, publish

from cases.commands import logbroker, many
from cases.grouped import check_nothing_left, group_of, letters_of, make_topic
from cases.test_c54_names import REFUSED, reason_of, shown_safely
from logbroker.client.blocking import BlockingClient
from logbroker.limits import NAME_CHARS
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.names import RULE
from logbroker.v1 import consume_service_pb2 as consume
from logbroker.v1 import dead_letter_service_pb2 as dlq
from logbroker.v1 import group_service_pb2 as pb
from logbroker.v1.topic_service_pb2 import ListTopicsRequest

ALLOWED = ("T", "t", "a.b", "a_b", "a-b", "CON", "con.txt", "...", "_x", "0")
LONGEST = NAME_CHARS - len("a..dlq")
"""Of a group that reads topic `a`: the name of its dead-letter topic is as long as one may be."""
BOTH = pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)

pytestmark = pytest.mark.slow


class Setting:
    """A broker with a topic `a` of one record, and what lies in its data directory."""

    def __init__(self, parent: Path, broker: BrokerProcess) -> None:
        self.parent = parent
        self.broker = broker
        self.server = broker.address
        self._files = self.files()

    def files(self) -> set[str]:
        """Returns all paths but those that come and go as a broker writes."""
        paths = self.parent.rglob("*")
        return {str(path.relative_to(self.parent)) for path in paths if path.is_dir()}

    def has_nothing_new(self) -> bool:
        """Tells whether no directory has come up anywhere, and no group."""
        with BlockingClient(self.server) as client:
            return self.files() == self._files and client.admin.list_groups() == []


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    parent = tmp_path_factory.mktemp("c54")
    with BrokerProcess(parent / "data") as broker, BlockingClient(broker.address) as client:
        client.admin.create_topic("a")
        client.producer("a").publish(b"v")
        yield Setting(parent, broker)


def calls_by(calls, group: str):
    """Returns every call there is that names a group, those that make one first."""
    which = dlq.DeadLetterFilter(group=group, topic="a")
    one = consume.Settlement(token=1, first_offset=0, end_offset=1, outcome=REJECT)
    opened = calls.consume.Consume()
    makers = [
        calls.groups.CreateGroup(pb.CreateGroupRequest(group=group)),
        calls.consume.Lease(consume.LeaseRequest(group=group, topics=["a"])),
        opened,
    ]
    others = [
        calls.groups.GetGroup(pb.GetGroupRequest(group=group)),
        calls.groups.UpdateGroup(pb.UpdateGroupRequest(group=group)),
        calls.groups.DeleteGroup(pb.DeleteGroupRequest(group=group)),
        calls.groups.GetOffsets(pb.GetOffsetsRequest(group=group)),
        calls.groups.ResetOffsets(pb.ResetOffsetsRequest(group=group, topic="a", earliest=True)),
        calls.groups.Explain(pb.ExplainRequest(group=group, topic="a")),
        calls.dead_letters.ListDeadLetters(dlq.ListDeadLettersRequest(filter=which)),
        calls.dead_letters.GetDeadLetter(dlq.GetDeadLetterRequest(group=group, topic="a")),
        calls.dead_letters.ResolveDeadLetters(dlq.ResolveDeadLettersRequest(filter=which)),
        calls.dead_letters.CopyDeadLetters(dlq.CopyDeadLettersRequest(filter=which, to_topic="a")),
        calls.dead_letters.StartRedrive(dlq.StartRedriveRequest(filter=which)),
        calls.dead_letters.ListRedrives(dlq.ListRedrivesRequest(group=group)),
        calls.consume.Settle(consume.SettleRequest(group=group, settlements=[one])),
        calls.consume.Extend(
            consume.ExtendRequest(group=group, extensions=[consume.Extension(token=1)])
        ),
    ]
    return opened, makers, others


@BOTH
async def test_c54_a_group_s_name_that_breaks_the_rule_is_refused_by_every_call(setting, name):
    async with grpc.aio.insecure_channel(setting.server) as channel:
        calls = stubs_of(channel)
        opened, makers, others = calls_by(calls, name)
        opening = consume.OpenConsume(group=name, topics=["a"])
        await opened.write(consume.ConsumeRequest(open=opening))
        for call in makers:
            code, info, message = await ending(call)
            assert (code.name, info.reason) == ("INVALID_ARGUMENT", "INVALID_NAME")
            assert RULE in message
            assert shown_safely(message)
        for call in others:
            code, info, message = await ending(call)
            if code is grpc.StatusCode.OK:  # entries are answered on their own
                [result] = (await call).results
                assert result.error.reason in {"INVALID_NAME", "GROUP_NOT_FOUND"}
                message = result.error.message
            else:
                assert code.name in {"INVALID_ARGUMENT", "NOT_FOUND"}, call
                assert info.reason in {"INVALID_NAME", "GROUP_NOT_FOUND"}, call
            assert shown_safely(message)
        commit = pb.Commit(topic="a", partition=0, offset=1)
        request = pb.CommitOffsetsRequest(group=name, commits=[commit])
        [result] = (await calls.groups.CommitOffsets(request)).results
        assert result.error.reason == "INVALID_NAME"
        assert RULE in result.error.message
    assert setting.has_nothing_new()


COMMANDS = (
    ["group", "create"],
    ["group", "describe"],
    ["group", "update", "--max-failures", "3"],
    ["group", "delete", "--yes"],
    ["group", "watch", "--count", "1"],
    ["group", "reset", "--to", "earliest", "--", None, "a"],
    ["explain", "--", None, "a", "0", "0"],
    ["dlq", "list", "--", None, "a"],
    ["dlq", "show", "--", None, "a", "0", "0"],
    ["dlq", "resolve", "--yes", "--", None, "a"],
    ["dlq", "copy", "--to", "a", "--", None, "a"],
    ["dlq", "redrive", "--", None, "a"],
    ["dlq", "redrives"],
    ["consume", "-n", "1", "--group", None, "a"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(filter(None, words[:2])))
def test_c54_every_command_refuses_them_too_and_says_why(setting, command):
    template = command if None in command else [*command, "--", None]
    names = list(REFUSED.values())
    commands = [[name if word is None else word for word in template] for name in names]
    for name, ended in zip(names, many(commands, server=setting.server), strict=True):
        assert ended.code == 1, (name, ended)
        assert RULE in ended.stderr, (name, ended)
        assert shown_safely(ended.stderr), name
        assert ended.stdout == ""
    assert setting.has_nothing_new()


def test_c54_a_group_s_name_that_looks_like_an_option_is_none(setting):
    ended = logbroker("group", "delete", "-rf", server=setting.server)
    assert ended.returncode == 2, "not understood"
    ended = logbroker("consume", "-g", "-rf", "a", server=setting.server)
    assert ended.returncode in {1, 2}
    assert setting.has_nothing_new()


def test_c54_errors_as_json_name_the_reason_and_stay_one_line(setting):
    commands = [["group", "create", "-o", "json", "--", name] for name in REFUSED.values()]
    for each in many(commands, server=setting.server):
        [line] = each.stderr.splitlines()
        assert reason_of(json.loads(line)) == "INVALID_NAME"
        assert line.isascii()


async def test_c54_names_that_are_alike_are_groups_of_their_own(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await make_topic(calls)
            await publish(calls, *[b"%d" % number for number in range(len(ALLOWED))])
            for count, name in enumerate(ALLOWED):  # each stands somewhere else
                async with member_on(calls, name) as member:
                    held = await member.delivery()
                    await member.settle(held, REJECT, 0, 1, reason=name)
                    if count:
                        await member.settle(held, end=count + 1, first=1)
            await check_alike(calls)
        broker.kill()
        broker.start()
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await check_alike(calls)
            listed = (await calls.topics.ListTopics(ListTopicsRequest(page_size=100))).topics
            dead = {f"a.{name}.dlq" for name in ALLOWED}
            assert {one.topic for one in listed} == {"a", *dead}
            on_disk = {path.name for path in (tmp_path / "data" / "topics").iterdir()}
            assert dead < on_disk
            await calls.groups.DeleteGroup(pb.DeleteGroupRequest(group="t"))
            assert (await ending(calls.groups.GetGroup(pb.GetGroupRequest(group="t"))))[0].name == (
                "NOT_FOUND"
            )
            assert (await group_of(calls, "T")).progress[0].committed_offset == 1


async def check_alike(calls) -> None:
    found = (await calls.groups.ListGroups(pb.ListGroupsRequest(page_size=100))).groups
    assert [one.group.group for one in found] == sorted(ALLOWED)
    for count, name in enumerate(ALLOWED):
        [one] = (await group_of(calls, name)).progress
        assert one.committed_offset == count + 1
        [letter] = await letters_of(calls, name)
        assert (letter.reason, letter.dead_letter_topic) == (name, f"a.{name}.dlq")


async def test_c54_the_name_of_a_dead_letter_topic_is_checked_before_anything_is_read(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await make_topic(calls)
            await publish(calls, b"0", b"1")
            longest = "g" * LONGEST
            async with member_on(calls, longest) as member:
                held = await member.delivery()
                await member.settle(held, REJECT, 0, 1)
                await member.settle(held, first=1, end=2)
            await check_nothing_left(calls, longest)
            [letter] = await letters_of(calls, longest)
            assert len(letter.dead_letter_topic) == NAME_CHARS

            for group in ("g" * (LONGEST + 1), "g" * NAME_CHARS):
                opened = calls.consume.Consume()
                opening = consume.OpenConsume(group=group, topics=["a"])
                await opened.write(consume.ConsumeRequest(open=opening))
                lease = consume.LeaseRequest(group=group, topics=["a"])
                for call in (opened, calls.consume.Lease(lease)):
                    code, info, message = await ending(call)
                    assert (code.name, info.reason) == ("INVALID_ARGUMENT", "INVALID_NAME")
                    assert RULE in message
                    assert f"a.{group}.dlq"[:NAME_CHARS] in message
                commit = pb.Commit(topic="a", partition=0, offset=1)
                request = pb.CommitOffsetsRequest(group=group, commits=[commit])
                [result] = (await calls.groups.CommitOffsets(request)).results
                assert result.error.reason == "INVALID_NAME"
                code, *_ = await ending(calls.groups.GetGroup(pb.GetGroupRequest(group=group)))
                assert code.name == "NOT_FOUND", "nor is the group made"

            await make_topic(calls, "a.h.dlq")
            code, info, _ = await ending(
                calls.consume.Lease(consume.LeaseRequest(group="h", topics=["a"]))
            )
            assert (code.name, info.reason) == ("ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS")


async def test_c54_two_groups_whose_dead_letters_would_be_one_topic_s_are_told_in_advance(tmp_path):
    """`a` and `b.c`, and `a.b` and `c`, would share `a.b.c.dlq`."""
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            for topic in ("a", "a.b"):
                await make_topic(calls, topic)
                await publish(calls, b"v", topic=topic)
            async with member_on(calls, "b.c") as member:
                await member.delivery()
                lease = consume.LeaseRequest(group="c", topics=["a.b"])
                code, info, message = await ending(calls.consume.Lease(lease))
                assert (code.name, info.reason) == ("ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS")
                assert "'a.b.c.dlq'" in message
                for group, topic in (("c", "a"), ("b.c", "a.b")):  # with names of their own
                    lease = consume.LeaseRequest(group=group, topics=[topic])
                    assert (await calls.consume.Lease(lease)).HasField("delivery")


LABELS = {
    "NUL": "a\0b",
    "newline": "a\n",
    "escape code": "a\x1b[31m",
    "right to left": "a\u202eb",
    "one too long": "n" * (NAME_CHARS + 1),
    "a megabyte": "n" * (1 << 20),
}
KEPT_LABELS = (
    "",
    "../x",
    "/etc/x",
    "%2e",
    "-rf",
    "__x",
    "a ",
    "zażółć",
    "T",
    "t",
    "n" * NAME_CHARS,
)


@pytest.mark.parametrize("field", ["client_id", "instance_id"])
@pytest.mark.parametrize("label", LABELS.values(), ids=LABELS)
async def test_c54_a_member_s_name_that_is_no_text_for_people_is_refused(setting, field, label):
    async with grpc.aio.insecure_channel(setting.server) as channel:
        opened = stubs_of(channel).consume.Consume()
        opening = consume.OpenConsume(group="g", topics=["a"], **{field: label})
        await opened.write(consume.ConsumeRequest(open=opening))
        code, info, message = await ending(opened)
        assert (code.name, info.reason) == ("INVALID_ARGUMENT", "INVALID_NAME")
        assert f"{field} is at most {NAME_CHARS} printable characters" in message
        assert shown_safely(message)
        assert len(message) < 1_000
    assert setting.has_nothing_new()


async def test_c54_members_whose_names_are_alike_are_members_of_their_own(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with grpc.aio.insecure_channel(broker.address) as channel:
            calls = stubs_of(channel)
            await make_topic(calls, partition_count=2 * len(KEPT_LABELS))
            members = [
                await member_of(calls, client_id=label, instance_id=label) for label in KEPT_LABELS
            ]
            for member in members:
                await member.until(lambda member=member: member.assignments[-1:] not in ([], [[]]))
            found = (await group_of(calls)).members
            assert sorted(one.client_id for one in found) == sorted(KEPT_LABELS)
            assert len({one.member_id for one in found}) == len(KEPT_LABELS)
            ended = many([["group", "describe", "g", *as_json] for as_json in ([], ["-o", "json"])],
                         server=broker.address)  # fmt: skip
            assert [each.code for each in ended] == [0, 0]
            assert shown_safely(ended[0].stdout)
            shown = [one["client_id"] for one in json.loads(ended[1].stdout)["members"]]
            assert sorted(shown) == sorted(KEPT_LABELS)
            for member in members:
                await member.leave()
