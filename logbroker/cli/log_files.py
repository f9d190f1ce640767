"""Which files a `log` command is about, and whose they are.

Whose a file is says the `checkpoint` beside it; `--topic-id` and `--partition` say it for a
file that lies alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from logbroker.cli.command import reporting
from logbroker.cli.output import Output
from logbroker.errors import InvalidError
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import inspection
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import Kind

FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Files, or directories of them.")
]
TopicIdOption = Annotated[
    str | None,
    typer.Option("--topic-id", metavar="ID", help="Whose the files are, where none says it."),
]
PartitionOption = Annotated[
    int | None, typer.Option("--partition", min=0, metavar="N", help="The same.")
]


@contextmanager
def owned_files(
    given: list[Path], topic_id: str | None, partition: int | None, output: Output
) -> Iterator[Iterator[tuple[Path, PartitionId]]]:
    """Gives all files with their owners; reports what is wrong with them."""

    def owned() -> Iterator[tuple[Path, PartitionId]]:
        for path in [each for one in given for each in inspection.files_at(one)]:
            yield path, _owner(path, topic_id, partition)

    with reporting(output):
        yield owned()


def _owner(path: Path, topic_id: str | None, partition: int | None) -> PartitionId:
    if topic_id is not None and partition is not None:
        return PartitionId("", topic_id, partition)
    if owner := inspection.owner_of(path, Disk()):
        return owner
    if inspection.kind_of(path) is Kind.CHECKPOINT:
        return PartitionId("", "", 0)
    message = f"{path}: no readable checkpoint beside it; say --topic-id and --partition"
    raise InvalidError("INVALID_ARGUMENT", message, path=str(path))
