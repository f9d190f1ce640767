"""`dlq list|show|resolve|copy`; `redrive` and what belongs to it have a module of their own."""

import sys
from typing import Annotated

import typer

from logbroker.cli import redrive
from logbroker.cli.command import (
    DEFAULT_SERVER,
    GroupArgument,
    OutputOption,
    ServerOption,
    call,
)
from logbroker.cli.dead_letter_options import (
    BlockedOption,
    KeyOption,
    LimitOption,
    OffsetsOption,
    PartitionOption,
    ReasonOption,
    SinceOption,
    SourceTopicArgument,
    UntilOption,
    Wanted,
)
from logbroker.cli.dead_letter_view import (
    LETTER_COLUMNS,
    letter_fields,
    letter_for_people,
    letter_row,
    record_fields,
)
from logbroker.cli.output import (
    Output,
    counted,
    note,
    write,
    write_bytes,
    write_fields,
    write_json,
    write_table,
)
from logbroker.client.client import Client
from logbroker.client.dead_letter_admin import DeadLetterInfo, DeadLetterRecord
from logbroker.topic.names import check_name, dead_letter_topic

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What groups failed at: look at it, give it back, put it away.",
)
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only say how many that would be.")]


@app.command("list")
def list_letters(
    group: GroupArgument,
    topic: SourceTopicArgument,
    partition: PartitionOption = None,
    offsets: OffsetsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reason: ReasonOption = "",
    key: KeyOption = None,
    limit: LimitOption = 0,
    blocked: BlockedOption = False,
    resolved: Annotated[
        bool, typer.Option("--resolved", help="Resolved ones too, as far as they are there.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """List what a group failed at in a topic, by partition, oldest first."""
    wanted = Wanted(group, topic, partition, offsets, since, until, reason, key, limit, blocked)
    wanted.say_zones()

    async def verb(client: Client) -> tuple[list[DeadLetterInfo], int]:
        which = await wanted.filter(client)
        found = await client.admin.list_dead_letters(which, with_resolved=resolved)
        progress = () if blocked else (await client.admin.get_group(group)).progress
        return found, sum(one.parked_count for one in progress if one.topic == topic)

    letters, others = call(server, output, verb)
    if others:
        are = "is" if others == 1 else "are"
        note(f"{counted(others, 'record')} of {topic} {are} blocked in their place: add --blocked")
    if output is Output.JSON:
        for letter in letters:
            write_json(letter_fields(letter))
        return
    if not letters:
        wanted.say_none("is here" if resolved else "is unresolved")
        return
    optional = ("redrives", "failures")
    write_table(LETTER_COLUMNS, list(map(letter_row, letters)), optional=optional)


@app.command()
def show(
    group: GroupArgument,
    topic: SourceTopicArgument,
    partition: Annotated[
        int, typer.Argument(min=0, metavar="PARTITION", help="The partition's number.")
    ],
    offset: Annotated[
        int, typer.Argument(min=0, metavar="OFFSET", help="As listed, in the column `offset`.")
    ],
    blocked: BlockedOption = False,
    full: Annotated[bool, typer.Option("--full", help="Do not cut long values.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The value alone, byte for byte.")] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show one dead letter: where it came from, why it failed, and its record."""
    if raw and output is Output.JSON:
        raise typer.BadParameter("of --raw and -o json, only one")

    async def verb(client: Client) -> DeadLetterRecord:
        dead_letter_topic(check_name(topic), check_name(group))
        return await client.admin.get_dead_letter(group, topic, partition, offset, blocked=blocked)

    found = call(server, output, verb)
    if raw:
        write_bytes(found.value or b"")
    elif output is Output.JSON:
        write_json(record_fields(found))
    else:
        write_fields(letter_for_people(found, full=full))


@app.command()
def resolve(
    group: GroupArgument,
    topic: SourceTopicArgument,
    partition: PartitionOption = None,
    offsets: OffsetsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reason: ReasonOption = "",
    key: KeyOption = None,
    limit: LimitOption = 0,
    blocked: BlockedOption = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Given up, rather than dealt with elsewhere.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Settle dead letters for good, without delivering them again.

    Parked ones, and those that were redriven and that no member holds.
    """
    wanted = Wanted(group, topic, partition, offsets, since, until, reason, key, limit, blocked)
    wanted.say_zones()
    word = "discard" if discard else "resolve"

    async def count(client: Client) -> int:
        which = await wanted.filter(client)
        return await client.admin.resolve_dead_letters(which, discard=discard, dry_run=True)

    async def verb(client: Client) -> int:
        which = await wanted.filter(client)
        return await client.admin.resolve_dead_letters(which, discard=discard, dry_run=dry_run)

    if not yes and not dry_run:
        if not sys.stdin.isatty():
            raise typer.BadParameter(f"this {word}s them for good: say --yes if you mean it")
        letters = counted(call(server, output, count), wanted.noun)
        typer.confirm(f"{word.capitalize()} {letters} of {group}?", abort=True, err=True)
    done = call(server, output, verb)
    if output is Output.JSON:
        write_json({"count": str(done), "discard": discard, "dry_run": dry_run})
        return
    if not done:
        wanted.say_none("can be resolved")
    did = f"would {word}" if dry_run else "discarded" if discard else "resolved"
    write(f"{did} {counted(done, wanted.noun)}\n")


@app.command()
def copy(
    group: GroupArgument,
    topic: SourceTopicArgument,
    to: Annotated[str, typer.Option("--to", metavar="TOPIC", help="Where to; it must exist.")],
    partition: PartitionOption = None,
    offsets: OffsetsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    reason: ReasonOption = "",
    key: KeyOption = None,
    limit: LimitOption = 0,
    blocked: BlockedOption = False,
    dry_run: DryRunOption = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy the records of dead letters to another topic. They stay parked."""
    wanted = Wanted(group, topic, partition, offsets, since, until, reason, key, limit, blocked)
    wanted.say_zones()

    async def verb(client: Client) -> int:
        which = await wanted.filter(client)
        return await client.admin.copy_dead_letters(which, check_name(to), dry_run=dry_run)

    done = call(server, output, verb)
    if output is Output.JSON:
        write_json({"count": str(done), "to_topic": to, "dry_run": dry_run})
        return
    if not done:
        wanted.say_none("is unresolved")
    write(f"{'would copy' if dry_run else 'copied'} {counted(done, wanted.noun)} to {to}\n")


app.command("redrive")(redrive.start)
app.command("redrives")(redrive.list_redrives)
app.command("cancel")(redrive.cancel)
