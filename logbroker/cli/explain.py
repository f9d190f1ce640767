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
from logbroker.cli.output import Output, write_fields, write_json
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
        write_json(place | found._asdict())
        return
    write_fields({found.state: found.message})
    if found.details:
        write_fields({f"  {name}": value for name, value in sorted(found.details.items())})
