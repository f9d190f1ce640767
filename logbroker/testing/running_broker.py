"""Real brokers on free ports, for tests of user code: in this process, or in one of their own."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from logbroker.broker.broker import Broker, open_broker
from logbroker.clock import Clock, SystemClock
from logbroker.config import LimitsConfig, ListenConfig, LogConfig
from logbroker.server.server import serve_grpc
from logbroker.storage.engine import Engine
from logbroker.storage.memory import MemoryEngine


@asynccontextmanager
async def running_broker(
    *,
    engine: Engine | None = None,
    clock: Clock | None = None,
    listen: ListenConfig | None = None,
    defaults: LogConfig | None = None,
    limits: LimitsConfig | None = None,
) -> AsyncIterator[tuple[str, Broker]]:
    """Runs a broker in this event loop, in memory unless `engine` says otherwise.

    Yields its address and the broker itself. The engine is left to the caller.
    """
    clock = clock or SystemClock()
    listen = listen or ListenConfig(grpc="127.0.0.1:0", stop_grace_ms=1_000)
    async with (
        open_broker(
            engine or MemoryEngine(clock),
            clock,
            defaults=defaults or LogConfig(),
            limits=limits or LimitsConfig(),
        ) as broker,
        serve_grpc(broker, listen, "test") as port,
    ):
        yield f"127.0.0.1:{port}", broker


class BrokerProcess:
    """A broker in a process of its own, on a data directory that outlives it.

    Use it as a context manager, or call `start`, `kill` and `stop` as the test wants.
    """

    def __init__(
        self,
        data_dir: Path,
        *args: str,
        environ: Mapping[str, str] | None = None,
        port: int = 0,
        run_under: Sequence[str] = (),
    ) -> None:
        """`run_under` comes before the command and becomes it, as `prlimit --nofile=1024` does."""
        self.data_dir = data_dir
        self.address = ""
        self.log_file = data_dir.parent / f"{data_dir.name}.log"
        self._args = args
        self._environ = {**os.environ, **(environ or {})}
        self._port = port
        self._run_under = run_under
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        """Starts it and waits until it listens; on the same port as before, if there was one.

        RuntimeError with what it said if it ends instead.
        """
        command = [*self._run_under, sys.executable, "-m", "logbroker", "serve"]
        command += ["--data-dir", str(self.data_dir)]
        command += ["--grpc", f"127.0.0.1:{self._port}", "-o", "json", *self._args]
        with self.log_file.open("a") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, env=self._environ
            )
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            code = self.wait()
            raise RuntimeError(f"the broker ended with {code}: {self.log_file.read_text()}")
        self.address = line.partition('"address": "')[2].partition('"')[0]
        self._port = int(self.address.rpartition(":")[2])
        return self

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process
        return self._process.pid

    def kill(self) -> None:
        """Ends it with SIGKILL."""
        self.send(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        """Ends it with SIGTERM and returns its exit code."""
        self.send(signal.SIGTERM)
        return self.wait()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        assert self._process
        self._process.send_signal(number)

    def wait(self, timeout_s: float = 30) -> int:
        """Returns its exit code once it has ended."""
        assert self._process
        code = self._process.wait(timeout_s)
        if self._process.stdout:
            self._process.stdout.close()
        return code

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process and self._process.poll() is None:
            self.stop()
