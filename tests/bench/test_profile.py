"""Profiles of broker and client. What they find here means nothing."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from bench.child import Child

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workload", "processes"),
    [
        ("partitions-100", {"broker": "produce.py", "client": "producer.py"}),
        ("replay-100", {"broker": "fetch.py", "client": "reader.py"}),
        ("confirm", {"broker": "produce.py", "client": "delivery.py"}),
        ("pace", {"broker": "produce.py", "publisher": "delivery.py", "consumer": "consumer.py"}),
        ("work", {"broker": "settle.py", "client": "settlements.py"}),
    ],
)
def test_a_profile_tells_what_each_process_did(workload: str, processes: dict[str, str]) -> None:
    command = [sys.executable, "-m", "bench.profile", workload, "--seconds", "0.1", "--top", "999"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=100, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert re.match(r"[1-9][\d,]* records/s, [1-9][\d,]* profiled\n", done.stdout)
    sections = re.split(r"^(\w+): ([\d.]+) us CPU a record, .*$", done.stdout, flags=re.MULTILINE)
    found = dict(zip(sections[1::3], sections[3::3], strict=True))
    assert found.keys() == processes.keys()
    assert all(float(cpu_us) > 0 for cpu_us in sections[2::3])
    for name, file in processes.items():
        assert f"/{file}:" in found[name], name
        assert "exec_module" not in found[name], "only what was done meanwhile is in a profile"


@pytest.mark.slow
def test_a_process_that_is_not_told_to_writes_no_profile(tmp_path: Path) -> None:
    child = Child(
        "bench.peers.client_process", run_under=("bench.profiled_process", str(tmp_path / "p"))
    )
    assert child.read() == '"ready"'
    child.send(signal.SIGUSR1)
    assert '"error"' in child.ask("{}")
    child.end()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_profile_that_is_ended_leaves_no_process_and_no_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.profile", "publish-100", "--seconds", "60"]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.DEVNULL) as profile:
        wait_until(lambda: len(_processes_in(tmp_path)) == 2)
        wait_until(lambda: any(tmp_path.glob("*/data/topics/topic")))
        profile.terminate()
        assert profile.wait(60) != 0
    wait_until(lambda: not _processes_in(tmp_path))
    assert list(tmp_path.iterdir()) == []


def wait_until(condition: Callable[[], bool]) -> None:
    end = monotonic() + 60
    while not condition():
        assert monotonic() < end
        sleep(0.02)


def _processes_in(directory: Path) -> list[str]:
    """Returns the processes that were given something in this directory: broker and client."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(directory) in (line := file.read_text()):
                found.append(line)
    return found
