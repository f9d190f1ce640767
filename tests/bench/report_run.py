"""Runs side by side, small and made up, as the benches write them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def row(name: str, value: float, unit: str = "records/s", **more: Any) -> dict[str, Any]:
    """Returns a row as it is written."""
    unset = {"limit": None, "ratio": None, "goal": None, "met": None}
    return {"name": name, "value": value, "unit": unit, **unset, "samples": [value] * 3, **more}


def pair(
    what: str, our: float, their: float, who: str, unit: str, goal: str = "", *, met: bool = True
) -> dict[str, Any]:
    """Returns the row that compares logbroker with another."""
    goals = {"goal": goal, "met": met} if goal else {}
    name, limit = f"{what}, logbroker / {who}", f"{what}, {who}"
    return row(name, our, unit, limit=limit, ratio=round(our / their, 3), **goals)


def beside(
    what: str, unit: str, our: float, theirs: Mapping[str, float], **goals: tuple[str, bool]
) -> list[dict[str, Any]]:
    """Returns the rows of a workload; `goals` by who, each with whether it was met."""
    rows = [
        row(f"{what}, {who}", value, unit) for who, value in {"logbroker": our, **theirs}.items()
    ]
    for who, value in theirs.items():
        goal, met = goals.get(who, ("", True))
        if value:
            rows.append(pair(what, our, value, who, unit, goal, met=met))
    return rows


def goal(
    what: str,
    their: str | None,
    limit: str,
    value: float | None,
    *,
    met: bool | None,
    end: str = "",
) -> dict[str, Any]:
    """Returns a goal as it is written."""
    found = {"value": value, "unit": "ratio", "met": met, "limit": limit}
    return {"goal": what + end, "what": what, "who": "logbroker", "their": their, **found}


PUBLISH = "publish 1,000 B, as fast as it goes, synced"
CONFIRMED = "confirmed, synced"
QUANTILES = [[0.0, 0.001], [0.5, 0.002], [0.9, 0.004], [0.99, 0.02], [1.0, 0.05]]


def a_run() -> dict[str, Any]:
    """Returns a run in which we win, lose, miss a goal, see a peer fail, and count zeros."""
    publish = beside(
        PUBLISH,
        "records/s",
        300_000,
        {"kafka": 400_000, "nats": 30_000, "kafka Java load tool": 1_000_000},
        kafka=(">= 1.5", False),
        nats=(">= 2", True),
    )
    confirmed = beside(
        f"{CONFIRMED}, p99",
        "us",
        1_300,
        {"limit": 1_000, "kafka": 2_600, "redis": 650},
        kafka=("<= 1", True),
        redis=("<= 1", False),
    )
    lost = [
        row("confirmed and lost, synced, logbroker", 0, "records", goal="<= 0", met=True),
        row("confirmed and lost, synced, kafka", 0, "records"),
        row("confirmed and lost, synced, redis", 311, "records"),
    ]
    goals = [
        goal(PUBLISH, "kafka", ">= 1.5", 0.75, met=False),
        goal(PUBLISH, "nats", ">= 2", 10.0, met=True),
        goal(PUBLISH, "redis", ">= 2", None, met=None),
        goal(f"{CONFIRMED}, p99", "redis", "<= 1", 2.0, met=False, end=": at most the best peer"),
        {**goal("confirmed and lost, synced", None, "<= 0", 0.0, met=True), "unit": "records"},
    ]
    return {
        "machine": "2 CPUs (Slow | Steady), 4 GiB",
        "date": "2026-11-29T10:00:00+00:00",
        "rounds": 5,
        "versions": {"logbroker": "0.1.0", "Apache Kafka": "4.4.0"},
        "skipped": ["RabbitMQ streams: not installed: rabbitmq-server (`apt install it`)"],
        "levels": {
            "kafka": {"synced": "fsync | each", "written": "acks=all"},
            "logbroker": {"synced": "fdatasync"},
        },
        "goals": goals,
        "failed": {
            f"{PUBLISH}, redis": ["TimeoutError: slow", "TimeoutError: no answer\nafter 60 s"],
            f"{CONFIRMED}, nats": ["ConnectionError: gone"],
        },
        "sections": [
            {"title": "Publish", "rows": publish},
            {"title": "Confirmed", "rows": confirmed},
            {"title": "Killed", "rows": lost},
        ],
        "distributions": {
            f"{CONFIRMED}, {who}": QUANTILES for who in ("kafka", "logbroker", "limit")
        },
    }


def own_rows() -> list[dict[str, Any]]:
    """Returns what our own bench writes: a goal met, one missed, and one of a value alone."""
    return [
        row("bare, 100 B", 900.0, "MB/s"),
        row("raw 100 B", 810.0, "MB/s", limit="bare, 100 B", ratio=0.9, goal=">= 0.8", met=True),
        row(
            "decoded 100 B", 90.0, "MB/s", limit="bare, 100 B", ratio=0.1, goal=">= 0.2", met=False
        ),
        row("RSS idle", 0.0, "MiB", goal="<= 64", met=True),
    ]


def written(directory: Path, value: object) -> Path:
    """Returns a file that holds it."""
    path = directory / "run.json"
    path.write_text(json.dumps(value))
    return path
