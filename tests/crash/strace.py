"""System calls of a running process that fail as ordered, by strace. Skips aloud without it."""

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cases.watching import becomes_true

CAN_INJECT = ["strace", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO"]


def require_strace() -> None:
    """Skips the test where strace is missing, or may not trace."""
    if not shutil.which("strace"):
        pytest.skip("no strace here: nothing can make a real fdatasync fail")
    tried = subprocess.run([*CAN_INJECT, sys.executable, "-c", ""], check=False, timeout=60)
    if tried.returncode:
        pytest.skip("strace may not trace here: nothing can make a real fdatasync fail")


@asynccontextmanager
async def failing(pid: int, call: str, path: Path) -> AsyncIterator[None]:
    """Makes every such call on this file, of any thread, fail with EIO meanwhile."""
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-p", str(pid), "-P", str(path)]
    command += ["-e", f"trace={call}", "-e", f"inject={call}:error=EIO"]
    tracer = await asyncio.create_subprocess_exec(*command)
    try:
        await becomes_true(lambda: _is_traced(pid), "all threads are traced", within_s=60)
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        await tracer.wait()


def _is_traced(pid: int) -> bool:
    states = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
    return bool(states) and not any("TracerPid:\t0\n" in state for state in states)
