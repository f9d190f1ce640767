"""Members that come, go, fail and vanish, and brokers that stop and crash, by a seed.

After every step the models say what must be: no two live leases hold one record, delivery
numbers rise by one, failures are what happened, nothing overtakes what it must not, nothing
comes back too soon, and what was confirmed outlives every crash. In the end every record is
acknowledged or a dead letter, once.
"""

from itertools import count
from types import SimpleNamespace

import pytest
from cases.effort import effort

from logbroker.broker import coordinator
from logbroker.group.settings import Order
from logbroker.storage import journal

from .random_run import RandomRun

SEEDS = [(seed, order) for seed in range(1, effort(5, 60)) for order in Order]
FAILED_ONCE: list[tuple[int, Order]] = []
"""Seeds that have found something."""


@pytest.fixture(autouse=True)
def _snapshots_come_often(monkeypatch):
    monkeypatch.setattr(journal, "SNAPSHOT_EVERY", 30)


async def test_every_promise_holds_after_every_step():
    for order in Order:
        await RandomRun(0, order).go(60)


@pytest.mark.slow
@pytest.mark.parametrize("seed, order", [*SEEDS, *FAILED_ONCE])
async def test_every_promise_holds_after_every_step_of_longer_runs(seed, order):
    await RandomRun(seed, order).go(300)


@pytest.mark.slow
@pytest.mark.parametrize("order", list(Order))
async def test_a_seed_tells_the_same_story_twice(order, monkeypatch):
    stories = []
    for seed in (1, 1, 2):
        numbers = count()  # topics have random ids, by which they are in order
        names = SimpleNamespace(token_hex=lambda size, of=numbers: f"{next(of):0{2 * size}x}")
        monkeypatch.setattr(coordinator, "secrets", names)
        run = RandomRun(seed, order)
        await run.go(80)
        stories.append((run.story, run.shadows.done))
    one, same, other = stories
    assert one == same
    assert one != other
