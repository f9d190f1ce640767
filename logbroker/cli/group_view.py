"""How groups, their members and their progress are shown: in words and units, and as JSON."""

from typing import Any

from logbroker.cli.moment import show_time
from logbroker.cli.output import Output, write, write_fields, write_json, write_table
from logbroker.cli.units import UNLIMITED, show_age, show_duration
from logbroker.client.group_status import (
    GroupDescription,
    GroupInfo,
    GroupSummary,
    MemberInfo,
    PartitionProgress,
)
from logbroker.group.settings import GroupSettings, Start

SUMMARY_COLUMNS = ("group", "order", "members", "lag", "age", "dead letters", "topics")
PROGRESS_COLUMNS = (
    "topic", "partition", "committed", "log start", "high watermark", "lag", "age", "leased",
    "waiting", "parked", "failed", "expired", "member", "waits for",
)  # fmt: skip
MEMBER_COLUMNS = ("member", "client", "joined", "leased", "assignment")
DEAD_LETTER_COLUMNS = ("dead-letter topic", "partition", "parked", "redriven")
NOT_BEGUN = "none: nothing is settled there yet; the lag counts from where the group would start"


def write_group(group: GroupInfo, output: Output, done: str) -> None:
    """Writes the group, behind a line that says what was done to it, if anything was."""
    if output is Output.JSON:
        write_json(group_fields(group))
        return
    if done:
        write(f"{done} {group.group}\n")
    about = {
        "group": group.group,
        "created": show_time(group.created_ms),
        "topics": ", ".join(group.topics) or "none",
    }
    write_fields(about | settings_for_people(group.settings))


def write_description(found: GroupDescription, output: Output) -> None:
    """Writes the group, its members, and how far it is everywhere."""
    if output is Output.JSON:
        write_json(description_fields(found))
        return
    write_group(found.group, output, "")
    if found.members:
        write("\n")
        write_table(MEMBER_COLUMNS, list(map(_member_row, found.members)))
    if found.progress:
        write("\n")
        write_table(PROGRESS_COLUMNS, list(map(progress_row, found.progress)))
        if any(one.committed_offset is None for one in found.progress):
            write(f"{NOT_BEGUN}\n")
    if found.dead_letters:
        write("\n")
        rows = [tuple(map(str, (one.topic, one.partition, one.parked_count, one.redriven_count)))
                for one in found.dead_letters]  # fmt: skip
        write_table(DEAD_LETTER_COLUMNS, rows)


def summary_row(summary: GroupSummary) -> tuple[str, ...]:
    """Returns the group, in the order of SUMMARY_COLUMNS."""
    return (
        summary.group.group,
        str(summary.group.settings.order),
        str(summary.member_count),
        str(summary.lag),
        show_age(summary.age_ms),
        str(summary.parked_count),
        ", ".join(summary.group.topics) or "none",
    )


def summary_fields(summary: GroupSummary) -> dict[str, Any]:
    """Returns the group at a glance for JSON: int64 as strings."""
    return group_fields(summary.group) | {
        "member_count": summary.member_count,
        "lag": str(summary.lag),
        "age_ms": str(summary.age_ms),
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
        show_age(progress.age_ms),
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
        "settings": _settings_fields(group.settings),
        "created_ms": str(group.created_ms),
        "topics": list(group.topics),
    }


def settings_for_people(settings: GroupSettings) -> dict[str, str]:
    """Returns the settings with units, by their names in words."""
    retry, kept_ms = settings.retry, settings.group_retention_ms
    return {
        "order": settings.order,
        "lease": show_duration(settings.lease_ms),
        "retry initial": show_duration(retry.initial_ms),
        "retry multiplier": f"{retry.multiplier:g}",
        "retry max": show_duration(retry.max_ms),
        "max failures": str(retry.max_failures),
        "exhausted": retry.exhausted,
        "after dead letter": settings.after_dead_letter,
        "max unsettled": str(settings.max_unsettled),
        "start": _start_for_people(settings),
        "out of range": settings.out_of_range,
        "group retention": show_duration(kept_ms) if kept_ms else UNLIMITED,
    }


def _start_for_people(settings: GroupSettings) -> str:
    match settings.start:
        case Start.OFFSET:
            return f"offset {settings.start_offset}"
        case Start.TIME:
            return show_time(settings.start_time_ms)
    return settings.start


def _settings_fields(settings: GroupSettings) -> dict[str, Any]:
    retry, start = settings.retry, dict[str, str]()
    if settings.start is Start.OFFSET:
        start = {"start_offset": str(settings.start_offset)}
    if settings.start is Start.TIME:
        start = {"start_timestamp_ms": str(settings.start_time_ms)}
    return {
        "order": str(settings.order),
        "lease_ms": str(settings.lease_ms),
        "retry_initial_ms": str(retry.initial_ms),
        "retry_multiplier": retry.multiplier,
        "retry_max_ms": str(retry.max_ms),
        "max_failures": retry.max_failures,
        "exhausted": str(retry.exhausted),
        "after_dead_letter": str(settings.after_dead_letter),
        "max_unsettled": settings.max_unsettled,
        "start": str(settings.start),
        **start,
        "out_of_range": str(settings.out_of_range),
        "group_retention_ms": str(settings.group_retention_ms),
    }


def _member_row(member: MemberInfo) -> tuple[str, ...]:
    assignment = ", ".join(f"{one.topic}/{one.partition}" for one in member.assignment)
    joined = show_time(member.joined_ms)
    client = member.client_id or "-"
    return member.member_id, client, joined, str(member.leased_count), assignment or "-"


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
