"""How groups, their members and their progress are shown: in words and units, and as JSON."""

from collections.abc import Sequence
from typing import Any

from logbroker.cli.group_settings_view import settings_fields, settings_for_people
from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, flush, note, write, write_fields, write_json, write_table
from logbroker.cli.units import show_age
from logbroker.client.audience import TopicPartition
from logbroker.client.group_status import (
    GroupDescription,
    GroupInfo,
    GroupSummary,
    MemberInfo,
    PartitionProgress,
)
from logbroker.group.settings import Start
from logbroker.record.offset_ranges import OffsetRanges

SUMMARY_COLUMNS = (
    "group", "order", "members", "lag", "age", "blocked", "dead letters", "topics",
)  # fmt: skip
PROGRESS_COLUMNS = (
    "topic", "partition", "committed", "log start", "high watermark", "lag", "age", "leased",
    "waiting", "parked", "failed", "expired", "member", "waits for",
)  # fmt: skip
OPTIONAL = ("expired", "failed", "log start", "parked", "waiting", "leased", "member", "waits for")
"""What a narrow terminal does without, where it says nothing."""
MEMBER_COLUMNS = ("member", "client", "joined", "leased", "assignment")
DEAD_LETTER_COLUMNS = ("dead-letter topic", "partition", "parked", "redriven")
NOT_BEGUN = (
    "committed none: nothing is settled there yet; its lag counts from where the group starts"
)


def write_group(group: GroupInfo, output: Output, done: str) -> None:
    """Writes the group, behind a line that says what was done to it."""
    if output is Output.JSON:
        write_json(group_fields(group))
        return
    write(f"{done} {group.group}\n")
    write_fields(_about(group) | settings_for_people(group.settings))


def write_description(found: GroupDescription, output: Output) -> None:
    """Writes the group, its members, how far it is, and how to ask what it waits for."""
    if output is Output.JSON:
        write_json(description_fields(found))
        return
    now = {
        "members": str(len(found.members)),
        "lag": str(found.lag),
        "age": _age(found.lag, found.age_ms),
        "blocked": str(sum(one.parked_count for one in found.progress)),
        "dead letters": str(sum(one.parked_count for one in found.dead_letters)),
    }
    write_fields(_about(found.group) | now | settings_for_people(found.group.settings))
    if found.members:
        write("\n")
        write_table(MEMBER_COLUMNS, list(map(_member_row, found.members)))
    if found.progress:
        write("\n")
        rows = list(map(progress_row, found.progress))
        write_table(PROGRESS_COLUMNS, rows, optional=OPTIONAL)
        if any(one.committed_offset is None for one in found.progress):
            write(f"{NOT_BEGUN}\n")
    if found.dead_letters:
        write("\n")
        rows = [tuple(map(str, (one.topic, one.partition, one.parked_count, one.redriven_count)))
                for one in found.dead_letters]  # fmt: skip
        write_table(DEAD_LETTER_COLUMNS, rows)
    if place := _stuck(found):
        flush()
        note(f"why it waits: logbroker explain {found.group.group} {place}")


def _about(group: GroupInfo) -> dict[str, str]:
    return {
        "group": group.group,
        "created": show_time(group.created_ms),
        "topics": ", ".join(group.topics) or "none",
    }


def _stuck(found: GroupDescription) -> str:
    """Returns what waits longest, other than for a member, as `explain` wants it; or nothing."""
    waiting = [one for one in found.progress if one.waits_for not in ("", "no_member")]
    if not waiting:
        return ""
    one = max(waiting, key=lambda each: each.age_ms)
    offset = one.committed_offset
    if offset is None and found.group.settings.start is Start.EARLIEST:
        offset = one.log_start_offset
    return "" if offset is None else f"{one.topic} {one.partition} {offset}"


def show_lag(found: GroupDescription) -> str:
    """Returns `lag 12, oldest 3m4s`, or `lag 0`."""
    return f"lag {found.lag}" + (f", oldest {show_age(found.age_ms)}" if found.lag else "")


def _age(lag: int, age_ms: int) -> str:
    """Returns how old the first unsettled record is, where there is one."""
    return show_age(age_ms) if lag else "-"


def summary_row(summary: GroupSummary) -> tuple[str, ...]:
    """Returns the group, in the order of SUMMARY_COLUMNS."""
    return (
        summary.group.group,
        str(summary.group.settings.order),
        str(summary.member_count),
        str(summary.lag),
        _age(summary.lag, summary.age_ms),
        str(summary.blocked_count),
        str(summary.parked_count),
        ", ".join(summary.group.topics) or "none",
    )


def summary_fields(summary: GroupSummary) -> dict[str, Any]:
    """Returns the group at a glance for JSON: int64 as strings."""
    return group_fields(summary.group) | {
        "member_count": summary.member_count,
        "lag": str(summary.lag),
        "age_ms": str(summary.age_ms),
        "blocked_count": str(summary.blocked_count),
        "parked_count": str(summary.parked_count),
    }


def progress_row(progress: PartitionProgress) -> tuple[str, ...]:
    """Returns how far it is in a partition, in the order of PROGRESS_COLUMNS."""
    committed = progress.committed_offset
    return (
        progress.topic,
        str(progress.partition),
        "none" if committed is None else str(committed),
        str(progress.log_start_offset),
        str(progress.high_watermark),
        str(progress.lag),
        _age(progress.lag, progress.age_ms),
        str(progress.leased_count),
        str(progress.waiting_count),
        str(progress.parked_count),
        str(progress.failed_count),
        str(progress.expired_unsettled_count),
        progress.member_id or "-",
        progress.waits_for or "-",
    )


def description_fields(found: GroupDescription) -> dict[str, Any]:
    """Returns all of a group for JSON: int64 as strings."""
    return group_fields(found.group) | {
        "lag": str(found.lag),
        "age_ms": str(found.age_ms),
        "members": list(map(_member_fields, found.members)),
        "progress": list(map(_progress_fields, found.progress)),
        "dead_letters": [
            {
                "topic": one.topic,
                "partition": one.partition,
                "parked_count": str(one.parked_count),
                "redriven_count": str(one.redriven_count),
            }
            for one in found.dead_letters
        ],
    }


def group_fields(group: GroupInfo) -> dict[str, Any]:
    """Returns the group for JSON: int64 as strings."""
    return {
        "group": group.group,
        "settings": settings_fields(group.settings),
        "created_ms": str(group.created_ms),
        "topics": list(group.topics),
    }


def _member_row(member: MemberInfo) -> tuple[str, ...]:
    assignment = show_assignment(member.assignment)
    joined = show_time(member.joined_ms)
    client = member.client_id or "-"
    return member.member_id, client, joined, str(member.leased_count), assignment or "-"


def show_assignment(partitions: Sequence[TopicPartition]) -> str:
    """Returns `payments/0-3,7, orders/0`."""
    numbers = dict[str, list[int]]()
    for one in partitions:
        numbers.setdefault(one.topic, []).append(one.partition)
    return ", ".join(f"{topic}/{_runs(found)}" for topic, found in numbers.items())


def _runs(numbers: list[int]) -> str:
    runs = OffsetRanges()
    for number in numbers:
        runs.add(number, number + 1)
    return ",".join(
        f"{first}" if end == first + 1 else f"{first}-{end - 1}" for first, end in runs.ranges()
    )


def _member_fields(member: MemberInfo) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "joined_ms": str(member.joined_ms),
        "leased_count": member.leased_count,
        "assignment": [
            {"topic": one.topic, "partition": one.partition} for one in member.assignment
        ],
    }


def _progress_fields(progress: PartitionProgress) -> dict[str, Any]:
    committed = progress.committed_offset
    return {
        "topic": progress.topic,
        "partition": progress.partition,
        "committed_offset": None if committed is None else str(committed),
        "log_start_offset": str(progress.log_start_offset),
        "high_watermark": str(progress.high_watermark),
        "lag": str(progress.lag),
        "lag_from": "start" if committed is None else "committed",
        "age_ms": str(progress.age_ms),
        "leased_count": str(progress.leased_count),
        "waiting_count": str(progress.waiting_count),
        "parked_count": str(progress.parked_count),
        "failed_count": str(progress.failed_count),
        "expired_unsettled_count": str(progress.expired_unsettled_count),
        "discarded_count": str(progress.discarded_count),
        "member_id": progress.member_id,
        "waits_for": progress.waits_for,
    }
