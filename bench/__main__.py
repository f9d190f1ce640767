"""`python -m bench`: measures, prints the table, writes `bench/results/latest.json`."""

import argparse
import asyncio
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import uvloop

from bench.fan_out import FanOut
from bench.fetch import Fetch
from bench.lab import Lab, Question, open_lab
from bench.latency import Latency
from bench.machine import machine
from bench.memory import Memory
from bench.produce import ProduceBatches
from bench.publish import PublishOne
from bench.rows import results
from bench.scale import SCALES, Scale
from bench.send import SendEach
from bench.settle import Settle
from bench.start import Start
from bench.table import summary, table
from bench.waiting import Waiting
from logbroker.malloc import keep_freed_memory

QUESTIONS: dict[str, Callable[[Lab], Question]] = {
    "produce": ProduceBatches,
    "fetch": Fetch,
    "publish": PublishOne,
    "send": SendEach,
    "settle": Settle,
    "fan_out": FanOut,
    "latency": Latency,
    "waiting": Waiting,
    "start": Start,
    "memory": Memory,
}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measures what the arguments say."""
    args = _arguments()
    scale = SCALES["quick" if args.quick else args.scale]
    scale = replace(scale, rounds=args.rounds or scale.rounds)
    output: Path = args.output
    output.parent.mkdir(parents=True, exist_ok=True)
    keep_freed_memory()
    sections = uvloop.run(_measure(scale, args.only or list(QUESTIONS), output.parent))
    found = [row for _, rows in sections for row in rows]
    output.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{machine()}; medians of {scale.rounds} interleaved rounds\n")
    print(table(sections))
    print(f"\n{summary(found)}\nwritten to {os.path.relpath(output)}")


async def _measure(
    scale: Scale, names: Sequence[str], directory: Path
) -> list[tuple[str, list[dict[str, Any]]]]:
    """Returns the results of each question, under its title."""
    async with open_lab(scale, directory) as lab, AsyncExitStack() as stack:
        questions: list[Question] = [QUESTIONS[name](lab) for name in names]
        _progress("preparing")
        for question in questions:
            stack.push_async_callback(question.close)
        async with asyncio.TaskGroup() as tasks:
            for question in questions:
                tasks.create_task(question.prepare())
        gc.collect()
        gc.freeze()
        for number in range(1, scale.rounds + 1):
            begun = perf_counter()
            for question in questions:
                _progress(f"round {number} of {scale.rounds}: {question.title}")
                await question.run_round()
            _progress(f"round {number} of {scale.rounds}: {perf_counter() - begun:.1f} s")
        return [(question.title, results(question.rows(), lab.samples)) for question in questions]


def _progress(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the same in about a minute")
    parser.add_argument("--scale", choices=SCALES, default="full", help="how much is measured")
    parser.add_argument("--rounds", type=int, metavar="N", help="instead of the scale's")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, help="these questions alone")
    parser.add_argument("--output", type=Path, default=RESULTS / "latest.json", metavar="FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
