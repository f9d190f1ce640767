"""`python -m bench.peers`: measures, prints the table, writes `bench/results/peers.json`."""

import argparse
import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from bench.machine import machine
from bench.peers.goals import goals
from bench.peers.lab import Lab, Workload, open_lab
from bench.peers.quantiles import quantiles
from bench.peers.rows import measured, name_of
from bench.peers.scale import SCALES, Scale
from bench.peers.skipped import installed, skipped
from bench.peers.systems import OURS, SYSTEMS
from bench.peers.table import goal_table, workload_table
from bench.peers.workloads.confirm import Confirm
from bench.peers.workloads.fan_out import FanOut
from bench.peers.workloads.footprint import Footprint
from bench.peers.workloads.grow import Grow
from bench.peers.workloads.kill import Kill
from bench.peers.workloads.pace import Pace
from bench.peers.workloads.publish import Publish
from bench.peers.workloads.replay import Replay
from bench.peers.workloads.tools import Tools
from bench.peers.workloads.work import Work

WORKLOADS: dict[str, Callable[[Lab], Workload]] = {
    "publish": Publish,
    "tools": Tools,
    "replay": Replay,
    "confirm": Confirm,
    "pace": Pace,
    "work": Work,
    "fan_out": FanOut,
    "footprint": Footprint,
    "kill": Kill,
    "grow": Grow,
}
LEAST_ROUNDS = 3
"""However long they take."""
RESULTS = Path(__file__).parents[1] / "results"


def main() -> None:
    """Measures what the arguments say."""
    args = _arguments()
    size = "quick" if args.quick else args.scale
    scale = replace(SCALES[size], rounds=args.rounds or SCALES[size].rounds)
    output: Path = args.output
    output.parent.mkdir(parents=True, exist_ok=True)
    for line in skipped(args.systems):
        print(f"SKIPPED: {line}", flush=True)
    run = uvloop.run(
        _measure(scale, args.only or list(WORKLOADS), args.systems, output.parent, args.minutes)
    )
    output.write_text(json.dumps({**run, "scale": size}, indent=1) + "\n")
    print(f"{goal_table(run['goals'])}\n")
    print(f"{run['machine']}; medians of {scale.rounds} interleaved rounds, {run['seconds']} s")
    for line in run["skipped"]:
        print(f"SKIPPED: {line}")
    print(f"written to {os.path.relpath(output)}")


async def _measure(
    scale: Scale,
    workloads: Sequence[str],
    names: Sequence[str],
    directory: Path,
    minutes: float,
) -> dict[str, Any]:
    """Prints the table of each workload; returns what the file holds."""
    main_task = asyncio.current_task()
    assert main_task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, main_task.cancel)
    date, begun = datetime.now(UTC), perf_counter()
    systems = installed(names)
    sections, found_goals = [], []
    async with open_lab(scale, directory, systems) as lab:
        for number, name in enumerate(workloads):
            left_s = begun + 60 * minutes - perf_counter()
            earlier = {one for one, errors in lab.failures.items() if not one.startswith("start")}
            workload = WORKLOADS[name](lab)
            try:
                async with AsyncExitStack() as stack:
                    stack.push_async_callback(workload.close)
                    await _rounds(lab, workload, scale, left_s / (len(workloads) - number))
            except Exception as error:  # noqa: BLE001  # what was measured is still told
                reason = f"{type(error).__name__}: {error}"
                lab.failures[name_of(workload.title, OURS.name)] = [reason]
                print(f"FAILED: {workload.title}: {reason}", file=sys.stderr, flush=True)
            rows = workload.rows()
            found = measured(rows, lab.samples)
            found_goals += goals(name, rows, lab.samples)
            sections.append({"name": name, "title": workload.title, "rows": found})
            failed = {one: why for one, why in lab.failures.items() if one not in earlier}
            print(f"{workload_table(workload.title, rows, found, failed)}\n", flush=True)
    return {
        "machine": machine(),
        "date": date.isoformat(timespec="seconds"),
        "seconds": round(perf_counter() - begun),
        "rounds": scale.rounds,
        "sizes": asdict(scale),
        "versions": {k: v for system in systems for k, v in system.versions().items()},
        "systems": {system.name: system.title for system in systems},
        "levels": {system.name: dict(system.answers) for system in systems},
        "skipped": skipped(names),
        "failed": {name: errors for name, errors in lab.failures.items() if errors},
        "sections": sections,
        "goals": found_goals,
        "distributions": {name: quantiles(times) for name, times in lab.distributions.items()},
    }


async def _rounds(lab: Lab, workload: Workload, scale: Scale, share_s: float) -> None:
    """Prepares and measures a workload: its rounds follow one another, and are interleaved.

    There are fewer rounds where they would take longer than its share.
    """
    lab.round_number, lab.scale = 0, scale
    end = perf_counter() + share_s
    begun = perf_counter()
    await workload.prepare()
    _progress(f"{workload.title}: prepared in {perf_counter() - begun:.1f} s")
    gc.collect()
    gc.freeze()
    took_s = 0.0
    for number in range(0 if lab.scale.warm_up else 1, lab.scale.rounds + 1):
        if number > LEAST_ROUNDS and perf_counter() + took_s > end:
            _progress(f"{workload.title}: ends after {number - 1} rounds: its time is over")
            return
        lab.round_number = number
        lab.scale = scale if number else scale.warming()
        begun = perf_counter()
        await workload.run_round()
        what = f"round {number} of {lab.scale.rounds}" if number else "warm-up"
        took_s = perf_counter() - begun
        _progress(f"{workload.title}: {what}: {took_s:.1f} s")


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short form")
    parser.add_argument("--scale", choices=SCALES, default="full", help="how much is measured")
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of the scale's")
    parser.add_argument(
        "--minutes", type=float, default=35, metavar="N", help="what takes longer has fewer rounds"
    )
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, help="these workloads alone")
    parser.add_argument(
        "--systems", nargs="+", choices=list(SYSTEMS)[1:], default=list(SYSTEMS)[1:], help="these"
    )
    parser.add_argument("--output", type=Path, default=RESULTS / "peers.json", metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
