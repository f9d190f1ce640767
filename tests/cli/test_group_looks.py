from dataclasses import replace

from logbroker.cli.group_looks import Look, Looks, Screen
from logbroker.client.group_status import (
    GroupDescription,
    GroupInfo,
    GroupSummary,
    PartitionProgress,
)
from logbroker.group.settings import GroupSettings

GROUP = GroupInfo("g", GroupSettings(), 0, ("t",))
AT_REST = PartitionProgress(
    topic="t", partition=0, committed_offset=0, high_watermark=100, log_start_offset=0, lag=100,
    age_ms=5_000, leased_count=0, waiting_count=0, parked_count=0, failed_count=0,
    expired_unsettled_count=0, member_id="", waits_for="",
)  # fmt: skip


def look(now_ms: int, *progress: PartitionProgress) -> Look:
    return Look(now_ms, GroupDescription(GROUP, (), progress, ()))


def rates(*looks: Look) -> list[tuple[str, str]]:
    table = Looks()
    rows = [dict(zip(*_one(table.rows(each)), strict=True)) for each in looks]
    return [(row["appended/s"], row["settled/s"]) for row in rows]


def _one(shown: tuple[tuple[str, ...], object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    columns, (row,) = shown  # type: ignore[misc]
    return columns, row


def test_from_the_second_look_on_it_is_seen_how_fast_a_group_settles_and_a_log_grows() -> None:
    grown = replace(AT_REST, committed_offset=40, lag=80, high_watermark=120)
    assert rates(look(0, AT_REST), look(500, AT_REST), look(1_000, grown)) == [
        ("-", "-"), ("0", "0"), ("40", "80"),
    ]  # fmt: skip


def test_records_settled_behind_one_that_is_stuck_count() -> None:
    settled_above = replace(AT_REST, lag=50)  # the committed offset has not moved
    assert rates(look(0, AT_REST), look(1_000, settled_above))[1] == ("0", "50")


def test_neither_what_retention_took_nor_a_reset_backwards_is_a_rate() -> None:
    expired = replace(AT_REST, log_start_offset=30, lag=70, expired_unsettled_count=30)
    back = replace(AT_REST, committed_offset=60, lag=40)
    assert rates(look(0, AT_REST), look(1_000, expired))[1] == ("0", "0")
    assert rates(look(0, back), look(1_000, AT_REST))[1] == ("0", "-")


def test_a_screen_is_never_folded_and_keeps_what_tells_most() -> None:
    screen = Screen()
    stuck = replace(AT_REST, topic="t" * 60, waiting_count=1, failed_count=1, waits_for="waiting")
    screen.see(look(0, stuck))
    for width in (200, 120, 80, 60):
        lines = screen.text(width, 24).plain.splitlines()[1:]
        assert max(map(len, lines)) <= width
        assert {"LAG", "AGE", "WAITS"} <= set(lines[0].split())
        assert "waiting" in lines[1].split()
    assert "COMMITTED" in screen.text(200, 24).plain
    assert "COMMITTED" not in screen.text(80, 24).plain


def test_a_low_screen_shows_the_oldest_and_says_how_many_more_there_are() -> None:
    screen = Screen()
    many = [replace(AT_REST, partition=n, age_ms=n % 100 * 1_000) for n in range(200)]
    screen.see(look(0, *many))
    lines = screen.text(80, 14).plain.splitlines()
    assert len(lines) == 13
    assert [line.split()[1] for line in lines[2:6]] == ["99", "199", "98", "198"]
    assert lines[-1] == "... and 190 more, none of them older"
    assert lines[0].endswith("g: lag 20000, oldest 1m39s, 0 members")


def test_all_groups_at_a_glance_fit_as_well() -> None:
    screen = Screen()
    screen.see(Look(0, [GroupSummary(GROUP, 1, 12, 3_000, 4, 5)]))
    title, columns, row = screen.text(80, 24).plain.splitlines()
    assert title.endswith("1 group")
    assert dict(zip(columns.lower().split(), row.split(), strict=False))["blocked"] == "4"


def test_a_broker_that_does_not_answer_is_seen_until_it_does() -> None:
    screen = Screen()
    screen.see(look(0, AT_REST))
    screen.silent_ms = 4_000
    assert "NO ANSWER for 4s" in screen.text(80, 24).plain
    screen.see(look(9_000, AT_REST))
    assert "NO ANSWER" not in screen.text(80, 24).plain
