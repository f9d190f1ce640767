"""`group create|list|describe|update|delete`; `reset` and `watch` have modules of their own."""

import sys
from dataclasses import replace
from typing import Annotated

import typer

from logbroker.cli import group_reset, group_watch
from logbroker.cli.command import DEFAULT_SERVER, GroupArgument, OutputOption, ServerOption, call
from logbroker.cli.group_options import (
    AfterDeadLetterOption,
    ExhaustedOption,
    GroupRetentionOption,
    LeaseOption,
    MaxFailuresOption,
    MaxUnsettledOption,
    OrderOption,
    OutOfRangeOption,
    RetryInitialOption,
    RetryMaxOption,
    RetryMultiplierOption,
    StartOption,
    given,
    settings_of,
)
from logbroker.cli.group_reset import FORCE_HINT, ForceOption
from logbroker.cli.group_view import (
    SUMMARY_COLUMNS,
    summary_fields,
    summary_row,
    write_description,
    write_group,
)
from logbroker.cli.output import Output, counted, write, write_json, write_table
from logbroker.client.client import Client
from logbroker.client.group_status import GroupDescription, GroupInfo, GroupSummary
from logbroker.topic.names import check_name

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Make, show, watch, move and remove groups."
)


@app.command()
def create(
    group: GroupArgument,
    order: OrderOption = None,
    lease: LeaseOption = None,
    retry_initial: RetryInitialOption = None,
    retry_multiplier: RetryMultiplierOption = None,
    retry_max: RetryMaxOption = None,
    max_failures: MaxFailuresOption = None,
    exhausted: ExhaustedOption = None,
    after_dead_letter: AfterDeadLetterOption = None,
    max_unsettled: MaxUnsettledOption = None,
    start: StartOption = None,
    out_of_range: OutOfRangeOption = None,
    group_retention: GroupRetentionOption = None,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Create a group. Not needed before reading as one: that makes it with the defaults."""
    changes = given(
        order=order,
        lease_ms=lease,
        retry_initial_ms=retry_initial,
        retry_multiplier=retry_multiplier,
        retry_max_ms=retry_max,
        max_failures=max_failures,
        exhausted=exhausted,
        after_dead_letter=after_dead_letter,
        max_unsettled=max_unsettled,
        start=start,
        out_of_range=out_of_range,
        group_retention_ms=group_retention,
    )

    async def verb(client: Client) -> GroupInfo:
        return await client.admin.create_group(check_name(group), settings_of(changes))

    write_group(call(server, output, verb), output, "created")


@app.command("list")
def list_groups(server: ServerOption = DEFAULT_SERVER, output: OutputOption = Output.TABLE) -> None:
    """List the groups by name, with their lag and its age."""

    async def verb(client: Client) -> list[GroupSummary]:
        return await client.admin.list_groups()

    groups = call(server, output, verb)
    if output is Output.JSON:
        for group in groups:
            write_json(summary_fields(group))
        return
    write_table(SUMMARY_COLUMNS, list(map(summary_row, groups)))


@app.command()
def describe(
    group: GroupArgument,
    behind: Annotated[
        bool, typer.Option("--behind", help="Of its partitions, only those with lag.")
    ] = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show a group, its settings, its members, and how far it is everywhere."""

    async def verb(client: Client) -> GroupDescription:
        return await client.admin.get_group(check_name(group))

    found = call(server, output, verb)
    if behind:
        found = replace(found, progress=tuple(one for one in found.progress if one.lag))
    write_description(found, output)


@app.command()
def update(
    group: GroupArgument,
    order: OrderOption = None,
    lease: LeaseOption = None,
    retry_initial: RetryInitialOption = None,
    retry_multiplier: RetryMultiplierOption = None,
    retry_max: RetryMaxOption = None,
    max_failures: MaxFailuresOption = None,
    exhausted: ExhaustedOption = None,
    after_dead_letter: AfterDeadLetterOption = None,
    max_unsettled: MaxUnsettledOption = None,
    start: StartOption = None,
    out_of_range: OutOfRangeOption = None,
    group_retention: GroupRetentionOption = None,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change settings of a group. The order only while no members are attached."""
    changes = given(
        order=order,
        lease_ms=lease,
        retry_initial_ms=retry_initial,
        retry_multiplier=retry_multiplier,
        retry_max_ms=retry_max,
        max_failures=max_failures,
        exhausted=exhausted,
        after_dead_letter=after_dead_letter,
        max_unsettled=max_unsettled,
        start=start,
        out_of_range=out_of_range,
        group_retention_ms=group_retention,
    )
    if not changes:
        raise typer.BadParameter("nothing to change; give a setting, such as --max-failures 3")

    async def verb(client: Client) -> GroupInfo:
        return await client.admin.update_group(check_name(group), **changes)

    hint = "stop its members first"
    write_group(call(server, output, verb, GROUP_IN_USE=hint), output, "updated")


@app.command()
def delete(
    group: GroupArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: ForceOption = False,
    server: ServerOption = DEFAULT_SERVER,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a group and its progress. Its dead-letter topics stay."""
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("this forgets how far the group is: say --yes if you mean it")
        _confirm(group, server, output)

    async def verb(client: Client) -> None:
        await client.admin.delete_group(check_name(group), force=force)

    call(server, output, verb, GROUP_IN_USE=FORCE_HINT)
    if output is Output.JSON:
        write_json({"group": group, "deleted": True})
    else:
        write(f"deleted {group}\n")


app.command()(group_reset.reset)
app.command()(group_watch.watch)


def _confirm(group: str, server: str, output: Output) -> None:
    """Asks whether to go on, saying how much is at stake; ends the command unless told so."""

    async def verb(client: Client) -> GroupDescription:
        return await client.admin.get_group(check_name(group))

    found = call(server, output, verb)
    members, topics = len(found.members), len(found.group.topics)
    place = f"its place in {counted(topics, 'topic')}"
    typer.confirm(
        f"Delete {group} with {counted(members, 'member')} and {place}?", abort=True, err=True
    )
