"""Whatever bytes come: a value, or the refusal that is documented. In bounded time and memory."""

import pytest

from fuzz import runs
from fuzz.decoders import DECODERS

SHARE = 0.6
"""Of the time, for all decoders together."""
SLOW_WEIGHT = 4


@pytest.mark.slow
@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_any_bytes_are_a_value_or_are_refused(decoder):
    share = (SLOW_WEIGHT if decoder.is_slow else 1) / sum(
        SLOW_WEIGHT if each.is_slow else 1 for each in DECODERS
    )
    runs.run(decoder, runs.seconds() * SHARE * share)
    assert runs.COUNTS[decoder.name]["given"] > 0


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_what_was_written_is_read_and_written_the_same_again(decoder):
    runs.check_samples(decoder)
