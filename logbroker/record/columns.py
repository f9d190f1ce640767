"""Records: columns to records and back, and what must hold between them.

The one part of `record` that knows protobuf. A Python list handed to its C loop costs
some 50 ns for each record of 100 bytes; an object a record costs twenty times that.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise, repeat, starmap
from typing import Any, NamedTuple, TypeVar

from crc32c import crc32c
from google.protobuf.message import DecodeError

from logbroker.errors import DataLossError, InvalidError
from logbroker.limits import LENGTH_BYTES_CEILING
from logbroker.record.batch import Batch, BatchHeader
from logbroker.record.compression import Codec, compress, decompress
from logbroker.record.offset_ranges import Range
from logbroker.record.record import Header, Record
from logbroker.v1 import records_pb2

T = TypeVar("T")

CODECS = {int(codec): codec for codec in Codec}
"""By a batch's attributes, whose other bits mean nothing yet."""

_new_tuple: Callable[[type[Record], tuple[Any, ...]], Record] = tuple.__new__

HeadersColumn = Sequence[tuple[int, Sequence[Header]]]


class Columns(NamedTuple):
    """Many records, a column for each of their parts. All columns have the same length."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None = None
    """None: every key is null."""
    timestamps_ms: Sequence[int] | None = None
    """None: all have the batch's."""
    headers: HeadersColumn = ()
    """Sparse: (index of the record, its headers), by ascending index."""


class RecordLimits(NamedTuple):
    """What one record, and one batch decompressed, may hold."""

    record_bytes: int
    batch_bytes: int
    header_count: int
    header_bytes: int


def encode_batch(
    columns: Columns,
    *,
    now_ms: int,
    codec: Codec = Codec.NONE,
    producer_id: int = 0,
    producer_epoch: int = 0,
    base_sequence: int = 0,
) -> Batch:
    """Returns the columns as an unstamped batch. `now_ms` stands for timestamps not given."""
    timestamps = columns.timestamps_ms
    records = compress(encode_columns(columns), codec)
    return Batch.unstamped(
        records,
        record_count=len(columns.values),
        max_timestamp_ms=max(timestamps) if timestamps else now_ms,
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def encode_columns(columns: Columns) -> bytes:
    """Returns a serialized Records message. TypeError for what is neither bytes nor None."""
    timestamps = columns.timestamps_ms or ()
    try:
        records = records_pb2.Records(
            values=columns.values,  # type: ignore[arg-type]  # a None in it is the TypeError
            keys=columns.keys or (),  # type: ignore[arg-type]  # here too
            timestamps_ms=timestamps,
        )
    except TypeError:
        values, null_values = _without_nulls(columns.values)
        keys, null_keys = _without_nulls(columns.keys) if columns.keys is not None else ((), ())
        if keys and len(null_keys) == len(keys):
            keys, null_keys = (), ()
        records = records_pb2.Records(
            values=values,
            keys=keys,
            null_values=null_values,
            null_keys=null_keys,
            timestamps_ms=timestamps,
        )
    for index, headers in columns.headers:
        row = records.headers.add(record=index)
        for name, value in headers:
            row.headers.add(name=name, value=value)
    return records.SerializeToString()


def _without_nulls(column: Sequence[bytes | None]) -> tuple[Sequence[bytes], Sequence[int]]:
    nulls = [index for index, value in enumerate(column) if value is None]
    return [b"" if value is None else value for value in column], nulls


def check_batch(batch: Batch, limits: RecordLimits) -> None:
    """Raises InvalidError unless the batch is one that may be stored.

    The records are what the header says, in number and in time, decompress within the
    limit, and none is over its own. Per record only where a batch is larger than the
    largest record may be, and for records with headers.
    """
    header, data = batch
    if header.records_bytes > limits.batch_bytes:
        raise _too_large(header.records_bytes, limits)
    codec = CODECS.get(header.attributes)
    if codec is None:
        raise _bad(f"attributes {header.attributes} are no codec: 0, 1 or 2")
    if crc32c(data) != header.records_crc:
        raise _bad("records_crc is not the CRC-32C of the records")
    plain = decompress(data, codec, limits.batch_bytes)
    try:
        records = records_pb2.Records.FromString(plain)  # type: ignore[arg-type]  # any buffer will do
    except DecodeError as error:
        raise _bad("records are not a Records message") from error
    _check_columns(records, header)
    if records.headers:
        _check_headers(records, limits)
    if len(plain) > limits.record_bytes:
        _check_sizes(records, limits)


def _check_columns(records: records_pb2.Records, header: BatchHeader) -> None:
    count, found, keys = header.record_count, len(records.values), len(records.keys)
    if found != count:
        raise _bad(f"record_count is {count}, and there are {found} records")
    if keys and keys != count:
        raise _bad(f"keys has {keys} elements for {count} records")
    if records.timestamps_ms:
        _check_timestamps(records.timestamps_ms, header)
    if records.null_values:
        _check_nulls("null_values", records.null_values, records.values)
    if records.null_keys:
        _check_nulls("null_keys", records.null_keys, records.keys)
    if records.headers and not _ascends([row.record for row in records.headers], count):
        raise _bad(f"headers must ascend by record and be below {count}")
    if records.offset_deltas:
        raise _bad("offset_deltas are the broker's")


def _check_timestamps(timestamps_ms: Sequence[int], header: BatchHeader) -> None:
    count = header.record_count
    if len(timestamps_ms) != count:
        raise _bad(f"timestamps_ms has {len(timestamps_ms)} elements for {count} records")
    if max(timestamps_ms) != header.max_timestamp_ms:
        raise _bad(f"max_timestamp_ms is {header.max_timestamp_ms}, not the greatest timestamp")


def _check_nulls(name: str, nulls: Sequence[int], column: Sequence[bytes]) -> None:
    if not _ascends(list(nulls), len(column)):
        raise _bad(f"{name} must ascend and be below {len(column)}")
    if any(column[index] for index in nulls):
        raise _bad(f"{name} names a record that is not empty")


def _ascends(indexes: Sequence[int], end: int) -> bool:
    return indexes[-1] < end and all(left < right for left, right in pairwise(indexes))


def _check_headers(records: records_pb2.Records, limits: RecordLimits) -> None:
    for row in records.headers:
        if len(row.headers) > limits.header_count:
            message = (
                f"record {row.record} has {len(row.headers)} headers, over {limits.header_count}"
            )
            details = {"record": row.record, "header_count": limits.header_count}
            raise InvalidError("TOO_MANY_HEADERS", message, **details)
        if row.ByteSize() > limits.header_bytes:
            for header in row.headers:
                if (size := len(header.name.encode()) + len(header.value)) > limits.header_bytes:
                    rule = f"over {limits.header_bytes} bytes"
                    message = f"a header of record {row.record} has {size} bytes, {rule}"
                    details = {"record": row.record, "header_bytes": limits.header_bytes}
                    raise InvalidError("HEADER_TOO_LARGE", message, **details)


def _check_sizes(records: records_pb2.Records, limits: RecordLimits) -> None:
    sizes = list(map(len, records.values))
    if records.keys:
        sizes = [size + len(key) for size, key in zip(sizes, records.keys, strict=True)]
    for row in records.headers:
        sizes[row.record] += sum(
            len(header.name.encode()) + len(header.value) for header in row.headers
        )
    if max(sizes) > limits.record_bytes:
        index = next(at for at, size in enumerate(sizes) if size > limits.record_bytes)
        message = (
            f"record {index} of the batch has {sizes[index]} bytes of key, value and headers, "
            f"over record_bytes = {limits.record_bytes}"
        )
        details = {"record": index, "size": sizes[index], "record_bytes": limits.record_bytes}
        raise InvalidError("RECORD_TOO_LARGE", message, **details)


def _too_large(size: int, limits: RecordLimits) -> InvalidError:
    message = f"a batch of {size} bytes is over batch_bytes = {limits.batch_bytes}"
    return InvalidError("BATCH_TOO_LARGE", message, size=size, batch_bytes=limits.batch_bytes)


def _bad(message: str) -> InvalidError:
    return InvalidError("BAD_BATCH", message)


def decode_records(batch: Batch, partition: int = 0) -> list[Record]:
    """Returns the records of a stored batch. DataLossError where they cannot be read.

    The checksum is the caller's business (`Batch.decode` checks it).
    """
    header, records = batch.header, parse_records(batch)
    count = header.record_count
    offsets: Iterable[int] = range(header.base_offset, header.base_offset + count)
    if records.offset_deltas:
        offsets = [header.base_offset + delta for delta in records.offset_deltas]
    try:
        headers = _headers(records, count) if records.headers else repeat((), count)
    except IndexError as error:
        raise unreadable(header, "headers of a record that is not there") from error
    rows = zip(
        offsets,
        records.timestamps_ms[:] or repeat(header.max_timestamp_ms, count),
        _with_nulls(records.keys, records.null_keys) if records.keys else repeat(None, count),
        _with_nulls(records.values, records.null_values),
        headers,
        repeat(partition, count),
        strict=True,
    )
    return list(map(_new_tuple, repeat(Record), rows))


def keys_and_header(batch: Batch, name: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Returns of each record its offset, its key, and the last header of this exact name.

    DataLossError where they cannot be read. None stands for what is null or not there.
    """
    header, records = batch.header, parse_records(batch)
    count = header.record_count
    offsets: Iterable[int] = range(header.base_offset, header.base_offset + count)
    if records.offset_deltas:
        offsets = [header.base_offset + delta for delta in records.offset_deltas]
    keys = _with_nulls(records.keys, records.null_keys) if records.keys else [None] * count
    found: list[bytes | None] = [None] * count
    try:
        for row in records.headers:
            for one in reversed(row.headers):
                if one.name == name:
                    found[row.record] = one.value if one.HasField("value") else None
                    break
    except IndexError as error:
        raise unreadable(header, "headers of a record that is not there") from error
    return list(zip(offsets, keys, found, strict=True))


def header_bytes(header: Header) -> bytes:
    """Returns what the records of a batch contain, uncompressed, if one has this header."""
    return records_pb2.Header(name=header.name, value=header.value).SerializeToString()


def keys_of(batch: Batch) -> Sequence[bytes | None]:
    """Returns the keys of all records. DataLossError where they cannot be read."""
    records = parse_records(batch)
    if not records.keys:
        return [None] * batch.header.record_count
    return _with_nulls(records.keys, records.null_keys)


def batch_of(batch: Batch, ranges: Iterable[Range]) -> Batch:
    """Returns a stored batch of those records alone whose offsets lie in the ranges, one at least.

    Uncompressed; append time, timestamps and offsets stay as they are.
    """
    header, records = batch.header, parse_records(batch)
    base, count = header.base_offset, header.record_count
    offsets: Sequence[int] = range(base, base + count)
    if records.offset_deltas:
        offsets = [base + delta for delta in records.offset_deltas]
        runs = [(bisect_left(offsets, first), bisect_left(offsets, end)) for first, end in ranges]
    else:
        runs = [(max(first - base, 0), min(end - base, count)) for first, end in ranges]
    wanted = list(chain.from_iterable(starmap(range, runs)))
    is_sparse = bool(records.null_values or records.null_keys or records.headers)
    places = {at: place for place, at in enumerate(wanted)} if is_sparse else {}
    first, last = offsets[wanted[0]], offsets[wanted[-1]]
    has_gaps = last - first >= len(wanted)
    timestamps = _picked(records.timestamps_ms, wanted)
    made = records_pb2.Records(
        values=_picked(records.values, wanted),
        keys=_picked(records.keys, wanted),
        null_values=[places[at] for at in records.null_values if at in places],
        null_keys=[places[at] for at in records.null_keys if at in places],
        timestamps_ms=timestamps,
        offset_deltas=[offsets[at] - first for at in wanted] if has_gaps else (),
    )
    for row in records.headers:
        if row.record in places:
            made.headers.add(record=places[row.record], headers=row.headers)
    data = made.SerializeToString()
    return Batch(
        header._replace(
            base_offset=first,
            record_count=len(wanted),
            offset_span=last - first + 1,
            max_timestamp_ms=max(timestamps, default=header.max_timestamp_ms),
            attributes=Codec.NONE,
            producer_id=0,
            producer_epoch=0,
            base_sequence=0,
            records_crc=crc32c(data),
            records_bytes=len(data),
        ),
        data,
    )


def _picked(column: Sequence[T], places: Sequence[int]) -> Sequence[T]:
    return list(map(column.__getitem__, places)) if column else ()


def first_offset_at(batch: Batch, timestamp_ms: int, from_offset: int = 0) -> int | None:
    """Returns the offset of the first record with at least this timestamp; None if none has.

    Records before `from_offset` do not count.
    """
    header = batch.header
    if header.max_timestamp_ms < timestamp_ms or header.next_offset <= from_offset:
        return None
    records = parse_records(batch)
    offsets: Iterable[int] = range(header.base_offset, header.next_offset)
    if records.offset_deltas:
        offsets = [header.base_offset + delta for delta in records.offset_deltas]
    timestamps = records.timestamps_ms[:] or repeat(header.max_timestamp_ms, header.record_count)
    for offset, found_ms in zip(offsets, timestamps, strict=False):
        if found_ms >= timestamp_ms and offset >= from_offset:
            return offset
    return None


def parse_records(batch: Batch) -> records_pb2.Records:
    """Returns the columns as a message, decompressed. DataLossError where they cannot be read.

    All columns are as long as the header says; only rows of headers may be of no record.
    """
    header = batch.header
    try:
        plain = decompress(batch.records, header.codec, LENGTH_BYTES_CEILING)
        records = records_pb2.Records.FromString(plain)  # type: ignore[arg-type]  # any buffer will do
    except (DecodeError, ValueError, InvalidError) as error:
        raise unreadable(header, str(error)) from error
    count = header.record_count
    sizes = {len(records.keys), len(records.timestamps_ms), len(records.offset_deltas)}
    if len(records.values) != count or not sizes <= {0, count}:
        raise unreadable(header, "columns of different lengths")
    for nulls, column in (
        (records.null_values, records.values),
        (records.null_keys, records.keys),
    ):
        if nulls and max(nulls) >= len(column):
            raise unreadable(header, "nulls of records that are not there")
    return records


def unreadable(header: BatchHeader, why: str) -> DataLossError:
    """Returns the error for a batch whose records cannot be read."""
    message = f"the records from offset {header.base_offset} cannot be read: {why}"
    bounds = {"offset": header.base_offset, "next_offset": header.next_offset}
    return DataLossError("DAMAGED_BATCH", message, **bounds)


def _with_nulls(column: Sequence[bytes], nulls: Sequence[int]) -> Sequence[bytes | None]:
    """Returns the column as a list: its own iterator takes twice as long as slicing it."""
    with_nulls: list[bytes | None] = list(column[:])
    for index in nulls:
        with_nulls[index] = None
    return with_nulls


def _headers(records: records_pb2.Records, count: int) -> list[tuple[Header, ...]]:
    column: list[tuple[Header, ...]] = [()] * count
    for row in records.headers:
        column[row.record] = tuple(
            Header(header.name, header.value if header.HasField("value") else None)
            for header in row.headers
        )
    return column
