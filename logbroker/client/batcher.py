"""Records to batches: what a record takes, what may not be sent, where columns are cut. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from operator import add
from typing import NamedTuple, TypeVar

from logbroker.errors import InvalidError
from logbroker.limits import RECORDS_PER_BATCH
from logbroker.record.columns import Columns, RecordLimits
from logbroker.record.partitioner import partition_of
from logbroker.record.record import Header

FIELD_BYTES = 5
"""The most a value or a key takes besides its bytes: a tag and a length."""
TIMESTAMP_BYTES = 8
HEADER_FIELDS_BYTES = 16
"""The most a header, or a record's row of headers, takes besides names and values."""

HeaderLike = tuple[str, bytes | None]
Bytes = bytes | bytearray | memoryview
C = TypeVar("C")


class Share(NamedTuple):
    """Columns for one partition, and the most bytes they can take as a batch."""

    partition: int
    columns: Columns
    size: int


def as_bytes(part: Bytes | None, name: str) -> bytes | None:
    """Returns the bytes of a key or value; InvalidError for text and whatever else is none."""
    if part is None or type(part) is bytes:
        return part
    if isinstance(part, (bytes, bytearray, memoryview)):
        return bytes(part)
    message = f"a {name} must be bytes or None, not {type(part).__name__}"
    hint = "; encode text first, as in text.encode()" if isinstance(part, str) else ""
    raise InvalidError("INVALID_ARGUMENT", message + hint, field=name)


def as_headers(headers: Sequence[HeaderLike] | None, limits: RecordLimits) -> tuple[Header, ...]:
    """Returns the headers, checked. InvalidError for wrong types, too many or too large ones."""
    if not headers:
        return ()
    made = []
    for name, value in headers:
        if not isinstance(name, str):
            message = f"a header's name must be text, not {type(name).__name__}"
            raise InvalidError("INVALID_ARGUMENT", message, field="headers")
        made.append(Header(name, as_bytes(value, "header value")))
        if (size := _size_of_header(made[-1])) > limits.header_bytes:
            message = f"header {name!r} has {size} bytes, over header_bytes = {limits.header_bytes}"
            raise InvalidError("HEADER_TOO_LARGE", message, header_bytes=limits.header_bytes)
    if len(made) > limits.header_count:
        message = f"a record has {len(made)} headers, over header_count = {limits.header_count}"
        raise InvalidError("TOO_MANY_HEADERS", message, header_count=limits.header_count)
    return tuple(made)


def check_size(
    value: bytes | None,
    key: bytes | None,
    headers: Sequence[Header],
    limits: RecordLimits,
    index: int | None = None,
) -> int:
    """Returns the most bytes the record takes in a batch; InvalidError RECORD_TOO_LARGE."""
    size = len(value or b"") + len(key or b"")
    if headers:
        size += sum(map(_size_of_header, headers))
    if size > limits.record_bytes:
        which = "the record" if index is None else f"record {index}"
        rule = f"over record_bytes = {limits.record_bytes}"
        message = f"{which} has {size} bytes of key, value and headers, {rule}"
        details = {"size": size, "record_bytes": limits.record_bytes}
        if index is not None:
            details["record"] = index
        raise InvalidError("RECORD_TOO_LARGE", message, **details)
    rows = len(headers) + 1 if headers else 0
    return size + 2 * FIELD_BYTES + TIMESTAMP_BYTES + rows * HEADER_FIELDS_BYTES


def checked(
    values: Sequence[Bytes | None],
    keys: Sequence[Bytes | None] | None,
    timestamps_ms: Sequence[int] | None,
    headers: Sequence[Sequence[HeaderLike] | None] | None,
    limits: RecordLimits,
) -> Columns:
    """Returns the columns of a `send_many`. InvalidError if one record may not be sent.

    Costs little for each record unless there are headers, nulls or large records.
    """
    for name, column in (("keys", keys), ("timestamps_ms", timestamps_ms), ("headers", headers)):
        if column is not None and len(column) != len(values):
            message = f"{len(column)} {name} for {len(values)} values"
            raise InvalidError("INVALID_ARGUMENT", message, field=name)
    rows = [(index, as_headers(row, limits)) for index, row in enumerate(headers or ()) if row]
    columns = Columns(
        _bytes_column(values, "value"),
        _bytes_column(keys, "key") if keys is not None else None,
        timestamps_ms,
        rows,
    )
    largest = max(_sizes(columns), default=0)
    if largest > limits.record_bytes:
        _refuse(columns, limits)
    return columns


def cut(columns: Columns, partition: int, max_bytes: int) -> Iterator[Share]:
    """Yields the columns in order, as shares of at most `max_bytes`, one record at least each."""
    ends = list(accumulate(_sizes(columns)))
    start, count = 0, len(ends)
    while start < count:
        before = ends[start - 1] if start else 0
        end = max(bisect_right(ends, before + max_bytes, start), start + 1)
        end = min(end, start + RECORDS_PER_BATCH)
        share = columns if end - start == count else _slice(columns, start, end)
        yield Share(partition, share, ends[end - 1] - before)
        start = end


def spread(
    columns: Columns, keyless_partition: int, partition_count: int
) -> Iterator[tuple[int, Columns]]:
    """Yields each partition's records by the CRC-32 of their keys, in order; null keys together."""
    assert columns.keys is not None
    places = [
        keyless_partition if key is None else partition_of(key, partition_count)
        for key in columns.keys
    ]
    indexes: dict[int, list[int]] = {}
    for index, place in enumerate(places):
        if place in indexes:
            indexes[place].append(index)
        else:
            indexes[place] = [index]
    headers = dict(columns.headers)
    for place, chosen in indexes.items():
        rows = [(new, headers[old]) for new, old in enumerate(chosen) if old in headers]
        yield (
            place,
            Columns(
                _pick(columns.values, chosen),
                _pick(columns.keys, chosen),
                _pick(columns.timestamps_ms, chosen) if columns.timestamps_ms else None,
                rows if headers else (),
            ),
        )


def _pick(column: Sequence[C], chosen: list[int]) -> list[C]:
    return list(map(column.__getitem__, chosen))


def _slice(columns: Columns, start: int, end: int) -> Columns:
    values, keys, timestamps, headers = columns
    return Columns(
        values[start:end],
        keys[start:end] if keys is not None else None,
        timestamps[start:end] if timestamps is not None else None,
        [(index - start, row) for index, row in headers if start <= index < end],
    )


def _sizes(columns: Columns) -> Iterable[int]:
    """Returns the most bytes each record takes in a batch. No loop of ours where none is needed."""
    values, keys, timestamps, headers = columns
    fixed = FIELD_BYTES + (TIMESTAMP_BYTES if timestamps else 0)
    sizes = map(fixed.__add__, _lengths(values))
    if keys is not None:
        sizes = map(FIELD_BYTES.__add__, map(add, sizes, _lengths(keys)))
    if not headers:
        return sizes
    with_headers = list(sizes)
    for index, row in headers:
        fields = HEADER_FIELDS_BYTES * (len(row) + 1)
        with_headers[index] += sum(map(_size_of_header, row)) + fields
    return with_headers


def _lengths(column: Sequence[bytes | None]) -> Iterable[int]:
    if None in column:
        return [len(part) if part else 0 for part in column]
    return map(len, column)  # type: ignore[arg-type]  # there is no None in it


def _size_of_header(header: Header) -> int:
    return len(header.name.encode()) + len(header.value or b"")


def _bytes_column(column: Sequence[Bytes | None], name: str) -> Sequence[bytes | None]:
    if set(map(type, column)) <= {bytes, type(None)}:
        return column  # type: ignore[return-value]  # just looked at
    return [as_bytes(part, name) for part in column]


def _refuse(columns: Columns, limits: RecordLimits) -> None:
    """Raises for the first record that is too large; those near the limit may not be."""
    headers = dict(columns.headers)
    for index, (value, key) in enumerate(
        zip(columns.values, columns.keys or repeat(None), strict=False)
    ):
        check_size(value, key, headers.get(index, ()), limits, index)
