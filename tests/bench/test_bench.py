"""The harness of bench/, run in a tiny form. What it measures here means nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FIELDS = {"name", "value", "unit", "limit", "ratio", "goal", "met", "samples"}
GOALS = {
    "written 100 B x 1,000",
    "written 1,000 B x 1,000",
    "synced 100 B x 1,000",
    "synced 1,000 B x 1,000",
    "raw 100 B",
    "raw 1,000 B",
    "decoded 100 B",
    "decoded 1,000 B",
    "written p50",
    "written p99",
    "synced p50",
    "synced p99",
    "send, 100 B",
    "send, 1,000 B",
    "partition order, automatic",
    "none order, each acknowledged",
    "none order, worker of 16",
    "5 groups, handlers of 2 ms",
    "producer of 200 batches/s, 5 groups follow",
    "to a consumer's loop p50",
    "to a worker's handler p50",
    "RSS, 1,000 waiting, difference",
    "idle CPU, 1,000 waiting",
    "start, clean, 20 segments",
    "start, killed, 1,000 commits journaled",
    "RSS idle, 20 segments",
    "RSS idle, no data",
    "RSS after 4 MiB written and read",
}
MAY_BE_NOTHING = {
    "RSS, 1,000 waiting, difference",
    "idle CPU, nothing waiting",
    "idle CPU, 1,000 waiting",
}


@pytest.mark.slow
def test_every_row_is_measured_and_written_down(tmp_path: Path) -> None:
    output = tmp_path / "latest.json"
    command = [sys.executable, "-m", "bench", "--scale", "tiny", "--output", str(output)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())
    assert all(row.keys() == FIELDS for row in rows)
    by_name = {row["name"]: row for row in rows}
    assert len(by_name) == len(rows)
    for row in rows:
        assert row["value"] > 0 or row["name"] in MAY_BE_NOTHING, row
        assert row["name"] in done.stdout
        assert (row["goal"] is None) == (row["met"] is None), row
        assert (row["limit"] is None) == (row["ratio"] is None), row
        if row["limit"]:
            limit = by_name[row["limit"]]
            assert limit["unit"] == row["unit"]
            assert row["ratio"] == pytest.approx(row["value"] / limit["value"], abs=0.01, rel=0.01)
    assert {name for name, row in by_name.items() if row["goal"]} == GOALS
    met = sum(row["met"] is True for row in rows)
    assert f"goals met: {met}, missed: {len(GOALS) - met}" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["latest.json"], "the data is removed"
