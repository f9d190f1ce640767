"""A module of bench run in a process of its own, which takes its orders from stdin."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress


class Child:
    """`python -m MODULE ARGS`: an order is a line in, its answer a line out."""

    def __init__(self, module: str, *args: str, run_under: Sequence[str] = ()) -> None:
        """`run_under` is another module and its arguments, which runs this one."""
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", *run_under, module, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Tells whether it has, for whatever reason."""
        return self._process.poll() is not None

    def ask(self, order: str) -> str:
        """Returns the answer to an order."""
        assert self._process.stdin
        print(order, file=self._process.stdin, flush=True)
        return self.read()

    def read(self) -> str:
        """Returns what it says next."""
        assert self._process.stdout
        line = self._process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"{self._module} ended with {self._process.wait()}")
        return line

    def send(self, number: signal.Signals) -> None:
        """Sends a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Ends it at once; whoever waits for its answer gets a RuntimeError."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Closes the pipes of one that was killed, when nobody waits for its answer."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with suppress(BrokenPipeError):  # an order that it did not take
                pipe.close()

    def end(self) -> None:
        """Ends it: it goes when its stdin is closed."""
        self._process.communicate(timeout=30)
