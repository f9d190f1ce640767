"""The soak itself, with small numbers and for seconds: it works, and it finds a leak."""

import json
import os
import subprocess
import sys

import pytest

from .members import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def soak(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tests.soak", "--sizes", "small", *arguments],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=580, check=False,
    )  # fmt: skip


def test_a_sound_broker_stands_it(tmp_path):
    ran = soak("--seconds", "15", "--json", str(tmp_path / "soak.json"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.rstrip().endswith("ok")
    found = json.loads((tmp_path / "soak.json").read_text())
    done = found["account"]["done"]
    assert {"reset", "redrive", "trim", "make and delete", "join and leave"} <= done.keys()
    assert found["account"]["stored_count"] == found["account"]["acknowledged_count"] > 100
    assert len(found["samples"]["rows"]) > 10
    assert "publish" in ran.stderr


def test_connections_that_are_never_closed_are_found():
    ran = soak("--seconds", "20", "--leak", "20")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "open files grew: " in ran.stdout.partition("FAILED")[2]
