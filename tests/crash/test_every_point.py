"""A real broker dies at every call to its disk; whatever it had confirmed is there again."""

import pytest
from cases.effort import IS_FULL

from crash.dying_disk import Death
from crash.operations import OPERATIONS
from crash.points import Stage, sample

SEED = 11


@pytest.mark.slow
@pytest.mark.timeout(1_800 if IS_FULL else 240)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda kind: kind.__name__.lower())
async def test_what_was_confirmed_survives_a_death_at_each_call(tmp_path, operation):
    stage = Stage(operation, tmp_path)
    points = await stage.prepare()
    assert len(points) > len(Death)
    for point in points if IS_FULL else sample(points, SEED):
        try:
            await stage.die_at(point)
        except BaseException as error:
            error.add_note(f"{operation.__name__} died at {point}, one of {len(points)} points")
            raise
