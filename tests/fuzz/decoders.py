"""The table: everything that reads bytes which others wrote, or a disk gave back."""

import struct
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from fuzz import mended, samples
from fuzz.data_dirs import DATA_DIRECTORY
from fuzz.decoder import MIB, Decoder
from fuzz.samples import BASE_OFFSET, LENGTH, SEED
from logbroker.client.record_batch import RecordBatch, check_records
from logbroker.config import LimitsConfig, LogConfig
from logbroker.errors import DataLossError, InvalidError, LogbrokerError
from logbroker.group import events as group_events
from logbroker.group.dead_letter import DeadLetter, dead_letter_of
from logbroker.group.settings import GroupSettings
from logbroker.limits import LENGTH_BYTES_CEILING
from logbroker.record.batch import Batch, BatchHeader
from logbroker.record.columns import (
    RecordLimits,
    check_batch,
    decode_records,
    first_offset_at,
    keys_and_header,
    keys_of,
)
from logbroker.record.compression import Codec, decompress
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.recovery import Scan, scan
from logbroker.storage.file.walk import Walked, find_run, walk
from logbroker.topic import events as topic_events
from logbroker.topic import producer_registry
from logbroker.topic.producers import ProducerTable
from logbroker.v1 import group_pb2, records_pb2, topic_pb2
from logbroker.wire.consume_response import read_consume_response
from logbroker.wire.convert import headers_of, settings_of
from logbroker.wire.convert_groups import group_settings_of
from logbroker.wire.fetch_response import read_fetch_response
from logbroker.wire.produce_request import entries_of
from logbroker.wire.status import error_of

DEFAULTS = LimitsConfig()
LIMITS = RecordLimits(
    DEFAULTS.record_bytes, DEFAULTS.batch_bytes, DEFAULTS.header_count, DEFAULTS.header_bytes
)
INFLATED_BYTES = 1 * MIB


def _header(data: bytes) -> BatchHeader:
    return BatchHeader.decode(data, SEED)


def _batch(data: bytes) -> Batch:
    return Batch.decode(data, SEED)


def _records(data: bytes) -> list[Any]:
    """Every way there is to read a batch; what may be stored can be read in all of them."""
    batch = Batch.decode(data, SEED)
    try:
        check_batch(batch._replace(records=bytes(batch.records)), LIMITS)
        may_be_stored = True
    except InvalidError:
        may_be_stored = False
    read = []
    header = batch.header
    whole = RecordBatch(batch, 0, header.base_offset, header.next_offset)
    for one in (
        decode_records,
        keys_of,
        lambda batch: keys_and_header(batch, "trace"),
        lambda _: whole.records(),
    ):
        try:
            read.append(one(batch))
        except DataLossError:
            assert not may_be_stored, "what is checked can be read"
    if may_be_stored:
        assert {len(one) for one in read} == {header.record_count}
        if header.offset_span == header.record_count:
            assert read[0] == read[3]
        first_offset_at(batch, header.max_timestamp_ms)
    return read


def _decompressed(data: bytes) -> bytes | memoryview:
    codec = Codec(data[0] % len(Codec)) if data else Codec.NONE
    return decompress(data[1:], codec, INFLATED_BYTES)


def _scanned(data: bytes) -> Scan:
    noted: list[Walked] = []
    found = scan(data, BASE_OFFSET, SEED, noted.append)
    end, offset = 0, BASE_OFFSET
    for batch in noted:
        assert end <= batch.position < batch.end <= len(data)
        assert offset <= batch.base_offset < batch.next_offset
        assert Batch.decode(data, SEED, batch.position).header.base_offset == batch.base_offset
        end, offset = batch.end, batch.next_offset
    assert (found.end, found.next_offset) == (end, offset)
    assert 0 <= found.torn_bytes <= len(data) - end
    assert all(one.offset <= one.next_offset for one in found.damage)
    first = list(walk(data, SEED, 0, BASE_OFFSET))
    assert noted[: len(first)] == first
    run = find_run(data, SEED, BASE_OFFSET, BASE_OFFSET, 1 << 62, 1 << 20)
    assert 0 <= run.start <= run.end <= len(data)
    return found


def _contents(data: bytes) -> tuple[Contents, int] | None:
    length = LENGTH.unpack_from(data)[0] if len(data) >= LENGTH.size else 0
    index, times = data[LENGTH.size :][:length], data[LENGTH.size :][length:]
    file_bytes = struct.unpack_from("<q", index, 32)[0] if len(index) >= 40 else 0
    found = Contents.decode(index, times, base_offset=BASE_OFFSET, file_bytes=file_bytes, seed=SEED)
    if found is None:
        return None
    for at in (-1, 0, 5, 1 << 62):
        found.index.find(at)
        found.index.after(at)
        found.times.find(at)
    return found, file_bytes


def _index_bytes(found: tuple[Contents, int]) -> bytes:
    index, times = found[0].encode(found[1], SEED)
    return LENGTH.pack(len(index)) + index + times


def _producers(data: bytes) -> Any:
    event = producer_registry.decode(data)
    if isinstance(event, producer_registry.TableSaved):
        ProducerTable.from_rows(event.rows).rows_below(1 << 62)
    return event


def _consumed(data: bytes) -> list[Batch]:
    return _read_all(read_consume_response(data)[1])


def _fetched(data: bytes) -> list[Batch]:
    return _read_all(read_fetch_response(data).batches)


def _topic_settings(data: bytes) -> Any:
    return settings_of(topic_pb2.TopicSettings.FromString(data)).over(LogConfig())


def _group_settings(data: bytes) -> GroupSettings:
    return group_settings_of(group_pb2.GroupSettings.FromString(data))


def _letter(data: bytes) -> DeadLetter:
    return dead_letter_of(headers_of(records_pb2.RecordHeaders.FromString(data).headers))


def _status(data: bytes) -> LogbrokerError:
    trailers = grpc.aio.Metadata(("grpc-status-details-bin", data))
    code = grpc.StatusCode.INVALID_ARGUMENT
    return error_of(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), trailers, "a rule"))


def _read_all(batches: Any) -> list[Batch]:
    """What a client does with what it received."""
    for batch in batches:
        header = batch.header
        try:
            check_records(batch)
            RecordBatch(batch, 0, header.base_offset, header.next_offset).records()
        except DataLossError:
            continue
    return list(batches)


DECODERS = (
    Decoder(
        name="batch-header", samples=samples.batches, decode=_header, mend=mended.batch,
        refuses=(DataLossError,),
    ),
    Decoder(
        name="batch", samples=samples.batches, decode=_batch, mend=mended.batch,
        encode=lambda batch: batch.encode(SEED), refuses=(DataLossError,),
    ),
    Decoder(
        name="records", samples=samples.plain_batches, decode=_records, mend=mended.plain_batch,
        refuses=(DataLossError,),
    ),
    Decoder(
        name="compressed-records", samples=samples.compressed_batches, decode=_records,
        mend=mended.batch, refuses=(DataLossError,), most_bytes=4 * LENGTH_BYTES_CEILING,
    ),
    Decoder(
        name="compression", samples=samples.compressed, decode=_decompressed,
        refuses=(InvalidError,),
    ),
    Decoder(
        name="segment", samples=samples.segments, decode=_scanned, mend=mended.segment,
    ),
    Decoder(
        name="indexes", samples=samples.index_files, decode=_contents, mend=mended.index_files,
        encode=_index_bytes,
    ),
    Decoder(
        name="checkpoint", samples=samples.checkpoints, decode=Checkpoint.decode,
        mend=mended.checkpoint, encode=Checkpoint.encode,
    ),
    Decoder(
        name="topic-events", samples=samples.topic_journal, decode=topic_events.decode,
        encode=topic_events.encode, refuses=(DataLossError,),
    ),
    Decoder(
        name="producer-events", samples=samples.producer_journal, decode=_producers,
        encode=producer_registry.encode, refuses=(DataLossError,),
    ),
    Decoder(
        name="group-events", samples=samples.group_journal, decode=group_events.decode,
        encode=group_events.encode, refuses=(DataLossError,),
    ),
    Decoder(
        name="produce-requests", samples=samples.produce_requests, decode=entries_of,
        refuses=(InvalidError,),
    ),
    Decoder(
        name="fetch-responses", samples=samples.fetch_responses, decode=_fetched,
        refuses=(DecodeError,), most_bytes=4 * LENGTH_BYTES_CEILING,
    ),
    Decoder(
        name="consume-responses", samples=samples.consume_responses, decode=_consumed,
        refuses=(DecodeError,), most_bytes=4 * LENGTH_BYTES_CEILING,
    ),
    Decoder(
        name="topic-settings", samples=samples.topic_settings, decode=_topic_settings,
        refuses=(DecodeError, InvalidError),
    ),
    Decoder(
        name="group-settings", samples=samples.group_settings, decode=_group_settings,
        refuses=(DecodeError, InvalidError),
    ),
    Decoder(
        name="dead-letter-headers", samples=samples.dead_letter_headers, decode=_letter,
        refuses=(DecodeError, DataLossError),
    ),
    Decoder(name="statuses", samples=samples.statuses, decode=_status),
    DATA_DIRECTORY,
)  # fmt: skip
