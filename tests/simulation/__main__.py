"""`make simulate SEEDS=n`: runs seeds on all cores, and says what was done and found.

python -m simulation --seeds 10000            seeds 1 to 10,000
python -m simulation --seeds 500 --first 7001
python -m simulation --seed 17                one, with its story
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from .report import FOUND, OTHER, ROWS, name_of
from .simulation import Result, simulate

AGAIN = "PYTHONPATH=tests .venv/bin/python -m simulation --seed {}"
SHOWN_FAULTS = 5
SAID_EVERY = 100
SEEDS_PER_POOL = 1_000
"""Then other processes go on, since these grow. `max_tasks_per_child` hangs (CPython 115634)."""


def main() -> int:
    """Returns 0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--seed", type=int, help="this one alone, with its story")
    options = parser.parse_args()
    console = Console()
    if options.seed is not None:
        return _tell(console, simulate(options.seed))
    return _run_all(console, range(options.first, options.first + options.seeds))


def _tell(console: Console, result: Result) -> int:
    for line in result.story:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    _show_faults(console, result, shown=len(result.faults))
    console.print(f"seed {result.seed}: {len(result.faults)} faults, digest {result.digest}")
    return bool(result.faults)


def _run_all(console: Console, seeds: range) -> int:
    totals: Counter[str] = Counter()
    failed: list[int] = []
    begun = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("seeds", total=len(seeds))
        for result in _results(seeds):
            totals.update(result.counts)
            totals.update(name_of(fault) for fault in result.faults)
            if result.faults:
                failed.append(result.seed)
                _show_faults(progress.console, result, SHOWN_FAULTS)
                progress.console.print(f"    {AGAIN.format(result.seed)}", highlight=False)
            progress.advance(bar)
            done = result.seed - seeds.start + 1
            if not console.is_terminal and done % SAID_EVERY == 0:
                console.print(
                    f"{done:,} of {len(seeds):,} seeds, {time.monotonic() - begun:,.0f} s"
                )
    seconds = time.monotonic() - begun
    console.print(_table(totals))
    rate = len(seeds) / seconds
    console.print(f"{len(seeds):,} seeds in {seconds:,.0f} s: {rate:.1f} each second")
    console.print(f"seeds that found something: {failed or 'none'}")
    return bool(failed)


def _results(seeds: range) -> Iterator[Result]:
    for first in range(0, len(seeds), SEEDS_PER_POOL):
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
            yield from pool.map(simulate, seeds[first : first + SEEDS_PER_POOL], chunksize=5)


def _show_faults(console: Console, result: Result, shown: int) -> None:
    for fault in result.faults[:shown]:
        console.print(f"seed {result.seed}: {fault}", markup=False, highlight=False)
    if len(result.faults) > shown:
        console.print(f"    and {len(result.faults) - shown} more")


def _table(totals: Counter[str]) -> Table:
    table = Table("what", "how often")
    for title, names in ROWS.items():
        table.add_section()
        for name in names:
            table.add_row(f"{title}: {name}" if title else name, f"{totals[name]:,}")
    table.add_section()
    for name in (*FOUND, OTHER):
        table.add_row(f"found: {name}", f"{totals[name]:,}")
    return table


if __name__ == "__main__":
    sys.exit(main())
