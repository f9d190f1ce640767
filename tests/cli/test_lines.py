import asyncio
import io

import pytest

from logbroker.cli import lines
from logbroker.cli.lines import read_blocks
from logbroker.errors import InvalidError


class Chunks:
    """A pipe that gives its bytes in these portions."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)

    def read(self, size: int = -1, /) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""


async def read_all(source: lines.Source) -> list[tuple[int, bytes]]:
    numbered = []
    async for block in read_blocks(source):
        numbered += list(enumerate(block.lines, block.first))
    return numbered


@pytest.mark.parametrize("size", range(1, 12))
def test_lines_and_their_numbers_do_not_depend_on_the_portions(size: int) -> None:
    data = b"a\n\nbcd\r\nlast"
    chunks = Chunks(*(data[at : at + size] for at in range(0, len(data), size)))
    expected = [(1, b"a"), (2, b""), (3, b"bcd\r"), (4, b"last")]
    assert asyncio.run(read_all(chunks)) == expected


def test_a_newline_at_the_end_makes_no_line_more() -> None:
    assert asyncio.run(read_all(io.BytesIO(b"a\nb\n"))) == [(1, b"a"), (2, b"b")]
    assert asyncio.run(read_all(io.BytesIO(b""))) == []


def test_blocks_account_for_every_byte() -> None:
    async def sizes() -> list[int]:
        return [block.size async for block in read_blocks(Chunks(b"a\nb", b"c\n", b"d"))]

    assert asyncio.run(sizes()) == [2, 3, 1]


def test_a_line_without_end_is_refused_with_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES", 10)
    with pytest.raises(InvalidError, match="line 2 has more than 10 bytes"):
        asyncio.run(read_all(Chunks(b"a\n", b"b" * 8, b"b" * 8, b"b" * 8)))


def test_a_source_that_fails_says_why() -> None:
    class Failing:
        def read(self, size: int = -1, /) -> bytes:
            raise IsADirectoryError(21, "Is a directory", "/x")

    with pytest.raises(IsADirectoryError):
        asyncio.run(read_all(Failing()))
