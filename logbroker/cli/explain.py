"""`explain`: why a record is not delivered to a group now."""

from typing import Annotated

import typer

from logbroker.cli.command import (
    DEFAULT_SERVER,
    GroupArgument,
    OutputOption,
    ServerOption,
    TopicArgument,
    call,
)
from logbroker.cli.output import Output, flush, note, write_fields, write_json
from logbroker.client.client import Client
from logbroker.client.group_status import RecordExplanation
from logbroker.topic.names import check_name

PartitionArgument = Annotated[
    int, typer.Argument(min=0, metavar="PARTITION", help="The partition's number.")
]


def explain(
    group: GroupArgument,
    topic: TopicArgument,
    partition: PartitionArgument,
    offset: Annotated[int, typer.Argument(min=0, metavar="OFFSET", help="Of the record.")],
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Say why a record is not delivered to a group now, or what became of it."""

    async def verb(client: Client) -> RecordExplanation:
        names = check_name(group), check_name(topic)
        return await client.admin.explain(*names, partition, offset)

    found = call(server, output, verb)
    if output is Output.JSON:
        place = {"group": group, "topic": topic, "partition": partition, "offset": str(offset)}
        details = dict(sorted(found.details.items()))
        write_json(place | found._replace(details=details)._asdict())
        return
    write_fields({found.state: found.message})
    if found.details:
        write_fields({f"  {name}": value for name, value in sorted(found.details.items())})
    if hint := _hint(group, topic, partition, offset, found):
        flush()
        note(f"see: logbroker dlq show {hint}")


def _hint(group: str, topic: str, partition: int, offset: int, found: RecordExplanation) -> str:
    """Returns the arguments that show a record which waits for an operator; empty: it does not."""
    if source := found.details.get("source_topic"):
        return f"{group} {source} {partition} {offset}"
    if found.state == "parked":
        return f"{group} {topic} {partition} {offset} --blocked"
    if place := found.details.get("dead_letter_offset"):
        return f"{group} {topic} {partition} {place}"
    return ""
