"""`log lost`: topics whose files are there and whose settings are lost.

orders: 3 partitions of topic 6f1c
orders: taken back, with 3 partitions and retention without end
  set how long it shall stay, and what else it had: logbroker topic update orders
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from logbroker.cli.command import OutputOption, reporting
from logbroker.cli.lost_topics import (
    LostTopic,
    check_lost,
    find_lost,
    place_aside,
    put_aside,
    take_back,
)
from logbroker.cli.output import Output, counted, write, write_json
from logbroker.cli.text import safe
from logbroker.storage.file.disk import Disk


def lost_topics(
    data_dir: Annotated[Path, typer.Argument(metavar="DATA_DIR", help="Of a broker, stopped.")],
    taken_back: Annotated[
        list[str] | None,
        typer.Option("--take-back", metavar="TOPIC", help="Enter it in the journal again."),
    ] = None,
    put_away: Annotated[
        list[str] | None,
        typer.Option("--put-aside", metavar="TOPIC", help="Move its directory to lost/."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and what that costs.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """List topics whose settings are lost; take them back, or put them aside, as told."""
    disk = Disk()
    with reporting(output):
        lost = find_lost(data_dir, disk)
        back = [check_lost(name, lost) for name in dict.fromkeys(taken_back or ())]
        away = [check_lost(name, lost) for name in dict.fromkeys(put_away or ())]
        if both := {one.topic for one in back} & {one.topic for one in away}:
            raise typer.BadParameter(f"{min(both)!r}: either --take-back or --put-aside")
        for one in back:
            one.check_can_be_taken_back()
        if not (back or away):
            _list(lost, output)
            return
        if back and not dry_run:
            asyncio.run(take_back(data_dir, back))
        for one in back:
            _say(one, "taken back", list(_costs_back(one)), dry_run, output)
        for one in away:
            target = place_aside(data_dir, one.topic, disk)
            if not dry_run:
                target = put_aside(data_dir, one.topic, disk)
            costs = ["its name is free; what groups knew of it is forgotten at the next start"]
            _say(one, f"put aside: {target}", costs, dry_run, output)


def _list(lost: list[LostTopic], output: Output) -> None:
    for one in lost:
        if output is Output.JSON:
            write_json(
                {
                    "topic": one.topic,
                    "topic_ids": sorted(one.topic_ids),
                    "partitions": list(one.partitions),
                    "unreadable": list(one.unreadable),
                }
            )
            continue
        ids = ", ".join(sorted(one.topic_ids)) or "nobody knows which"
        count = counted(len(one.partitions), "partition")
        write(f"{safe(one.topic)}: {count} of topic {safe(ids)}\n")
    if not lost and output is Output.TABLE:
        write("no topic is lost\n")


def _say(one: LostTopic, deed: str, costs: list[str], dry_run: bool, output: Output) -> None:
    if output is Output.JSON:
        write_json({"topic": one.topic, "done": deed, "costs": costs, "dry_run": dry_run})
        return
    told = f"dry run, nothing is changed: {deed}" if dry_run else deed
    write(f"{safe(one.topic)}: {safe(told)}\n")
    for cost in costs:
        write(f"  {safe(cost)}\n")


def _costs_back(one: LostTopic) -> Iterator[str]:
    yield f"it has {counted(one.partition_count, 'partition')}, and retention without end"
    yield f"say how long it shall stay, and what else it had: logbroker topic update {one.topic}"
    for number in one.missing:
        yield f"partition {number} is not there: it begins empty"
    for number in one.unreadable:
        yield f"partition {number} has no whole checkpoint: it stays TOPIC_DAMAGED"
