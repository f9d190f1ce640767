"""Runs of one decoder: over the corpus, by a seed, and by hypothesis.

An input at which a decoder breaks its word is put into the corpus, where it stays: each run
begins with those. How long all runs together may take says FUZZ_SECONDS.
"""

import hashlib
import itertools
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import hypothesis
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from fuzz.decoder import Decoder, bounded, check_sample, is_taken
from fuzz.mutations import mutated

CORPUS = Path(__file__).parent / "corpus"
DEFAULT_SECONDS = 20
EXAMPLES_AT_ONCE, SLOW_AT_ONCE = 60, 5
SLOW_SAMPLES = 4
LONGEST_NOISE = 400
ODD_SHARE = 0.05
"""Of mutations that begin with the corpus, whose files are mostly refused, and may be bombs."""

COUNTS: dict[str, Counter[str]] = {}
"""Of each decoder: how many inputs it was given, and how many of them it took."""


def seconds() -> float:
    """Returns how long all runs together may take."""
    return float(os.environ.get("FUZZ_SECONDS") or DEFAULT_SECONDS)


def first_seed() -> int:
    """Returns where seeds begin: with FUZZ_SECONDS each run has others, unless FUZZ_SEED is set."""
    if "FUZZ_SEED" in os.environ or "FUZZ_SECONDS" not in os.environ:
        return int(os.environ.get("FUZZ_SEED", "1"))
    return time.time_ns() // 1_000


def corpus_of(name: str) -> list[bytes]:
    """Returns the small files that are kept for it."""
    return [path.read_bytes() for path in sorted((CORPUS / name).glob("*"))]


def keep(name: str, data: bytes) -> Path:
    """Puts an input into the corpus, and returns where it is."""
    path = CORPUS / name / f"failed-{hashlib.sha256(data).hexdigest()[:12]}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def run(decoder: Decoder, for_s: float) -> None:
    """Fails where the decoder breaks its word, with the input in the corpus."""
    corpus = corpus_of(decoder.name)
    begins_with = list(decoder.samples())
    with bounded():
        for data in [*(() if decoder.is_slow else begins_with), *corpus]:
            try_it(decoder, data)
        until = time.monotonic() + for_s / 2
        for seed in itertools.count(first_seed()):
            if time.monotonic() > until:
                break
            random = Random(seed)
            is_odd = corpus and random.random() < ODD_SHARE
            data = random.choice(corpus if is_odd else begins_with)
            data = mutated(random, data, begins_with)
            try_it(decoder, data)
            if decoder.mend:
                try_it(decoder, decoder.mend(data))
        _by_hypothesis(decoder, begins_with, time.monotonic() + for_s / 2)


def try_it(decoder: Decoder, data: bytes) -> None:
    """Gives it one input."""
    counts = COUNTS.setdefault(decoder.name, Counter())
    try:
        counts["taken"] += is_taken(decoder, data)
        counts["given"] += 1
    except Exception as error:
        path = keep(decoder.name, data)
        raise AssertionError(f"{decoder.name} breaks its word at {path}: {error!r}") from error


def _by_hypothesis(decoder: Decoder, begins_with: list[bytes], until: float) -> None:
    for seed in itertools.count(first_seed()):
        if time.monotonic() > until:
            return
        count = SLOW_AT_ONCE if decoder.is_slow else EXAMPLES_AT_ONCE
        check = _examples(count, begins_with, lambda data: _both(decoder, data))
        hypothesis.seed(seed)(check)()


def _both(decoder: Decoder, data: bytes) -> None:
    try_it(decoder, data)
    if decoder.mend:
        try_it(decoder, decoder.mend(data))


def _examples(
    count: int, begins_with: list[bytes], check: Callable[[bytes], None]
) -> Callable[[], None]:
    noise = st.binary(max_size=LONGEST_NOISE)
    changes = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), noise), max_size=3)
    changed = st.tuples(st.sampled_from(begins_with), changes).map(_changed)

    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(changed, noise))
    def examples(data: bytes) -> None:
        check(data)

    return examples


def _changed(drawn: tuple[bytes, list[tuple[float, float, bytes]]]) -> bytes:
    """Returns the bytes with some pieces of them replaced."""
    data, changes = drawn
    for at, length, instead in changes:
        start = int(at * len(data))
        end = start + int(length * length * (len(data) - start))
        data = data[:start] + instead + data[end:]
    return data


def check_samples(decoder: Decoder) -> None:
    """Fails unless what encoders write is read, and written the same again."""
    found = decoder.samples()
    assert found
    for data in found[:: len(found) // SLOW_SAMPLES if decoder.is_slow else 1]:
        check_sample(decoder, data)
