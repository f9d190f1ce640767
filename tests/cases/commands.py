"""Runs `logbroker` as people do: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping


def logbroker(
    *args: str, server: str, stdin: bytes = b"", environ: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Returns what the command wrote, and its exit code."""
    return subprocess.run(
        [sys.executable, "-m", "logbroker", *args, "--server", server],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(environ or {})},
        timeout=30,
        check=False,
    )


def output_of(*args: str, server: str, stdin: bytes = b"", **environ: str) -> bytes:
    """Returns what the command wrote to stdout; AssertionError unless it ended with 0."""
    done = logbroker(*args, server=server, stdin=stdin, environ=environ)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
