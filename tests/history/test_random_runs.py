"""Random runs against a real broker: every promise is proved from their histories."""

from pathlib import Path

import pytest
from cases.effort import IS_FULL, effort

from logbroker.testing.running_broker import BrokerProcess

from .script import Plan, What
from .workload import prove

pytestmark = [pytest.mark.slow, pytest.mark.timeout(effort(240, 3_600))]

FAILED_ONCE = [30]
"""Seeds that have found something."""

SEEN = (
    "members killed that held records",
    "redriven",
    "records moved by resets",
    "records trimmed",
    "acknowledge",
    "retry",
    "release",
    "reject",
    "dead letters",
    "dead letters parked",
    "received after a redrive",
)
"""What must have happened beside the steps of the script, or the run proves little."""


async def run(seed: int, plan: Plan, directory: Path):
    with BrokerProcess(directory / "data") as broker:
        return await prove(seed, plan, broker, directory)


@pytest.mark.parametrize("seed", [1, *FAILED_ONCE])
async def test_what_a_group_is_promised_holds_through_kills_stalls_and_failures(seed, tmp_path):
    plan = Plan(
        record_count=effort(3_000, 200_000),
        records_per_second=effort(1_000, 4_000),
        records_per_step=effort(150, 1_500),
        broker_kills=effort(2, 10),
        member_kills=effort(2, 20),
        resets=effort(1, 6),
        trims=effort(2, 12),
        batch_records=effort(20, 200),
        fault_chance=effort(0.02, 0.003),
        lease_ms=effort(1_000, 2_000),
        ahead=effort(500, 5_000),
        drain_s=effort(90, 900),
    )
    counts = (await run(seed, plan, tmp_path)).counts
    print(f"seed {seed}, {plan.record_count} records: {dict(sorted(counts.items()))}")
    for what in What:
        assert counts[what] > 0, f"no {what} in this run: {dict(counts)}"
    for what in SEEN + (("expired", "suspects seen alone") if IS_FULL else ()):
        assert counts[what] > 0, f"no {what} in this run: {dict(counts)}"


async def test_a_seed_decides_the_same_run_twice(tmp_path):
    plan = Plan(record_count=500, broker_kills=1, member_kills=0, trims=0, ahead=100)
    one = await run(7, plan, _made(tmp_path / "one"))
    same = await run(7, plan, _made(tmp_path / "same"))
    assert [one.counts[what] for what in What] == [same.counts[what] for what in What]
    assert [found.log for found in one.outcomes] == [found.log for found in same.outcomes]


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory
