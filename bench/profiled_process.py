"""A module run so that it can be profiled while it works: `python -m ... FILE MODULE ARGS`.

SIGUSR1 begins a profile, the next SIGUSR1 ends it and writes it: `FILE` is what `pstats`
reads, `FILE.times` says how long the main thread worked meanwhile. So
imports and preparations are in no profile. Other threads are not looked into; there they
are gRPC's own and those of fdatasync.
"""

import cProfile
import json
import runpy
import signal
import sys
from pathlib import Path
from time import thread_time


class Profile:
    """Of the main thread, from one signal to the next."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._profiler: cProfile.Profile | None = None
        self._begun = 0.0

    def switch(self, *_: object) -> None:
        """Begins a profile, or ends and writes the one that runs."""
        if self._profiler is None:
            self._begun = thread_time()
            self._profiler = cProfile.Profile()
            self._profiler.enable()
            return
        profiler, self._profiler = self._profiler, None
        profiler.disable()
        worked = thread_time() - self._begun
        profiler.dump_stats(self._file)
        unfinished = self._file.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"worked": worked}))
        unfinished.replace(times_file(self._file))  # last: who waits for it finds both


def times_file(file: Path) -> Path:
    """Returns where the times of a profile are."""
    return file.with_name(f"{file.name}.times")


def main() -> None:
    """Runs the module."""
    file, module, *args = sys.argv[1:]
    signal.signal(signal.SIGUSR1, Profile(Path(file)).switch)
    sys.argv = [module, *args]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
