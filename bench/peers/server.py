"""Servers as processes: started, watched, killed. Linux."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

from bench.processes import rss_bytes

START_S = 60
STOP_S = 30
POLL_S = 0.002
LOOPBACK = "127.0.0.1"


def ports_of(directory: Path, *names: str) -> list[int]:
    """Returns a free port for each name: the same ones as before, if the directory had some."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory.parent / f"{directory.name}.ports.json"
    known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    sockets = []
    for name in names:
        if name not in known:
            sockets.append(one := socket.socket())
            one.bind((LOOPBACK, 0))
            known[name] = one.getsockname()[1]
    for one in sockets:
        one.close()
    file.write_text(json.dumps(known))
    return [known[name] for name in names]


class ServerProcess:
    """A server's process, and all that it starts: a session of its own."""

    def __init__(
        self,
        directory: Path,
        command: Sequence[str],
        *,
        address: str,
        ports: Sequence[int],
        environ: Mapping[str, str] | None = None,
        first: Callable[[], None] | None = None,
        companion: Sequence[str] = (),
    ) -> None:
        """`first` is done once, before the first start; `companion` runs as long as it does."""
        self.address = address
        self.directory = directory
        self.log_file = directory.parent / f"{directory.name}.log"
        self._command = command
        self._companion_command = companion
        self._ports = ports
        self._environ = {**os.environ, **(environ or {})}
        self._first = first
        self._process: subprocess.Popen[bytes] | None = None
        self._companion: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Does what is done once before the first start."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._first:
            self._first()
            self._first = None

    def start(self) -> None:
        """Returns when all its ports take connections; RuntimeError if it ends instead."""
        self.prepare()
        if self._companion_command:
            self._companion = self._spawn(self._companion_command)
        self._process = self._spawn(self._command)
        end = monotonic() + START_S
        for port in self._ports:
            while not _answers(port):
                if self._process.poll() is not None or monotonic() > end:
                    self.kill()
                    raise RuntimeError(f"{self._command[0]} does not start:\n{self._log_tail()}")
                sleep(POLL_S)

    @property
    def is_running(self) -> bool:
        """Tells whether it was started, and neither stopped nor killed."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        assert self._process
        return self._process.pid

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self._process
        self._process.send_signal(number)

    def stop(self) -> None:
        """Ends it with SIGTERM, and with SIGKILL what is left of it."""
        if self._process and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):  # then it is killed
                self._process.wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """Ends it with SIGKILL, and its companion; nothing happens where it has ended."""
        for process in (self._process, self._companion):
            if process:
                while pids := _session(process.pid):
                    for pid in pids:
                        _kill(pid)
                    sleep(POLL_S)
                process.wait()
        self._process = self._companion = None

    def rss_bytes(self) -> int:
        """Returns the resident memory of all its processes."""
        processes = [one for one in (self._process, self._companion) if one]
        return sum(rss_bytes(pid) for one in processes for pid in _session(one.pid))

    def disk_bytes(self) -> int:
        """Returns the blocks that its directory takes on the disk."""
        files = (path.lstat() for path in self.directory.rglob("*") if not path.is_symlink())
        return sum(file.st_blocks * 512 for file in files)

    def remove(self) -> None:
        """Removes its directory and its log."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.log_file.unlink(missing_ok=True)

    def _spawn(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environ,
                cwd=self.directory,
                start_new_session=True,
            )

    def _log_tail(self) -> str:
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-20:])


def _answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex((LOOPBACK, port)) == 0


def _session(leader: int) -> list[int]:
    """Returns the processes of a session that have not ended, its leader first."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == leader and fields[0] not in "ZX":
            found.append(int(path.parent.name))
    return sorted(found, key=lambda pid: pid != leader)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):  # it has ended by itself
        os.kill(pid, signal.SIGKILL)
