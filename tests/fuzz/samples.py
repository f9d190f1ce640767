"""Bytes as our encoders write them: what mutations begin with."""

import struct
from collections.abc import Iterable
from pathlib import Path

from group.test_events import ALL as GROUP_EVENTS

from logbroker.config import LogConfig
from logbroker.errors import InvalidError
from logbroker.group import events as group_events
from logbroker.group.dead_letter import DeadLetter, with_dead_letter
from logbroker.group.settings import GroupSettings, Start
from logbroker.record.batch import Batch
from logbroker.record.columns import Columns, batch_of, encode_batch
from logbroker.record.compression import Codec, compress
from logbroker.record.partition_id import PartitionId
from logbroker.record.record import Header
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.recovery import scan
from logbroker.topic import events as topic_events
from logbroker.topic import producer_registry
from logbroker.topic.topic import Topic
from logbroker.v1 import consume_service_pb2, produce_service_pb2, records_pb2, topic_pb2
from logbroker.wire.consume_response import delivery_fields
from logbroker.wire.convert import settings_to_proto
from logbroker.wire.convert_groups import group_settings_to_proto
from logbroker.wire.fetch_response import fetch_response
from logbroker.wire.produce_request import produce_entry, produce_request
from logbroker.wire.status import status_of

PARTITION = PartitionId("orders", "6f1c", 0)
SEED = PARTITION.seed
GOLDEN = Path(__file__).parents[1] / "golden"
BASE_OFFSET = 0
LENGTH = struct.Struct("<I")

COLUMNS = (
    Columns([b"value"]),
    Columns([b"", None, b"v" * 300], [b"key", None, b""], [5, -(1 << 63), (1 << 63) - 1]),
    Columns([b"%d" % number for number in range(40)], timestamps_ms=range(40)),
    Columns(
        [b"a", b"b", None],
        headers=[(0, [Header("trace", b"1"), Header("trace", None)]), (2, [Header("", b"")])],
    ),
)


def batches(codecs: Iterable[Codec] = Codec) -> list[bytes]:
    """Returns batches as a segment file has them; the first offsets follow one another."""
    made, offset = [], BASE_OFFSET
    for codec in codecs:
        for number, columns in enumerate(COLUMNS):
            batch = encode_batch(columns, now_ms=9, codec=codec, producer_id=7 * number)
            batch = batch.stamped(base_offset=offset, append_time_ms=1_000 + offset)
            made.append(batch.encode(SEED))
            offset = batch.header.next_offset
    return made


def plain_batches() -> list[bytes]:
    """Returns batches that are not compressed, one with gaps between its offsets among them."""
    made = batches([Codec.NONE])
    whole = Batch.decode(made[2], SEED)
    first = whole.header.base_offset
    with_gaps = batch_of(whole, [(first + 3, first + 5), (first + 20, first + 21)])
    golden = bytes.fromhex((GOLDEN / "batch_v1.hex").read_text())
    return [*made, with_gaps.encode(SEED), golden]


def compressed_batches() -> list[bytes]:
    """Returns batches that are."""
    return batches([Codec.GZIP, Codec.ZSTD])


def compressed() -> list[bytes]:
    """Returns data behind the number of its codec."""
    data = [b"", b"data" * 100, bytes(1 << 14)]
    return [bytes([codec]) + compress(each, codec) for codec in Codec for each in data]


def segments() -> list[bytes]:
    """Returns segments: whole, with room behind, with damage, with a batch inside a record."""
    run = batches()
    golden = (GOLDEN / "00000000000000000000.log").read_bytes()
    nested = encode_batch(Columns([b"".join(run[:3])]), now_ms=9)
    nested = nested.stamped(base_offset=BASE_OFFSET, append_time_ms=1_000)
    after = encode_batch(COLUMNS[0], now_ms=9).stamped(base_offset=1, append_time_ms=1_001)
    return [
        b"".join(run),
        b"".join(run) + bytes(5_000),
        b"".join([*run[:2], b"\xff" * len(run[2]), *run[3:]]),
        nested.encode(SEED) + after.encode(SEED),
        golden,
        b"",
    ]


def index_files() -> list[bytes]:
    """Returns both index files of segments, behind the length of the first."""
    made = []
    for data in segments():
        contents = Contents(BASE_OFFSET)
        scan(data, BASE_OFFSET, SEED, contents.note)
        index, times = contents.encode(len(data), SEED)
        made.append(LENGTH.pack(len(index)) + index + times)
    return made


def checkpoints() -> list[bytes]:
    """Returns checkpoints."""
    of = {"topic": "orders", "topic_id": "6f1c", "partition": 3}
    return [
        Checkpoint(**of).encode(),  # type: ignore[arg-type]
        Checkpoint(**of, log_start_offset=5, next_offset=9, append_time_ms=1).encode(),  # type: ignore[arg-type]
        (GOLDEN / "checkpoint").read_bytes(),
    ]


def topic_journal() -> list[bytes]:
    """Returns an event of each kind."""
    topic = Topic(
        topic="orders", topic_id="6f1c", partition_count=2, settings=LogConfig(), created_ms=5
    )
    made = (
        topic_events.TopicCreated(topic),
        topic_events.TopicUpdated("6f1c", LogConfig(retention_ms=1)),
        topic_events.TopicGrown("6f1c", 7),
        topic_events.TopicDeleted("6f1c"),
        topic_events.TopicErased("6f1c"),
    )
    return [topic_events.encode(event) for event in made]


def producer_journal() -> list[bytes]:
    """Returns an event of each kind."""
    saved = producer_registry.TableSaved("6f1c", 1, 90, [[5, 0, 0, 10, 80, 1_000]])
    made = (saved, producer_registry.TopicForgotten("6f1c"))
    return [producer_registry.encode(event) for event in made]


def group_journal() -> list[bytes]:
    """Returns an event of each kind that is kept, those of snapshots and redrives among them."""
    return [group_events.encode(event) for event in GROUP_EVENTS]


def produce_requests() -> list[bytes]:
    """Returns requests: as our clients lay them out, and as generated code does."""
    batch = encode_batch(COLUMNS[1], now_ms=9)
    fields = produce_service_pb2.ProduceEntry(
        topic="orders", topic_id="6f1c", partition=1, expected_offset=5
    ).SerializeToString()
    ours = produce_request([produce_entry(batch, fields)] * 2)
    parsed = produce_service_pb2.ProduceRequest.FromString(ours)
    for entry in parsed.entries:
        entry.batch.offset_span = 0
    return [ours, parsed.SerializeToString(), b""]


def fetch_responses() -> list[bytes]:
    """Returns responses with and without batches."""
    of = {"high_watermark": 90, "log_start_offset": 1, "next_offset": 80, "start_offset": 2}
    return [fetch_response(b"".join(batches()), **of), fetch_response(b"", **of)]


def consume_responses() -> list[bytes]:
    """Returns responses with and without batches."""
    delivery = delivery_fields(
        topic="orders", topic_id="6f1c", partition=1, token=7, lease_ms=9, runs=(),
        dead_letter_topic="orders.g.dlq",
    )  # fmt: skip
    news = consume_service_pb2.ConsumeResponse()
    news.settled.add(committed_offset=5)
    fields = news.SerializeToString() + delivery
    return [fields + b"".join(batches()), fields]


def topic_settings() -> list[bytes]:
    """Returns settings: some, and all."""
    config = settings_to_proto(LogConfig())
    return [config.SerializeToString(), topic_pb2.TopicSettings(retention_ms=5).SerializeToString()]


def group_settings() -> list[bytes]:
    """Returns settings of groups."""
    found = [GroupSettings(), GroupSettings(start=Start.TIME, start_time_ms=5)]
    return [group_settings_to_proto(one).SerializeToString() for one in found]


def dead_letter_headers() -> list[bytes]:
    """Returns the headers of a dead letter."""
    letter = DeadLetter("orders", "6f1c", 1, 5, 9, "g", 2, 3, 4, "no such city")
    headers = with_dead_letter([Header("trace", None)], letter)
    made = [records_pb2.Header(name=header.name, value=header.value) for header in headers]
    return [records_pb2.RecordHeaders(record=0, headers=made).SerializeToString()]


def statuses() -> list[bytes]:
    """Returns what tells a client why a call was refused."""
    errors = (
        InvalidError("INVALID_NAME", "a rule", name="-"),
        InvalidError("BATCH_TOO_LARGE", "a rule", retry_after_ms=5),
    )
    made = (status_of(error).trailing_metadata for error in errors)
    return [value for trailers in made for _, value in trailers]
