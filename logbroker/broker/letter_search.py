"""Where the copy of a record that was given up lies: asked by people, one at a time.

A ledger forgets what it gave up, so the dead-letter topic is searched, from the newest back.
That ends after SEARCHED_BYTES: who asks must not wait for a topic of any size to be read.
"""

from typing import NamedTuple

from logbroker.broker.parked_records import FoundLetter, ParkedRecords, Shelf, letter_at
from logbroker.group.dead_letter import FIELD_NAMES, is_dead_letter_of
from logbroker.record.columns import decode_records, header_bytes
from logbroker.record.compression import Codec
from logbroker.record.offset_ranges import OffsetRanges, Range
from logbroker.record.record import Header

SEARCHED_BYTES = 64 << 20
"""Some tenths of a second."""
STEP_BYTES = 4 << 20
"""About how much is read before the next step back..."""
FIRST_COUNT = 64
"""... beginning with so many records, since nobody knows how large they are."""
GROWTH = 16
"""How much larger the next step may be."""


class Searched(NamedTuple):
    """What a search came to."""

    letter: FoundLetter | None
    first: int | None
    """How far back it went, where it ended before it had seen all."""


async def find_copy(parked: ParkedRecords, shelf: Shelf, partition: int, offset: int) -> Searched:
    """Looks for the newest dead letter that came from this offset of the source."""
    log_start, end, _ = parked.log(shelf, partition).bounds()
    count, left = FIRST_COUNT, SEARCHED_BYTES
    while end > log_start and left > 0:
        first = max(end - count, log_start)
        letter, base, size = await _newest_copy(parked, shelf, partition, offset, (first, end))
        if letter:
            return Searched(letter, first)
        left -= size
        count = max(1, count * STEP_BYTES // max(size, STEP_BYTES // GROWTH))
        end = min(first, base)
    return Searched(None, end if end > log_start else None)


async def _newest_copy(
    parked: ParkedRecords, shelf: Shelf, partition: int, offset: int, within: Range
) -> tuple[FoundLetter | None, int, int]:
    """Returns the last copy in a range; where its first batch begins; how much was read."""
    found: FoundLetter | None = None
    header = Header(FIELD_NAMES["offset"], str(offset).encode())
    probe, topic_id = header_bytes(header), shelf.source.topic_id
    base, size = within[0], 0
    async for batch in parked.batches(shelf, partition, OffsetRanges([within])):
        base, size = min(base, batch.header.base_offset), size + batch.header.size_bytes
        if batch.header.codec is Codec.NONE and probe not in bytes(batch.records):
            continue  # without taking it apart
        for record in decode_records(batch, partition):
            if header in record.headers and is_dead_letter_of(record.headers, topic_id):
                found = letter_at(shelf, batch, record, parked.ledger(shelf, partition))
    return found, base, size
