"""A run with nobody beside us, in a tiny form. What it measures here means nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_a_run_without_peers_measures_us_and_lists_the_others_as_skipped(tmp_path: Path) -> None:
    output = tmp_path / "results" / "peers.json"
    command = [sys.executable, "-m", "bench.peers", "--scale", "tiny", "--rounds", "2"]
    command += ["--only", "publish", "confirm", "--systems", "kafka"]
    done = subprocess.run(
        [*command, "--output", str(output)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LOGBROKER_PEERS_DIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert "SKIPPED: Apache Kafka: not installed: Kafka's jars" in done.stdout
    run = json.loads(output.read_text())
    assert run.keys() >= {"machine", "date", "rounds", "versions", "goals", "distributions"}
    assert run["systems"] == {"logbroker": "logbroker"}
    assert run["levels"]["logbroker"].keys() == {"synced", "written"}
    assert (run["scale"], run["failed"]) == ("tiny", {}), done.stderr
    assert len(run["skipped"]) == 1
    assert [section["name"] for section in run["sections"]] == ["publish", "confirm"]
    for section in run["sections"]:
        assert section["rows"], section["title"]
        for row in section["rows"]:
            assert row["value"] > 0, row
            assert len(row["samples"]) == 2, row
            assert row["what"] in done.stdout
    goals = {goal["row"]: goal for goal in run["goals"]}
    limit = goals["confirmed, synced, p50, logbroker / limit"]
    assert (limit["limit"], limit["level"]) == ("<= 1.25", "synced")
    assert limit["met"] is (limit["value"] <= 1.25)
    assert "confirmed, synced, logbroker" in run["distributions"]
    assert [path.name for path in output.parent.iterdir()] == ["peers.json"], "the data is removed"
