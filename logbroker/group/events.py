"""The encoding of what is journaled about groups: one JSON object an event. Pure.

There may be thousands of ledger events a second, so their names and keys are short:

    {"e":"ack","g":"delays","t":"<topic_id>","p":3,"r":[0,10,12,13]}

    e  the event           g, t, p  group, topic id, partition
    r  ranges, flat        o  offset          b  the offset before
    c  cause               x  outcome         n  failures, or a count
    f  first failure, ms   a  this one, ms    d  delay, ms
    w  reason (why)        k  key, base64     h  holds what is behind it (1)
    s  suspect (1)         q  dead letters before

Of a lease only the delivery is written. Snapshots (`ledger`, `failures`, `last_failures`)
and the events of groups and redrives are rare and have words for keys. Unknown keys are
passed over, so that an older broker reads a newer one's journal.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from itertools import chain
from typing import Any

from logbroker.errors import DataLossError, InvalidError
from logbroker.group.group import Group, TopicRead
from logbroker.group.group_events import (
    Event,
    GroupCreated,
    GroupDeleted,
    GroupSeen,
    GroupUpdated,
    InLedger,
    LedgerId,
    TokensReserved,
    TopicAttached,
    TopicDetached,
)
from logbroker.group.ledger_events import (
    KEEPING,
    Acknowledged,
    Committed,
    Delivered,
    Discarded,
    Failed,
    FailureRow,
    FailuresRestored,
    GivenUp,
    Keeping,
    KeyReleased,
    LastFailuresRestored,
    Leased,
    LedgerEvent,
    LedgerRestored,
    LetterPending,
    LettersWritten,
    Ranges,
    Redriven,
    Reset,
    Skipped,
    Started,
    Suspected,
    Trimmed,
)
from logbroker.group.record_state import Cause
from logbroker.group.redrive import (
    Redrive,
    RedriveAdvanced,
    RedriveEnded,
    RedriveStarted,
    RedriveState,
    Selection,
    Walk,
)
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import (
    AfterDeadLetter,
    GroupSettings,
    Order,
    OutOfRange,
    Start,
)

__all__ = ["Event", "InLedger", "LedgerId", "decode", "encode"]

NO_EVENT = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
    InvalidError,
)
"""What reading bytes that are no event may raise."""


def encode(event: Event) -> bytes:
    """Returns the event as JSON. Not for ledger events that are kept never."""
    if isinstance(event, InLedger):
        return _encode_in_ledger(*event)
    return _dump({"e": type(event).__name__, **_values(event)})


def decode(data: bytes) -> Event:
    """Returns the event; DataLossError for bytes that are none."""
    try:
        values = json.loads(data)
        name = values["e"]
        if name in LEDGER_DECODERS:
            ledger = LedgerId(values["g"], values["t"], values["p"])
            return InLedger(ledger, LEDGER_DECODERS[name](values))
        return DECODERS[name](values)
    except NO_EVENT as error:
        raise DataLossError("DAMAGED_BATCH", f"not an event: {data[:100]!r}") from error


# Ledgers


def _encode_in_ledger(ledger: LedgerId, event: LedgerEvent) -> bytes:
    assert KEEPING[type(event)] is not Keeping.NEVER, "what is kept never is not written"
    where = _where(ledger)
    match event:
        case Acknowledged(_, ranges):
            return b'{"e":"ack",%b,"r":%b}' % (where, _flat(ranges))
        case Leased(ranges=ranges) | Delivered(ranges):
            return b'{"e":"deliver",%b,"r":%b}' % (where, _flat(ranges))
        case _:
            name, values = _told(event)
            return b'{"e":"%b",%b,%b' % (name.encode(), where, _dump(values)[1:])


@lru_cache(maxsize=4096)
def _where(ledger: LedgerId) -> bytes:
    return _dump({"g": ledger.group, "t": ledger.topic_id, "p": ledger.partition})[1:-1]


def _flat(ranges: Ranges) -> bytes:
    if len(ranges) == 1:
        return b"[%d,%d]" % ranges[0]
    return b"[%b]" % ",".join(map(str, chain.from_iterable(ranges))).encode()


def _told(event: LedgerEvent) -> tuple[str, dict[str, Any]]:
    match event:
        case Failed(_, ranges, cause, failures, first_ms, at_ms, delay_ms, reason, is_suspect):
            values = _failed(ranges, cause, failures, first_ms, at_ms, reason)
            return "fail", {**values, "d": delay_ms, **({"s": 1} if is_suspect else {})}
        case GivenUp(_, ranges, outcome, cause, failures, first_ms, at_ms, reason, holds, key):
            values = _failed(ranges, cause, failures, first_ms, at_ms, reason)
            values |= {"x": outcome, **({"h": 1} if holds else {})}
            return "give_up", {**values, **({"k": _text(key)} if key is not None else {})}
        case LetterPending(sequence, given_up):
            return "pending", {**_told(given_up)[1], "q": sequence}
        case LettersWritten(end):
            return "written", {"n": end}
        case Suspected(_, ranges):
            return "suspect", {"r": _edges(ranges)}
        case Skipped(ranges):
            return "skip", {"r": _edges(ranges)}
        case Redriven(ranges):
            return "redrive", {"r": _edges(ranges)}
        case Discarded(ranges):
            return "discard", {"r": _edges(ranges)}
        case Started(offset):
            return "start", {"o": offset}
        case Committed(offset):
            return "commit", {"o": offset}
        case KeyReleased(offset):
            return "let_go", {"o": offset}
        case Reset(before, offset, why):
            return "reset", {"b": before, "o": offset, "w": why}
        case Trimmed(offset, expired):
            return "trim", {"o": offset, "n": expired}
        case LedgerRestored():
            values = event._asdict()
            values |= {name: _edges(values[name]) for name in ("settled", "parked", "marks")}
            return "ledger", values | {"held": [(at, _text(key)) for at, key in event.held]}
        case FailuresRestored(rows):
            return "failures", {"rows": rows}
        case LastFailuresRestored(rows):
            return "last_failures", {"rows": rows}
    raise AssertionError(f"{type(event).__name__} is not written")


def _failed(
    ranges: Ranges, cause: Cause, failures: int, first_ms: int, at_ms: int, reason: str
) -> dict[str, Any]:
    numbers = {"n": failures, "f": first_ms, "a": at_ms}
    return {"r": _edges(ranges), "c": cause.value, **numbers, **({"w": reason} if reason else {})}


def _read_failed(values: dict[str, Any]) -> Failed:
    return Failed(
        0,
        _ranges(values["r"]),
        Cause(values["c"]),
        int(values["n"]),
        int(values["f"]),
        int(values["a"]),
        int(values["d"]),
        str(values.get("w", "")),
        bool(values.get("s")),
    )


def _read_given_up(values: dict[str, Any]) -> GivenUp:
    return GivenUp(
        0,
        _ranges(values["r"]),
        Exhausted(values["x"]),
        Cause(values["c"]),
        int(values["n"]),
        int(values["f"]),
        int(values["a"]),
        str(values.get("w", "")),
        bool(values.get("h")),
        _bytes(values.get("k")),
    )


def _read_ledger(values: dict[str, Any]) -> LedgerRestored:
    known = {name: values[name] for name in LedgerRestored._fields}
    known |= {name: _ranges(values[name]) for name in ("settled", "parked", "marks")}
    known |= {
        name: tuple((int(first), int(end), int(number)) for first, end, number in values[name])
        for name in ("deliveries", "redrives")
    }
    known["held"] = tuple((int(at), _bytes(key)) for at, key in values["held"])
    known["counters"] = tuple(map(int, values["counters"]))
    return LedgerRestored(**known)


LEDGER_DECODERS: dict[str, Callable[[dict[str, Any]], LedgerEvent]] = {
    "ack": lambda values: Acknowledged(0, _ranges(values["r"])),
    "deliver": lambda values: Delivered(_ranges(values["r"])),
    "fail": _read_failed,
    "give_up": _read_given_up,
    "pending": lambda values: LetterPending(int(values["q"]), _read_given_up(values)),
    "written": lambda values: LettersWritten(int(values["n"])),
    "suspect": lambda values: Suspected(0, _ranges(values["r"])),
    "skip": lambda values: Skipped(_ranges(values["r"])),
    "redrive": lambda values: Redriven(_ranges(values["r"])),
    "discard": lambda values: Discarded(_ranges(values["r"])),
    "start": lambda values: Started(int(values["o"])),
    "commit": lambda values: Committed(int(values["o"])),
    "let_go": lambda values: KeyReleased(int(values["o"])),
    "reset": lambda values: Reset(int(values["b"]), int(values["o"]), str(values["w"])),
    "trim": lambda values: Trimmed(int(values["o"]), int(values["n"])),
    "ledger": _read_ledger,
    "failures": lambda values: FailuresRestored(_rows(values)),
    "last_failures": lambda values: LastFailuresRestored(_rows(values)),
}


def _rows(values: dict[str, Any]) -> tuple[FailureRow, ...]:
    return tuple(_row(*row[:8]) for row in values["rows"])


def _row(*row: Any) -> FailureRow:
    first, end, failures, first_ms, at_ms, delay_ms = map(int, row[:6])
    return FailureRow(first, end, failures, first_ms, at_ms, delay_ms, bool(row[6]), str(row[7]))


def _edges(ranges: Ranges) -> list[int]:
    return list(chain.from_iterable(ranges))


def _ranges(edges: list[Any]) -> Ranges:
    found = tuple(zip(map(int, edges[::2]), map(int, edges[1::2]), strict=True))
    if any(first >= end for first, end in found):
        raise ValueError("a range ends behind its start")
    return found


# Groups and redrives


def _values(event: Any) -> dict[str, Any]:
    values = asdict(event)
    if isinstance(event, RedriveStarted):
        selection = values["redrive"]["selection"]
        selection["key"] = _text(selection["key"])
    return values


def _settings(values: dict[str, Any]) -> GroupSettings:
    known = _known(GroupSettings, values)
    retry = _known(RetryPolicy, values["retry"])
    known["retry"] = RetryPolicy(**{**retry, "exhausted": Exhausted(retry["exhausted"])})
    for name, kind in SETTING_CHOICES.items():
        if name in known:
            known[name] = kind(known[name])
    return GroupSettings(**known)


SETTING_CHOICES: dict[str, Callable[[str], Any]] = {
    "order": Order,
    "after_dead_letter": AfterDeadLetter,
    "start": Start,
    "out_of_range": OutOfRange,
}


def _topic(values: dict[str, Any]) -> TopicRead:
    return TopicRead(**_known(TopicRead, values))


def _group(values: dict[str, Any]) -> Group:
    known = _known(Group, values)
    known["settings"] = _settings(values["settings"])
    known["topics"] = tuple(map(_topic, values["topics"]))
    return Group(**known)


def _redrive(values: dict[str, Any]) -> Redrive:
    known = _known(Redrive, values)
    selection = _known(Selection, values["selection"])
    known["selection"] = Selection(**{**selection, "key": _bytes(selection.get("key"))})
    known["walks"] = tuple(Walk(*map(int, walk[:3])) for walk in values["walks"])
    known["state"] = RedriveState(values["state"])
    known["taken"] = tuple((int(a), int(b), int(c)) for a, b, c in values.get("taken", ()))
    return Redrive(**known)


def _known(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in kind.__dataclass_fields__}


DECODERS: dict[str, Callable[[dict[str, Any]], Event]] = {
    "GroupCreated": lambda values: GroupCreated(_group(values["group"])),
    "GroupUpdated": lambda values: GroupUpdated(values["group"], _settings(values["settings"])),
    "TopicAttached": lambda values: TopicAttached(values["group"], _topic(values["topic"])),
    "TopicDetached": lambda values: TopicDetached(values["group"], values["topic_id"]),
    "GroupSeen": lambda values: GroupSeen(values["group"], int(values["at_ms"])),
    "GroupDeleted": lambda values: GroupDeleted(values["group"]),
    "TokensReserved": lambda values: TokensReserved(int(values["end"])),
    "RedriveStarted": lambda values: RedriveStarted(_redrive(values["redrive"])),
    "RedriveAdvanced": lambda values: RedriveAdvanced(
        values["redrive_id"],
        int(values["partition"]),
        int(values["next_offset"]),
        int(values["count"]),
        tuple((int(first), int(end)) for first, end in values.get("ranges", ())),
    ),
    "RedriveEnded": lambda values: RedriveEnded(
        values["redrive_id"], RedriveState(values["state"]), int(values["at_ms"])
    ),
}


def _dump(values: dict[str, Any]) -> bytes:
    return json.dumps(values, separators=(",", ":")).encode()


def _text(key: bytes | None) -> str | None:
    return None if key is None else b64encode(key).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
