"""`log lost`: topics of which damage took all but their files."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable

import pytest
from broker.brokers import batch_of, values_of
from broker.grouped import delivered, member_on, settle
from cases.data_dirs import open_broker_on
from typer.testing import CliRunner

from logbroker.broker.broker import Broker
from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.cli.log import app
from logbroker.group.record_state import Cause
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings

pytestmark = pytest.mark.slow

LETTERS = DeadLetterFilter(group="g", topic="a")


def run(*arguments, code=0):
    ran = CliRunner().invoke(app, ["lost", *map(str, arguments)])
    assert ran.exit_code == code, ran.output
    return ran.output


def with_broker(data_dir, work: Callable[[Broker], Awaitable[None]]):
    """Starts a broker in a data directory, works with it, stops it."""

    async def start():
        clock = ManualClock()
        async with open_broker_on(data_dir, clock) as broker:
            broker.clock = clock
            await work(broker)

    asyncio.run(start())


async def fill(broker):
    """Two topics of three partitions; a group is done with a record of `a`, and gave one up."""
    for name in ("a", "b"):
        await broker.create_topic(name, 3, TopicSettings(retention_ms=77_000))
        await broker.produce(name, "", 1, batch_of(b"0", b"1", b"2"))
    async with member_on(broker) as member:
        token, first, _ = await delivered(broker, member)
        await settle(broker, member, Cause.ACKNOWLEDGE, token, first, 1)
        await settle(broker, member, Cause.REJECT, token, 1, 2, reason="bad")


@pytest.fixture
def data_dir(tmp_path):
    """All topics of it are lost."""
    made = tmp_path / "data"
    with_broker(made, fill)
    shutil.rmtree(made / "topics/__topics")
    return made


def listing(data_dir):
    return {path: path.read_bytes() for path in data_dir.rglob("*") if path.is_file()}


def test_what_is_lost_is_listed_and_nothing_is_changed(data_dir):
    before = listing(data_dir)
    lines = run(data_dir).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["a", "a.g.dlq", "b"]
    assert all("3 partitions of topic " in line for line in lines)
    rows = list(map(json.loads, run(data_dir, "-o", "json").splitlines()))
    assert (rows[0]["topic"], rows[0]["partitions"]) == ("a", [0, 1, 2])
    assert listing(data_dir) == before


def test_where_nothing_is_lost_that_is_said(tmp_path):
    with_broker(tmp_path, fill)
    assert run(tmp_path) == "no topic is lost\n"
    run(tmp_path, "--take-back", "a", code=1)
    run(tmp_path, "--put-aside", "a", code=1)


def test_what_is_taken_back_is_what_it_was(data_dir):
    told = run(data_dir, "--take-back", "a", "--take-back", "a.g.dlq")
    assert "a: taken back\n" in told
    assert "logbroker topic update a" in told

    async def look(broker):
        assert broker.stats().damaged_topics == ("b",)
        assert await values_of(broker, partition=1) == [b"0", b"1", b"2"]
        settings = broker.get_topic("a").settings
        assert (settings.retention_ms, settings.retention_bytes) == (0, 0)
        found, _ = await broker.dead_letters.list_page(
            LETTERS, with_resolved=False, page_size=0, page_token=""
        )
        assert [(one.letter.reason, one.letter.offset) for one in found] == [("bad", 1)]
        async with member_on(broker) as member:
            _, first, end = await delivered(broker, member)
            assert (first, end) == (2, 3), "the group goes on where it was"
            await broker.dead_letters.start_redrive(LETTERS)
            redriven, _, _ = await delivered(broker, member)
            [done] = await settle(broker, member, Cause.ACKNOWLEDGE, redriven, 0, 1)
            assert done.error is None

    with_broker(data_dir, look)
    assert run(data_dir).startswith("b: ")


def test_what_is_put_aside_lies_there_as_it_was_and_its_name_is_free(data_dir):
    files = {path.name: data for path, data in listing(data_dir / "topics/a/1").items()}
    assert str(data_dir / "lost/a") in run(data_dir, "--put-aside", "a")
    moved = {path.name: data for path, data in listing(data_dir / "lost/a/1").items()}
    assert moved == files

    async def make_again(broker):
        await broker.create_topic("a", 1, TopicSettings())
        assert await values_of(broker) == []
        assert [one for one in await broker.groups.progress("g") if one.topic == "a"] == []

    with_broker(data_dir, make_again)
    shutil.rmtree(data_dir / "topics/__topics")
    assert "lost/a~2" in run(data_dir, "--put-aside", "a"), "beside the first"
    assert (data_dir / "lost/a/1").exists()


@pytest.mark.parametrize("choice", ["--take-back", "--put-aside"])
def test_a_dry_run_says_the_same_and_changes_nothing(data_dir, choice):
    before = listing(data_dir)
    told = run(data_dir, choice, "a", "--dry-run")
    assert listing(data_dir) == before
    assert told.replace("dry run, nothing is changed: ", "") == run(data_dir, choice, "a")


def test_what_is_missing_or_cannot_be_read_is_named_and_stays_so(data_dir):
    shutil.rmtree(data_dir / "topics/a/0")
    (data_dir / "topics/a/2/checkpoint").write_bytes(b"noise")
    told = run(data_dir, "--take-back", "a")
    assert "partition 0 is not there: it begins empty" in told
    assert "partition 2 has no whole checkpoint: it stays TOPIC_DAMAGED" in told

    async def look(broker):
        statuses = broker.partition_statuses(broker.get_topic("a"))
        assert [one.failure for one in statuses] == ["", "", "TOPIC_DAMAGED"]
        assert [one.high_watermark for one in statuses] == [0, 3, 0]

    with_broker(data_dir, look)


def test_nobody_guesses_which_topic_it_was(data_dir):
    for number in range(3):
        (data_dir / f"topics/a/{number}/checkpoint").write_bytes(b"noise")
    shutil.copytree(data_dir / "topics/b/0", data_dir / "topics/c/0")
    of_c = json.loads((data_dir / "topics/c/0/checkpoint").read_bytes().splitlines()[0])
    assert of_c["topic"] == "b"
    before = listing(data_dir)
    assert "TOPIC_DAMAGED" in run(data_dir, "--take-back", "b", "--take-back", "a", code=1)
    assert "TOPIC_DAMAGED" in run(data_dir, "--take-back", "c", code=1)
    assert listing(data_dir) == before, "all or none"
    run(data_dir, "--put-aside", "a", "--put-aside", "c")
    assert run(data_dir).startswith("a.g.dlq: ")


def test_nothing_is_changed_while_a_broker_is_there_and_it_may_be_looked(data_dir):
    async def try_it(_):
        for choice in ("--take-back", "--put-aside"):
            told = await asyncio.to_thread(run, data_dir, choice, "a", code=1)
            assert "BROKER_RUNNING" in told
        assert (await asyncio.to_thread(run, data_dir)).startswith("a: ")

    with_broker(data_dir, try_it)


def test_a_directory_of_something_else_is_a_plain_error(tmp_path):
    assert "is no data directory" in run(tmp_path, code=1)
    assert list(tmp_path.iterdir()) == []


def test_a_topic_is_either_taken_back_or_put_aside(data_dir):
    run(data_dir, "--take-back", "a", "--put-aside", "a", code=2)
