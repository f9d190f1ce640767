"""The charts of a report. Which there are is known without matplotlib; drawing them needs it."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.systems import SYSTEMS
from bench.report.page import chart_files, page
from bench.report.plan import LatencyChart, Overview, RatioChart, chapters
from bench.report.run import Run, read_run
from bench.report.systems import LOOKS, OURS, look_of
from tests.bench.report_run import PUBLISH, a_run, beside, written

PNG = b"\x89PNG\r\n\x1a\n"
MAX_BYTES = 100_000


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return read_run(written(tmp_path, a_run()))


def colours_of(path: Path) -> set[str]:
    from PIL import Image  # matplotlib brings it

    with Image.open(path) as picture:
        found = picture.convert("RGB").getcolors(picture.width * picture.height)
    return {f"#{red:02X}{green:02X}{blue:02X}" for _, (red, green, blue) in found or []}


def test_the_page_shows_every_chart_and_no_other(run: Run) -> None:
    files = [chart.file for chart in chart_files(run)]
    assert files == [
        "overview.png",
        "ratios-publish.png",
        "ratios-confirmed.png",
        "latencies-confirmed.png",
    ]
    text = page(run, None, "")
    assert [file for file in files if f"(charts/{file})" in text] == files
    assert text.count("(charts/") == len(files)


def test_a_long_section_has_a_chart_for_each_level(tmp_path: Path) -> None:
    run = a_run()
    levels = ("synced", "written")
    whats = [f"at {rate}/s, {level}" for rate in range(11) for level in levels]
    theirs = {"kafka": 1.0, "nats": 2.0}
    rows = [row for what in whats for row in beside(what, "us", 1.0, theirs)]
    run["sections"] = [{"title": "Paced", "rows": rows}]
    (chapter,) = chapters(read_run(written(tmp_path, run)))
    assert [chart.file for chart in chapter.ratios] == [
        "ratios-paced-synced.png",
        "ratios-paced-written.png",
    ]
    assert sum(len(chart.workloads) for chart in chapter.ratios) == len(whats)


def test_a_chart_knows_the_better_side_of_times_and_of_rates(run: Run) -> None:
    advantages = {
        peer.who: round(peer.advantage, 3)
        for chapter in chapters(run)[:2]
        for workload in chapter.workloads
        for peer in workload.peers
        if peer.advantage is not None and peer.who in ("nats", "redis")
    }
    assert advantages == {"nats": 10.0, "redis": 0.5}


def test_every_chart_tells_who_is_not_in_it(run: Run) -> None:
    for chart in chart_files(replace(run, failed={**run.failed, "start, written, redis": ("no",)})):
        assert chart.absent == ("RabbitMQ stream (not installed)", "Redis, written (did not start)")
        if isinstance(chart, LatencyChart):
            assert chart.failed == ("nats",)
            assert list(chart.panels["confirmed, synced"]) == ["logbroker", "kafka", "limit"]


def test_every_system_that_is_measured_has_a_look() -> None:
    measured = {name: system.title for name, system in SYSTEMS.items()}
    assert {name: LOOKS[name].title for name in measured} == measured


def test_no_two_systems_look_alike() -> None:
    assert len({look.colour for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_every_chart_is_drawn_small_and_the_same_each_time(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="charts need it: pip install -e '.[report]'")
    from bench.report.drawing import draw

    charts = list(chart_files(run))
    assert {type(chart) for chart in charts} == {Overview, RatioChart, LatencyChart}
    for chart in charts:
        first, again = tmp_path / chart.file, tmp_path / "again.png"
        draw(chart, first)
        draw(chart, again)
        assert first.read_bytes() == again.read_bytes()
        assert first.read_bytes().startswith(PNG)
        assert first.stat().st_size < MAX_BYTES
        assert look_of(OURS).colour in colours_of(first)


def test_a_chart_of_bars_says_what_failed_and_what_was_reached(run: Run) -> None:
    pytest.importorskip("matplotlib", reason="charts need it: pip install -e '.[report]'")
    from bench.report.ratio_bars import draw_bars

    (chart,) = chapters(run)[0].ratios
    figure = draw_bars(chart).figure
    (axes,) = figure.axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["Kafka", "NATS", "Redis", "Kafka, Java load tool"]
    texts = [text.get_text() for text in axes.texts]
    assert {PUBLISH, "logbroker: 300 k/s", "failed", "10.0x  (30.0 k/s)"} <= set(texts)
    assert axes.get_xscale() == "log"
    assert "log scale" in axes.get_xlabel()


def test_ratios_of_zero_and_without_end_are_drawn_at_the_edge(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="charts need it: pip install -e '.[report]'")
    from bench.report.drawing import draw

    run = a_run()
    rows = beside("kept, synced", "%", 0, {"kafka": 50.0})
    rows += beside("start", "s", 0, {"kafka": 2.0, "nats": 1.0})
    run["sections"] = [{"title": "Zeros", "rows": rows}]
    for chart in chart_files(read_run(written(tmp_path, run))):
        draw(chart, tmp_path / chart.file)
        assert (tmp_path / chart.file).read_bytes().startswith(PNG)
