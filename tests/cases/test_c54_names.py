"""C54: names: an allowed set, said where it is broken, and nothing outside the data directory."""

import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from cases.commands import Ended, logbroker, many
from cases.raw import produce_request
from logbroker.client.blocking import BlockingClient
from logbroker.limits import NAME_CHARS
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.names import RULE
from logbroker.v1 import topic_service_pb2 as topics
from logbroker.v1.fetch_service_pb2 import FetchRequest, FindOffsetRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage
from logbroker.v1.topic_service_pb2_grpc import TopicServiceStub
from logbroker.wire.status import error_of

REFUSED = {
    "empty": "",
    "dot": ".",
    "dots": "..",
    "up": "../x",
    "up in the midst": "a/../../x",
    "slash": "a/b",
    "backslash": "a\\b",
    "NUL": "a\0b",
    "absolute": "/etc/x",
    "percent": "%2e%2e%2f",
    "one too long": "n" * (NAME_CHARS + 1),
    "249": "n" * 249,
    "250": "n" * 250,
    "300": "n" * 300,
    "accents": "zażółć",
    "decomposed": "e\u0301",
    "option": "-rf",
    "reserved": "__x",
    "internal": "__topics",
    "trailing space": "a ",
    "leading space": " a",
    "newline": "a\n",
    "newline in front": "\na",
    "escape code": "a\x1b[31m",
    "right to left": "a\u202eb",
    "colon": "C:",
    "emoji": "\U0001f600",
    "digits of another script": "\u0661",
}
ALLOWED = ("T", "t", "a.b", "a_b", "a-b", "CON", "con.txt", "...", "_x", "0", "n" * NAME_CHARS)
BOTH = pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)

pytestmark = pytest.mark.slow


class Setting:
    """A broker whose data directory stands alone in `parent`."""

    def __init__(self, parent: Path, broker: BrokerProcess) -> None:
        self.parent = parent
        self.broker = broker
        self.server = broker.address
        self._names = self._names_elsewhere()

    def topic_directories(self) -> set[str]:
        found = (self.parent / "data" / "topics").iterdir()
        return {path.name for path in found if not path.name.startswith("__")}

    def new_names_elsewhere(self) -> set[str]:
        """Returns what has come up beside the data directory, or in it but not under `topics`."""
        return self._names_elsewhere() - self._names

    def _names_elsewhere(self) -> set[str]:
        paths = [*self.parent.iterdir(), *(self.parent / "data").iterdir()]
        return {str(path.relative_to(self.parent)) for path in paths}


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    parent = tmp_path_factory.mktemp("c54")
    with BrokerProcess(parent / "data") as broker, BlockingClient(broker.address) as client:
        for name in ALLOWED:
            client.admin.create_topic(name)
            client.producer(name).publish(name.encode())
        yield Setting(parent, broker)


def shown_safely(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)


@BOTH
async def test_a_name_that_breaks_the_rule_is_refused_by_every_call(setting, name):
    record = RecordMessage(value=b"v")
    async with grpc.aio.insecure_channel(setting.server) as channel:
        topic, fetch = TopicServiceStub(channel), FetchServiceStub(channel)
        produce = ProduceServiceStub(channel)
        refused = await failure_of(topic.CreateTopic(topics.CreateTopicRequest(topic=name)))
        assert refused.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error_of(refused).reason == "INVALID_NAME"
        assert RULE in (refused.details() or "")
        assert shown_safely(refused.details() or "")
        calls = [
            topic.GetTopic(topics.GetTopicRequest(topic=name)),
            topic.UpdateTopic(topics.UpdateTopicRequest(topic=name)),
            topic.GrowTopic(topics.GrowTopicRequest(topic=name, partition_count=2)),
            topic.DeleteTopic(topics.DeleteTopicRequest(topic=name)),
            topic.TrimTopic(topics.TrimTopicRequest(topic=name, offset=1)),
            produce.Publish(PublishRequest(topic=name, records=[record])),
            fetch.FindOffset(FindOffsetRequest(topic=name)),
            fetch.Fetch(FetchRequest(topic=name)).read(),
        ]
        for call in calls:
            code = (await failure_of(call)).code()
            assert code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND)
        stream = produce.Produce()
        await stream.write(produce_request(name, [b"v"]))
        (result,) = (await stream.read()).results
        assert result.error.reason in ("INVALID_NAME", "TOPIC_NOT_FOUND")
        await stream.done_writing()
    assert setting.topic_directories() == set(ALLOWED)
    assert setting.new_names_elsewhere() == set()


async def failure_of(call: object) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call  # type: ignore[misc]
    return caught.value


def test_the_command_refuses_them_too_and_says_why(setting):
    names = list(REFUSED.values())
    for verb in ("create", "describe", "delete"):
        options = ["--yes"] if verb == "delete" else []
        ended = many(
            [["topic", verb, *options, "--", name] for name in names], server=setting.server
        )
        for name, each in zip(names, ended, strict=True):
            assert each.code == 1, (verb, name, each)
            assert RULE in each.stderr, (verb, name, each)
            assert shown_safely(each.stderr), (verb, name)
    for verb in ("produce", "fetch"):
        for each in many([[verb, "--", name] for name in names], server=setting.server):
            assert (each.code, RULE in each.stderr) == (1, True), each
    assert setting.topic_directories() == set(ALLOWED)
    assert setting.new_names_elsewhere() == set()


def test_errors_as_json_name_the_reason_and_stay_one_line(setting):
    commands = [["topic", "create", "-o", "json", "--", name] for name in REFUSED.values()]
    for each in many(commands, server=setting.server):
        (line,) = each.stderr.splitlines()
        assert reason_of(json.loads(line)) == "INVALID_NAME"
        assert line.isascii()


def reason_of(error: dict[str, object]) -> object:
    return error.get("reason") or error["error"]["reason"]  # type: ignore[index]


def test_a_name_that_looks_like_an_option_is_none(setting):
    ended = logbroker("topic", "delete", "-rf", server=setting.server)
    assert ended.returncode == 2, "not understood"
    ended = logbroker("topic", "delete", "--yes", "--", "-rf", server=setting.server)
    assert ended.returncode == 1
    assert RULE.encode() in ended.stderr
    assert setting.topic_directories() == set(ALLOWED)


def test_names_that_are_alike_stay_apart_on_disk_and_after_a_restart(setting):
    def check() -> None:
        assert setting.topic_directories() == set(ALLOWED)
        with BlockingClient(setting.server) as client:
            assert {topic.topic for topic in client.admin.list_topics()} == set(ALLOWED)
            for name in ALLOWED:
                with client.reader(name) as reader:
                    assert [record.value for record in reader] == [name.encode()]

    check()
    assert setting.broker.stop() == 0
    setting.broker.start()
    check()
    ended: list[Ended] = many([["topic", "list", "-o", "json"]], server=setting.server)
    assert [json.loads(line)["topic"] for line in ended[0].stdout.splitlines()] == sorted(ALLOWED)


def test_a_deleted_topic_takes_no_other_along(setting):
    with BlockingClient(setting.server) as client:
        for name in ("a.c", "a_c", "A.c"):
            client.admin.create_topic(name)
            client.producer(name).publish(name.encode())
        client.admin.delete_topic("a.c")
        assert setting.topic_directories() == {*ALLOWED, "a_c", "A.c"}
        for name in ("a_c", "A.c"):
            with client.reader(name) as reader:
                assert [record.value for record in reader] == [name.encode()]
            client.admin.delete_topic(name)
    assert setting.topic_directories() == set(ALLOWED)
