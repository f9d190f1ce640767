"""The codecs of a batch: none, gzip, zstd. What comes out is bounded."""

import zlib
from enum import IntEnum

import zstandard

from logbroker.errors import InvalidError

GZIP_WINDOW = 31
"""zlib's window bits for a gzip header with the largest window."""

ZSTD_WINDOW_BYTES = 1 << 27
"""The largest window accepted, as the zstd command's own default."""

ZSTD_STEP_BYTES = 512
"""Input is fed in steps: a block of 128 KiB can take 4 bytes, so a step yields at most 16 MiB."""


class Codec(IntEnum):
    """Bits 0 to 2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    ZSTD = 2


def compress(data: bytes, codec: Codec) -> bytes:
    """Returns `data` compressed; as it is with `Codec.NONE`."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            engine = zlib.compressobj(level=6, wbits=GZIP_WINDOW)
            return engine.compress(data) + engine.flush()
        case Codec.ZSTD:
            return zstandard.ZstdCompressor(level=3).compress(data)


def decompress(data: bytes | memoryview, codec: Codec, max_bytes: int) -> bytes | memoryview:
    """Returns what was compressed. InvalidError if it is none, or longer than `max_bytes`."""
    out = data
    try:
        match codec:
            case Codec.NONE:
                pass
            case Codec.GZIP:
                out = _gunzip(data, max_bytes)
            case Codec.ZSTD:
                out = _unzstd(data, max_bytes)
    except (zlib.error, zstandard.ZstdError) as error:
        raise InvalidError("BAD_BATCH", f"records are not {codec.name.lower()}: {error}") from error
    if len(out) > max_bytes:
        message = f"records are over {max_bytes} bytes when decompressed"
        raise InvalidError("BATCH_TOO_LARGE", message, batch_bytes=max_bytes)
    return out


def _gunzip(data: bytes | memoryview, max_bytes: int) -> bytes:
    engine = zlib.decompressobj(wbits=GZIP_WINDOW)
    out = engine.decompress(data, max_bytes + 1)
    if len(out) <= max_bytes and (not engine.eof or engine.unused_data):
        raise InvalidError("BAD_BATCH", "records are not one whole gzip member")
    return out


def _unzstd(data: bytes | memoryview, max_bytes: int) -> bytes:
    engine = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES).decompressobj()
    parts, size, at = [], 0, 0
    while at < len(data) and size <= max_bytes and not engine.eof:
        parts.append(engine.decompress(data[at : at + ZSTD_STEP_BYTES]))
        size, at = size + len(parts[-1]), at + ZSTD_STEP_BYTES
    if size <= max_bytes and (not engine.eof or engine.unused_data or at < len(data)):
        raise InvalidError("BAD_BATCH", "records are not one whole zstd frame")
    return b"".join(parts)
