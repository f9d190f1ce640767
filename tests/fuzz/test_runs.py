"""The harness finds what it is there to find, keeps it, and tells the same story twice."""

from random import Random

import pytest

from fuzz import decoder as harness
from fuzz import runs, samples
from fuzz.decoder import Decoder
from fuzz.mutations import mutated


@pytest.fixture(autouse=True)
def counts(monkeypatch):
    """Counts that are not told of at the end."""
    monkeypatch.setattr(runs, "COUNTS", {})
    return runs.COUNTS


def reading(decode, **fields):
    return Decoder(name="tried", samples=lambda: [b"sample"], decode=decode, **fields)


def raises_another(data: bytes) -> object:
    return {b"s": 1}[data[:1]]


def takes_all_memory(data: bytes) -> object:
    return [None] * (1 << 40)


def takes_much_memory(data: bytes) -> object:
    return [None] * (8 << 20)


def never_ends(data: bytes) -> object:
    while True:
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    "decode, why",
    [
        (raises_another, "KeyError"),
        (takes_all_memory, "MemoryError"),
        (takes_much_memory, "takes .* bytes"),
        (never_ends, "HungError"),
    ],
)
def test_a_decoder_that_breaks_its_word_is_found_and_its_input_is_kept(
    tmp_path, monkeypatch, decode, why
):
    monkeypatch.setattr(runs, "CORPUS", tmp_path)
    monkeypatch.setattr(harness, "HUNG_S", 0.2)
    monkeypatch.setattr(harness, "HEAVY_S", 0.001)
    with pytest.raises(AssertionError, match=f"(?s)tried.*{why}"):
        runs.run(reading(decode), 0.5)
    [kept] = runs.corpus_of("tried")
    with pytest.raises(AssertionError, match=why), harness.bounded():
        runs.try_it(reading(decode), kept)


def test_what_is_documented_is_no_fault(counts):
    def refuses(data: bytes) -> object:
        raise ValueError

    runs.run(reading(refuses, refuses=(ValueError,)), 0.01)
    runs.run(reading(lambda data: None), 0.01)
    assert counts["tried"]["taken"] == 0
    assert counts["tried"]["given"] > 2


def test_a_seed_tells_the_same_story_twice():
    begins_with = samples.batches()
    stories = [
        [mutated(Random(seed), begins_with[0], begins_with) for seed in range(200)]
        for _ in range(2)
    ]
    assert stories[0] == stories[1]
    assert len(set(stories[0])) > 150
