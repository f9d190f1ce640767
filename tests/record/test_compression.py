"""The codecs, and bounds on what comes out."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from logbroker.errors import InvalidError
from logbroker.record.compression import Codec, compress, decompress

LIMIT = 1 << 16


@given(st.binary(max_size=5_000), st.sampled_from(Codec))
def test_what_was_compressed_comes_back(data, codec):
    assert decompress(compress(data, codec), codec, LIMIT) == data


@pytest.mark.parametrize("codec", Codec)
def test_exactly_the_limit_is_allowed_and_one_byte_more_is_not(codec):
    assert len(decompress(compress(bytes(LIMIT), codec), codec, LIMIT)) == LIMIT
    with pytest.raises(InvalidError) as raised:
        decompress(compress(bytes(LIMIT + 1), codec), codec, LIMIT)
    assert raised.value.reason == "BATCH_TOO_LARGE"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_bomb_is_refused_before_it_fills_the_memory(codec):
    bomb = compress(bytes(64 << 20), codec)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidError):
            decompress(bomb, codec, 1 << 20)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


BAD = {
    "not gzip": (b"not gzip at all", Codec.GZIP),
    "gzip, cut": (gzip.compress(b"v" * 99)[:-1], Codec.GZIP),
    "gzip, twice": (gzip.compress(b"v") * 2, Codec.GZIP),
    "zlib": (zlib.compress(b"v" * 99), Codec.GZIP),
    "not zstd": (b"not zstd at all", Codec.ZSTD),
    "zstd, cut": (zstandard.compress(b"v" * 99)[:-1], Codec.ZSTD),
    "zstd, twice": (zstandard.compress(b"v") * 2, Codec.ZSTD),
    "nothing": (b"", Codec.ZSTD),
}


@pytest.mark.parametrize("data, codec", BAD.values(), ids=BAD)
def test_what_is_not_one_whole_piece_is_refused(data, codec):
    with pytest.raises(InvalidError) as raised:
        decompress(data, codec, LIMIT)
    assert raised.value.reason == "BAD_BATCH"


@pytest.mark.parametrize("cut", range(1, 12))
def test_every_cut_is_refused(cut):
    for codec in (Codec.GZIP, Codec.ZSTD):
        data = compress(b"value" * 50, codec)
        with pytest.raises(InvalidError):
            decompress(data[:-cut], codec, LIMIT)
