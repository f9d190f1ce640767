"""`python -m bench.peers.fetch`: fetches what can be fetched, and says how to get the rest.

Python packages are the extra `peers`. Kafka's jars come from Maven Central, NATS's command
line is built from its Go module; both go to a directory outside the repository. What the
system's own package manager has is named, and left to whoever owns the machine.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.peers.fetched import fetched, program
from bench.peers.kafka.system import has_jars, jars
from bench.peers.skipped import skipped
from bench.peers.systems import SYSTEMS

POM = Path(__file__).parent / "kafka" / "pom.xml"
NATS_MODULE = "github.com/nats-io/natscli/nats@v0.5.0"


class Step(NamedTuple):
    """One thing to fetch."""

    what: str
    needs: str
    """A program."""
    command: Sequence[str]
    environ: Mapping[str, str]


def steps() -> list[Step]:
    """Returns what is to be fetched: nothing that is there already."""
    found = []
    if not has_jars():
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={jars()}"]
        maven = ["mvn", "-q", "-B", "-f", str(POM), *copy]
        found.append(Step("Kafka's jars", "mvn", maven, {}))
    if not program("nats"):
        build = ["go", "install", NATS_MODULE]
        where = {"GOBIN": str(fetched() / "bin")}
        found.append(Step("the NATS command line (this takes minutes)", "go", build, where))
    return found


def main() -> None:
    """Fetches, and lists what is missing then."""
    for step in steps():
        if not program(step.needs):
            print(
                f"not fetched: {step.what}: there is no `{step.needs}` (`apt install maven golang`)"
            )
            continue
        print(f"fetching {step.what} to {fetched()}", flush=True)
        done = subprocess.run(step.command, env={**os.environ, **step.environ}, check=False)
        if done.returncode:
            print(f"not fetched: {step.what}: {step.command[0]} ended with {done.returncode}")
    lines = skipped(list(SYSTEMS)[1:])
    for line in lines:
        print(f"missing: {line}")
    print("`make bench-peers` measures all." if not lines else "`make bench-peers` skips those.")


if __name__ == "__main__":
    main()
