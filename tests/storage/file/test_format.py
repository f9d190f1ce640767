"""The bytes of a data directory, pinned: a difference here is a decision (FORMAT.md)."""

from pathlib import Path

from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.contents import Contents
from logbroker.storage.file.recovery import Scan, scan
from logbroker.storage.file.walk import find_run
from logbroker.v1.stored_batch_pb2 import Segment

GOLDEN = Path("tests/golden")
LOG, INDEX, TIME_INDEX = (
    GOLDEN / f"{0:020}{suffix}" for suffix in (".log", ".index", ".timeindex")
)
PARTITION = PartitionId("orders", "6f1c", 0)


def test_a_segment_of_the_first_version_is_read():
    data = LOG.read_bytes()
    assert scan(data, 0, PARTITION.seed) == Scan(6, len(data), 0, ())
    found = find_run(data, PARTITION.seed, 0, 1, 6, 1 << 20)
    second = Batch.decode(data, PARTITION.seed, found.start)
    assert [record.value for record in decode_records(second)] == [b"value 1", b"value 2"]
    assert found.next_offset == 6


def test_a_segment_is_a_protobuf_message():
    parsed = Segment.FromString(LOG.read_bytes())
    assert [batch.base_offset for batch in parsed.batches] == [0, 1, 3]


def test_index_files_are_made_as_they_were():
    data = LOG.read_bytes()
    made = Contents(0)
    scan(data, 0, PARTITION.seed, made.note)
    files = (INDEX.read_bytes(), TIME_INDEX.read_bytes())
    assert made.encode(len(data), PARTITION.seed) == files
    found = Contents.decode(*files, base_offset=0, file_bytes=len(data), seed=PARTITION.seed)
    assert found is not None
    assert (found.next_offset, found.max_timestamp_ms) == (6, 1_700_000_000_002)


def test_a_checkpoint_is_made_as_it_was():
    data = (GOLDEN / "checkpoint").read_bytes()
    checkpoint = Checkpoint.decode(data)
    assert checkpoint is not None
    assert checkpoint.encode() == data
    assert (checkpoint.id, checkpoint.log_start_offset, checkpoint.next_offset) == (PARTITION, 1, 6)
