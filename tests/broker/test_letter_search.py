"""How much of a dead-letter topic is read to say what became of one record."""

import pytest

from logbroker.broker import letter_search
from logbroker.group.record_state import Cause

from .brokers import batch_of, topic_on
from .grouped import delivered, member_on, settle

DEAD = "a.g.dlq"


def reading(broker):
    """Returns how many bytes of the dead letters have been read from now on, as a list of one."""
    log, total = broker.engine._logs[DEAD, 0], [0]
    read = log.read

    async def counted(offset, max_bytes):
        run = await read(offset, max_bytes)
        total[0] += len(run.batches)
        return run

    log.read = counted
    return total


async def dead_letters(broker, member, count, value, *, at_once=100):
    """Lets the group give up so many records in front of all others."""
    done = 0
    while done < count:
        await broker.produce("a", "", 0, batch_of(*[value] * min(at_once, count - done)))
        token, first, end = await delivered(broker, member)
        await settle(broker, member, Cause.REJECT, token, first, end)
        done += end - first
    return end


async def explained(broker, offset):
    """Returns what is said of a record, and how much was read for that."""
    total = reading(broker)
    return await broker.groups.explain("g", "a", 0, offset), total[0]


@pytest.mark.parametrize("at_once", [1, 20], ids=["alone", "in batches"])
async def test_the_newest_dead_letters_are_found_without_reading_the_others(at_once):
    async with topic_on() as broker, member_on(broker, max_records=1_000) as member:
        end = await dead_letters(broker, member, 400, b"v" * 20_000, at_once=at_once)
        for offset in (0, 17, end - 1):
            found, size = await explained(broker, offset)
            assert found.details["dead_letter_offset"] == offset
        assert size < 3 << 20, "of 8 MiB"


async def test_a_search_ends_after_so_much_and_says_how_far_it_came(monkeypatch):
    monkeypatch.setattr(letter_search, "SEARCHED_BYTES", 2 << 20)
    monkeypatch.setattr(letter_search, "STEP_BYTES", 1 << 20)
    async with topic_on() as broker, member_on(broker, max_records=1_000) as member:
        end = await dead_letters(broker, member, 400, b"v" * 20_000, at_once=20)
        found, size = await explained(broker, 0)
        assert (found.state, set(found.details)) == (
            "settled",
            {"dead_letter_topic", "searched_from_offset"},
        )
        first = found.details["searched_from_offset"]
        assert end - 400 < first < end - 50
        assert f"from offset {first} of {DEAD}" in found.message
        assert size < 6 << 20
        found, _ = await explained(broker, first)
        assert found.state == "dead_lettered"


async def test_a_record_that_is_no_dead_letter_is_told_so_once_all_were_searched():
    async with topic_on() as broker, member_on(broker) as member:
        end = await dead_letters(broker, member, 300, b"v")
        await broker.produce("a", "", 0, batch_of(b"good"))
        token, first, stop = await delivered(broker, member)
        await settle(broker, member, Cause.ACKNOWLEDGE, token, first, stop)
        found, size = await explained(broker, end)
        assert (found.state, found.details) == ("settled", {})
        assert size >= broker.engine._logs[DEAD, 0].stats().size_bytes
