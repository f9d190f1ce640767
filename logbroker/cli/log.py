"""`log dump|verify|repair|lost`: any file in a data directory, offline.

FILE    a .log, .index, .timeindex or checkpoint file, or a directory of them
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from logbroker.cli.command import OutputOption
from logbroker.cli.log_files import FilesArgument, PartitionOption, TopicIdOption, owned_files
from logbroker.cli.log_lost import lost_topics
from logbroker.cli.log_repair import repair_files
from logbroker.cli.moment import show_time
from logbroker.cli.output import FAILED, Output, counted, write, write_fields, write_json
from logbroker.cli.record_json import record_to_json
from logbroker.cli.text import safe, shown
from logbroker.errors import DataLossError, InvalidError
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import inspection
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import Finding, Kind
from logbroker.storage.file.walk import Buffer, Walked

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Look at, check and repair files of a data directory, without a broker.",
)

app.command("repair")(repair_files)
app.command("lost")(lost_topics)


@app.command()
def dump(
    files: FilesArgument,
    records: Annotated[bool, typer.Option("--records", help="Show the records too.")] = False,
    topic_id: TopicIdOption = None,
    partition: PartitionOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what files hold: batches, entries, checkpoints."""
    with owned_files(files, topic_id, partition, output) as found:
        for path, owner in found:
            if output is Output.TABLE:
                write(f"{safe(str(path))}\n")
            match inspection.kind_of(path):
                case Kind.LOG:
                    _dump_log(path, owner, records, output)
                case Kind.CHECKPOINT:
                    _dump_checkpoint(path, output)
                case _:
                    _dump_index(path, owner, output)


@app.command()
def verify(
    files: FilesArgument,
    topic_id: TopicIdOption = None,
    partition: PartitionOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check files; exit with 1 if anything is damaged or torn."""
    is_harmed = False
    with owned_files(files, topic_id, partition, output) as found:
        for path, owner in found:
            report = inspection.verify(path, owner.seed, Disk())
            is_harmed = is_harmed or any(finding.is_harm for finding in report.findings)
            if output is Output.JSON:
                findings = [_finding_fields(finding) for finding in report.findings]
                write_json({"file": str(path), "holds": report.summary, "findings": findings})
                continue
            summary = f"ok: {report.summary}" if not report.findings else report.summary
            write(f"{safe(str(path))}: {safe(summary)}\n")
            for finding in report.findings:
                write(f"  {safe(finding.message)}\n")
    if is_harmed:
        raise typer.Exit(FAILED)


def _dump_log(path: Path, owner: PartitionId, with_records: bool, output: Output) -> None:
    def show(walked: Walked, data: Buffer) -> None:
        whole = bytes(data[walked.position : walked.end])
        batch = Batch.decode(whole, owner.seed)
        if output is Output.JSON:
            write_json(_batch_fields(walked.position, batch))
        else:
            write(_batch_line(walked.position, batch))
        if with_records:
            _dump_records(batch, owner.partition, output)

    for finding in inspection.walk_log(path, owner.seed, Disk(), show):
        if output is Output.JSON:
            write_json(_finding_fields(finding))
        else:
            write(f"  {safe(finding.message)}\n")


def _dump_records(batch: Batch, partition: int, output: Output) -> None:
    try:
        records = decode_records(batch, partition)
    except DataLossError as error:
        if output is Output.JSON:
            write_json({"finding": "unreadable", "message": str(error), **error.details})
        else:
            write(f"    {safe(str(error))}\n")
        return
    for record in records:
        if output is Output.JSON:
            write(record_to_json(record) + "\n")
            continue
        time = show_time(record.timestamp_ms)
        headers = "".join(
            f"  {safe(header.name)}={shown(header.value)}" for header in record.headers
        )
        key, value = shown(record.key), shown(record.value)
        write(f"    {record.offset}  {time}  key {key}  value {value}{headers}\n")


def _batch_line(position: int, batch: Batch) -> str:
    header = batch.header
    return (
        f"  offset {header.base_offset}  position {position}  {header.size_bytes} bytes"
        f"  {counted(header.record_count, 'record')}  appended {show_time(header.append_time_ms)}"
        f"  latest {show_time(header.max_timestamp_ms)}  attributes {header.attributes}"
        f"  producer {header.producer_id}/{header.producer_epoch}/{header.base_sequence}\n"
    )


def _batch_fields(position: int, batch: Batch) -> dict[str, Any]:
    header = batch.header
    return {
        "position": str(position),
        "size_bytes": header.size_bytes,
        "base_offset": str(header.base_offset),
        "next_offset": str(header.next_offset),
        "record_count": header.record_count,
        "append_time_ms": str(header.append_time_ms),
        "max_timestamp_ms": str(header.max_timestamp_ms),
        "attributes": header.attributes,
        "producer_id": str(header.producer_id),
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "records_crc": f"{header.records_crc:08x}",
    }


def _dump_index(path: Path, owner: PartitionId, output: Output) -> None:
    content = inspection.read_index(path, owner.seed, Disk())
    if content is None:
        raise InvalidError("INVALID_ARGUMENT", f"{path}: not sound", path=str(path))
    names = {Kind.INDEX: ("offset", "position"), Kind.TIME_INDEX: ("max_before_ms", "offset")}
    kind = inspection.kind_of(path)
    key, value = names[Kind.INDEX if kind is Kind.INDEX else Kind.TIME_INDEX]
    summary = {name: str(number) for name, number in content.summary._asdict().items()}
    if output is Output.JSON:
        write_json({"file": str(path), **summary})
    else:
        write_fields(summary)
    for left, right in inspection.index_entries(content):
        if output is Output.JSON:
            write_json({key: str(left), value: str(right)})
        else:
            write(f"  {key} {left}  {value} {right}\n")


def _dump_checkpoint(path: Path, output: Output) -> None:
    checkpoint = Checkpoint.decode(Disk().read_file(path) or b"")
    if checkpoint is None:
        raise InvalidError("INVALID_ARGUMENT", f"{path}: not sound", path=str(path))
    fields = {
        "topic": checkpoint.topic,
        "topic_id": checkpoint.topic_id,
        "partition": str(checkpoint.partition),
        "log_start_offset": str(checkpoint.log_start_offset),
        "next_offset": str(checkpoint.next_offset),
        "append_time_ms": str(checkpoint.append_time_ms),
    }
    if output is Output.JSON:
        write_json({"file": str(path), **fields})
    else:
        write_fields(fields)


def _finding_fields(finding: Finding) -> dict[str, str]:
    details = {name: str(value) for name, value in finding.details.items()}
    return {"finding": finding.kind, "message": finding.message, **details}
