"""How the settings of a group are shown: in words and units, and as JSON."""

from typing import Any

from logbroker.cli.moment import show_time
from logbroker.cli.units import UNLIMITED, show_duration
from logbroker.group.settings import GroupSettings, Start


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


def settings_fields(settings: GroupSettings) -> dict[str, Any]:
    """Returns the settings for JSON: int64 as strings."""
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
