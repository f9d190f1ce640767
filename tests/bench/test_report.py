"""The page of a report: what it says of wins, losses, failures and zeros, and what it refuses."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.report.fields import UnreadableError
from bench.report.page import page
from bench.report.run import measured_again, read_own_run, read_run
from tests.bench.report_run import CONFIRMED, PUBLISH, a_run, own_rows, written

ROOT = Path(__file__).parents[2]


@pytest.fixture
def text(tmp_path: Path) -> str:
    return page(read_run(written(tmp_path, a_run())), None, "")


def line_of(text: str, start: str) -> list[str]:
    """Returns the cells of the last line of a table that begins so."""
    lines = [line for line in text.splitlines() if line.startswith(f"| {start} |")]
    return [cell.strip() for cell in lines[-1].strip("|").split(" | ")]


def test_a_page_says_on_what_and_when_it_was_measured(text: str) -> None:
    assert line_of(text, "machine") == ["machine", "2 CPUs (Slow \\| Steady), 4 GiB"]
    assert line_of(text, "date") == ["date", "2026-11-29T10:00:00+00:00"]
    assert line_of(text, "measured") == ["measured", "medians of 3 interleaved rounds"]
    assert line_of(text, "versions") == ["versions", "logbroker 0.1.0, Apache Kafka 4.4.0"]
    assert "RabbitMQ streams: not installed" in line_of(text, "not installed")[1]


def test_what_was_measured_again_takes_the_place_of_what_was(tmp_path: Path) -> None:
    first, later = a_run(), a_run()
    section, *_ = later["sections"] = [
        one
        for one in later["sections"]
        if any(row["name"].startswith(PUBLISH) for row in one["rows"])
    ]
    later["date"] = "2026-11-30T10:00:00+00:00"
    for row in section["rows"]:
        row["value"] *= 2
    run = read_run(written(tmp_path, first))
    again = measured_again(run, read_run(written(tmp_path, later)))
    text = page(again, None, "")
    assert line_of(text, PUBLISH)[1] == "600 k/s"
    assert line_of(text, f"{CONFIRMED}, p99")[1] == "1.30 ms"
    assert line_of(text, "measured again, later")[1] == f"{section['title']} ({later['date']})"


def test_what_was_measured_again_elsewhere_is_refused(tmp_path: Path) -> None:
    first, later = a_run(), a_run()
    later["machine"] = "another"
    run = read_run(written(tmp_path, first))
    with pytest.raises(UnreadableError, match="another machine"):
        measured_again(run, read_run(written(tmp_path, later)))


def test_a_ratio_is_bold_where_logbroker_is_behind(text: str) -> None:
    cells = line_of(text, PUBLISH)
    assert cells[1:] == [
        "300 k/s",
        "400 k/s · **0.750**",
        "30.0 k/s · 10.0",
        "*failed*",
        "1.00 M/s · **0.300**",
    ]


def test_of_times_the_larger_ratio_is_the_worse_one(text: str) -> None:
    cells = line_of(text, f"{CONFIRMED}, p99")
    assert cells[1:] == [
        "1.30 ms",
        "2.60 ms · 0.500",
        "*failed*",
        "650 µs · **2.00**",
        "1.00 ms · **1.30**",
    ]


def test_the_systems_have_one_order(text: str) -> None:
    heads = [line for line in text.splitlines() if line.startswith("|  | logbroker |")]
    assert heads == [
        "|  | logbroker | Kafka | NATS | Redis | Kafka, Java load tool |",
        "|  | logbroker | Kafka | NATS | Redis | bare limit |",
        "|  | logbroker | Kafka | Redis |",
    ]


def test_nothing_lost_is_a_zero_and_not_a_gap(text: str) -> None:
    assert line_of(text, "confirmed and lost, synced") == [
        "confirmed and lost, synced",
        "0",
        "0",
        "311",
    ]


def test_goals_are_told_apart_into_met_missed_and_not_measured(text: str) -> None:
    assert "Goals met: 2, missed: 2, not measured: 1. Values that are missing" in text
    assert "because a measurement failed: 2." in text
    goals = text.partition("Goals met")[2].partition("###")[0]
    starts = (PUBLISH, f"{CONFIRMED}, p99", "confirmed and lost, synced")
    assert [line_of(goals, start)[1:] for start in starts] == [
        ["≥ 1.5 x Kafka; ≥ 2 x the others", "NATS 10.0", "**Kafka 0.750**", "Redis"],
        ["≤ 1 x the best peer", "", "**Redis 2.00**", ""],
        ["≤ 0", "0", "", ""],
    ]


def test_the_page_says_what_makes_an_answer_durable(text: str) -> None:
    levels = text.partition("Two levels")[2].partition("##")[0]
    assert line_of(levels, "logbroker")[1:] == ["fdatasync", "does not have it"]
    assert line_of(levels, "Kafka")[1:] == ["fsync \\| each", "acks=all"]


def test_a_row_of_more_rounds_is_told(tmp_path: Path) -> None:
    run = a_run()
    run["sections"][1]["rows"][0]["samples"] = [1, 2, 3, 4]
    text = page(read_run(written(tmp_path, run)), None, "")
    assert line_of(text, "measured")[1] == "medians of 3 to 4 interleaved rounds"


def test_what_failed_is_listed_with_its_last_words_on_one_line(text: str) -> None:
    assert (
        f"- Redis: {PUBLISH}: failed 2 times, last with `TimeoutError: no answer after 60 s`"
        in text
    )
    assert "- NATS: confirmed, synced: failed 1 time, last with" in text


def test_what_could_not_be_filled_has_failed_to_be_read(tmp_path: Path) -> None:
    run = a_run()
    run["failed"] = {f"fill to {PUBLISH}, redis": ["gone"]}
    assert line_of(page(read_run(written(tmp_path, run)), None, ""), PUBLISH)[4] == "*failed*"


def test_a_failure_at_one_level_is_none_at_the_other(tmp_path: Path) -> None:
    run = a_run()
    run["failed"] = {"SIGKILL, written, redis": ["gone"]}
    written_what, rows = PUBLISH.replace("synced", "written"), run["sections"][0]["rows"]
    rows.append({**rows[0], "name": f"{written_what}, kafka"})
    run["sections"] = [{"title": "SIGKILL", "rows": rows}]
    text = page(read_run(written(tmp_path, run)), None, "")
    assert "*failed*" not in line_of(text, PUBLISH)
    assert "*failed*" in line_of(text, written_what)


def test_where_logbroker_itself_failed_the_others_are_shown_without_ratios(tmp_path: Path) -> None:
    run = a_run()
    rows = run["sections"][0]["rows"]
    run["sections"][0]["rows"] = [row for row in rows if "logbroker" not in row["name"]]
    run["failed"] = {f"{PUBLISH}, logbroker": ["AssertionError: ours"]}
    text = page(read_run(written(tmp_path, run)), None, "")
    assert line_of(text, PUBLISH)[1:] == ["*failed*", "400 k/s", "30.0 k/s", "1.00 M/s"]
    assert f"- logbroker: {PUBLISH}: failed 1 time" in text


def test_a_zero_beside_us_has_no_ratio(tmp_path: Path) -> None:
    run = a_run()
    for row in run["sections"][0]["rows"]:
        if row["name"] == f"{PUBLISH}, nats":
            row["value"] = 0
    assert line_of(page(read_run(written(tmp_path, run)), None, ""), PUBLISH)[3] == "0/s"


def test_remarks_are_copied_as_they_are(tmp_path: Path) -> None:
    text = page(read_run(written(tmp_path, a_run())), None, "\nWe lose **here**.\n\n- and why\n")
    assert "## Remarks\n\nWe lose **here**.\n\n- and why\n\n## Side by side" in text


def test_our_own_bench_is_a_section_of_its_own(tmp_path: Path) -> None:
    own = written(tmp_path, own_rows())
    os.utime(own, (1_700_000_000, 1_700_000_000))
    found = read_own_run(own)
    text = page(read_run(written(tmp_path, a_run())), found, "").partition("## Our own bench")[2]
    assert "measured 2023-11-14, medians of 3 rounds. Goals met: 2, missed: 1." in text
    cells = ["bare, 100 B", "90.0 MB/s", "900 MB/s", "0.100", "≥ 0.2", "**missed**"]
    assert line_of(text, "decoded 100 B")[1:] == cells
    assert line_of(text, "RSS idle")[2] == "0 MiB"


def _without(*path: str | int) -> Callable[[Any], None]:
    def remove(run: Any) -> None:
        for step in path[:-1]:
            run = run[step]
        del run[path[-1]]

    return remove


def _with(value: object, *path: str | int) -> Callable[[Any], None]:
    def put(run: Any) -> None:
        for step in path[:-1]:
            run = run[step]
        run[path[-1]] = value

    return put


@pytest.mark.parametrize(
    "spoil, complaint",
    [
        (_without("machine"), "machine is missing"),
        (_without("sections", 1, "title"), "sections[1].title is missing"),
        (_without("sections", 0, "rows", 2, "unit"), "sections[0].rows[2].unit is missing"),
        (
            _with("fast", "sections", 0, "rows", 0, "value"),
            "sections[0].rows[0].value must be a number, is str",
        ),
        (_with(None, "sections"), "sections must be a list, is null"),
        (_with([[0.5]], "distributions", "a, b"), 'distributions["a, b"][0] must be a part and'),
        (_with("yes", "sections", 0, "rows", 0, "met"), "rows[0].met must be true or false"),
    ],
)
def test_a_run_that_cannot_be_read_is_refused_with_the_place(
    tmp_path: Path, spoil: Callable[[Any], None], complaint: str
) -> None:
    run = a_run()
    spoil(run)
    with pytest.raises(UnreadableError) as refused:
        read_run(written(tmp_path, run))
    assert complaint in str(refused.value)


def test_what_nobody_asks_for_may_be_there_or_not(tmp_path: Path) -> None:
    run = a_run()
    run["weather"] = "mild"
    for name in ("skipped", "failed", "distributions"):
        del run[name]
    assert read_run(written(tmp_path, run)).failed == {}


def test_the_command_writes_the_page_again_and_leaves_the_remarks(tmp_path: Path) -> None:
    (tmp_path / "REMARKS.md").write_text("Ours.\n")
    run = written(tmp_path, a_run())
    command = [sys.executable, "-m", "bench.report", run, "--no-charts", "--directory", tmp_path]
    for _ in range(2):
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    assert (tmp_path / "REMARKS.md").read_text() == "Ours.\n"
    assert (tmp_path / "RESULTS.md").read_text().count("Ours.") == 1


def test_the_command_ends_with_the_field_that_is_missing(tmp_path: Path) -> None:
    run = written(tmp_path, {"machine": "any", "date": "today", "rounds": 1, "versions": {}})
    command = [sys.executable, "-m", "bench.report", run, "--no-charts", "--directory", tmp_path]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "cannot be rendered: sections is missing\n")
