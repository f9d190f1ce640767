"""`log repair`: an operator's choices, each by its name, and what it would cost.

orders/0/00000000000000000000.log: 109 damaged bytes dropped, index files made anew
  offsets 1 to 3 are gone for good: readers get DATA_LOSS there, and go on at 3
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from logbroker.cli.command import OutputOption
from logbroker.cli.log_files import FilesArgument, PartitionOption, TopicIdOption, owned_files
from logbroker.cli.output import Output, counted, write, write_json
from logbroker.cli.text import safe
from logbroker.storage.file import inspection, repair
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.inspection import Kind
from logbroker.storage.file.repair import Choice, Plan


def repair_files(
    files: FilesArgument,
    cut_tail: Annotated[
        bool, typer.Option("--cut-tail", help="Cut off what lies behind the last valid batch.")
    ] = False,
    drop_damage: Annotated[
        bool, typer.Option("--drop-damage", help="Write segments again without damaged bytes.")
    ] = False,
    rebuild_index: Annotated[
        bool, typer.Option("--rebuild-index", help="Make the index files anew.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and what that costs.")
    ] = False,
    topic_id: TopicIdOption = None,
    partition: PartitionOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change segments as told; a copy of a changed log file stays as NAME.bak."""
    given = {
        Choice.CUT_TAIL: cut_tail,
        Choice.DROP_DAMAGE: drop_damage,
        Choice.REBUILD_INDEX: rebuild_index,
    }
    choices = {choice for choice, is_given in given.items() if is_given}
    if not choices:
        raise typer.BadParameter("say what to do: --cut-tail, --drop-damage or --rebuild-index")
    with owned_files(files, topic_id, partition, output) as found:
        for path, owner in found:
            if inspection.kind_of(path) is not Kind.LOG:
                continue
            with nullcontext() if dry_run else repair.nobody_holding(path, Disk()):
                plan = repair.plan(path, owner.seed, Disk(), choices)
                if not dry_run:
                    repair.carry_out(plan, owner.seed, Disk())
            if output is Output.JSON:
                write_json(_fields(plan, choices, dry_run))
                continue
            write(f"{safe(str(path))}: {_deeds(plan, dry_run)}\n")
            for sentence in _consequences(plan, choices):
                write(f"  {sentence}\n")


def _fields(plan: Plan, choices: set[Choice], dry_run: bool) -> dict[str, Any]:
    done: dict[str, Any] = {"file": str(plan.path), "dry_run": dry_run}
    if Choice.CUT_TAIL in choices:
        done["cut_bytes"] = plan.cut_bytes
    if Choice.DROP_DAMAGE in choices:
        done["dropped_bytes"] = plan.dropped_bytes
    if plan.index_entries is not None:
        done["index_entries"] = plan.index_entries
    lost = [{"first_offset": str(first), "end_offset": str(end)} for first, end in plan.lost]
    next_offset = {} if plan.next_offset is None else {"next_offset": str(plan.next_offset)}
    return done | {"lost": lost} | next_offset


def _deeds(plan: Plan, dry_run: bool) -> str:
    deeds = []
    if plan.cut_bytes:
        deeds.append(f"{counted(plan.cut_bytes, 'byte')} cut off the tail")
    if plan.dropped_bytes:
        deeds.append(f"{counted(plan.dropped_bytes, 'damaged byte')} dropped")
    if plan.index_entries is not None:
        deeds.append("index files made anew")
    told = ", ".join(deeds) or "nothing to do"
    return f"dry run, nothing is changed: {told}" if dry_run else told


def _consequences(plan: Plan, choices: set[Choice]) -> Iterator[str]:
    for first, end in plan.lost:
        gone = f"offsets {first} to {end} are gone for good"
        yield f"{gone}: readers get DATA_LOSS there, and go on at {end}"
    if plan.next_offset is not None:
        yield f"the next record gets offset {plan.next_offset}"
    kept = [each for each in plan.found.damage if each.next_position > each.position]
    if kept and Choice.DROP_DAMAGE not in choices:
        size = sum(each.next_position - each.position for each in kept)
        yield f"{counted(size, 'damaged byte')} stay: --drop-damage"
    if plan.found.torn_bytes and Choice.CUT_TAIL not in choices:
        yield f"{counted(plan.found.torn_bytes, 'bad byte')} at the end stay: --cut-tail"
