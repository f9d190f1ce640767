"""What may become of bytes: flipped, cut, put in, taken out, spliced, their numbers changed."""

import re
from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[Random, bytes, Sequence[bytes]], bytes]
"""Takes the bytes, and others of their kind."""

AT_ONCE = (1, 1, 2, 4)
LONGEST_INSERT = 64
NUMBERS = (0, 1, 2, 127, 128, 255, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1)
TOKEN = re.compile(rb"-?[0-9]+|\"[^\"]*\"|true|false|null")
TOKENS = (
    b"0", b"-1", b"1", b"1.5", b"1e400", b"-1e400", b"NaN", b"9223372036854775808",
    b"1" + b"0" * 400, b"true", b"null", b"[]", b"{}", b"[[0,1]]", b'""', b'"x"', b'"\\ud800"',
    b"[" * 2_000,
)  # fmt: skip
"""What JSON may have where it had something else."""


def mutated(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Returns the bytes after one or some mutations."""
    for _ in range(random.choice(AT_ONCE)):
        data = random.choice(MUTATIONS)(random, data, others)
    return data


def flip(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Flips one bit."""
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def put_byte(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Overwrites one byte."""
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + random.choice((b"\0", b"\xff", random.randbytes(1))) + data[at + 1 :]


def put_number(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Overwrites 4 or 8 bytes, as lengths, counts and offsets have, with a number of note."""
    size = random.choice((4, 8))
    number = random.choice(NUMBERS) * random.choice((1, 1, -1))
    at = random.randrange(len(data) + 1)
    written = (number % (1 << 8 * size)).to_bytes(size, "little")
    return data[:at] + written + data[at + size :]


def put_token(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Replaces a number, a text or a word of JSON with another value."""
    found = list(TOKEN.finditer(data[: 1 << 16]))
    if not found:
        return data
    token = random.choice(found)
    return data[: token.start()] + random.choice(TOKENS) + data[token.end() :]


def cut(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Cuts the end off."""
    return data[: random.randrange(len(data) + 1)]


def take_out(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Takes a piece out of the middle."""
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[end:]


def insert(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Puts noise or zeros in."""
    at, size = random.randrange(len(data) + 1), random.randint(1, LONGEST_INSERT)
    return data[:at] + random.choice((bytes(size), random.randbytes(size))) + data[at:]


def double(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Repeats a piece right behind itself."""
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:]


def splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Goes on as another one of its kind does."""
    other = random.choice(others)
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


MUTATIONS: tuple[Mutation, ...] = (
    flip, put_byte, put_number, put_token, cut, take_out, insert, double, splice,
)  # fmt: skip
