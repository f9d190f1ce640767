"""Runs `logbroker` as people do: in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple


def logbroker(
    *args: str, server: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Returns what the command wrote, and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "logbroker", *args],
        input=stdin,
        capture_output=True,
        env={**os.environ, "LOGBROKER_SERVER": server, **(environ or {})},
        timeout=30,
        check=False,
    )


def output_of(*args: str, server: str, stdin: bytes = b"", **environ: str) -> bytes:
    """Returns what the command wrote to stdout; AssertionError unless it ended with 0."""
    done = logbroker(*args, server=server, stdin=stdin, environ=environ)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


DRIVER = """
import contextlib, io, json, sys
from logbroker.cli.main import run

def written(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "surrogateescape")

for arguments in json.load(sys.stdin):
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\\n") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    print(json.dumps([code, written(out), written(err)]))
"""


def many(commands: Sequence[Sequence[str]], *, server: str) -> list[Ended]:
    """Runs many commands in one process, which saves their starts; arguments may hold NUL."""
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        input=json.dumps([list(each) for each in commands]).encode(),
        capture_output=True,
        env={**os.environ, "LOGBROKER_SERVER": server},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [Ended(*json.loads(line)) for line in done.stdout.splitlines()]
