"""Random runs against a real broker: every promise is proved from their histories."""

from pathlib import Path

import pytest
from cases.effort import effort

from logbroker.testing.running_broker import BrokerProcess

from .workload import Plan, prove

pytestmark = [pytest.mark.slow, pytest.mark.timeout(effort(120, 1_800))]

FAILED_ONCE: list[int] = []
"""Seeds that have found something."""


@pytest.mark.parametrize("seed", [1, *FAILED_ONCE])
async def test_what_a_group_is_promised_holds_through_kills_stalls_and_failures(seed, tmp_path):
    plan = Plan(
        record_count=effort(3_000, 200_000),
        records_per_second=effort(1_000, 4_000),
        kill_count=effort(2, 10),
        batch_records=effort(20, 200),
        fault_chance=effort(0.02, 0.003),
        drain_s=effort(60, 600),
    )
    with BrokerProcess(Path(tmp_path) / "data") as broker:
        workload = await prove(seed, plan, broker)
    counts = workload.counts
    assert counts["kill"] == plan.kill_count
    for what in ("join", "leave", "vanish", "redriven"):
        assert counts[what] > 0, f"no {what} in this run: {dict(counts)}"
