"""The bare limit that rows are compared with."""

import pytest

from bench.bare import BareStreams


@pytest.mark.slow
async def test_a_limit_is_never_zero_however_short_it_is_measured() -> None:
    bare = BareStreams()
    try:
        await bare.open()
        assert await bare.pull(100, seconds=0) > 0
        assert await bare.push(100, seconds=0) > 0
    finally:
        await bare.close()
