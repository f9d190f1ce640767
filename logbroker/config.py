"""Settings, one frozen class per owner: the documentation, the validation and the loader's table.

A value is found in the TOML file, then in LOGBROKER_<SECTION>_<NAME>, then in a flag; the
last one found counts.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, get_type_hints

from logbroker import limits
from logbroker.errors import InvalidError


class Durability(StrEnum):
    """What an answer to a produce promises."""

    SYNCED = "synced"
    """Answered, and read, after fdatasync."""
    WRITTEN = "written"
    """Answered after the write to the operating system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenConfig:
    """Where the broker listens."""

    grpc: str = "127.0.0.1:9470"
    """host:port of the gRPC server. Port 0 picks a free one."""
    insecure: bool = False
    """Allows an address that other machines reach, although there is no authentication yet."""
    stop_grace_ms: int = 5_000
    """How long a stop waits for calls under way."""
    keepalive_ms: int = 10_000
    """A connection without traffic is probed this often..."""
    keepalive_timeout_ms: int = 5_000
    """... and given up when the probe is not answered in this time."""

    def __post_init__(self) -> None:
        host, separator, port = self.grpc.rpartition(":")
        if not separator or not host or not port.isdigit() or int(port) > 65_535:
            raise _invalid("listen.grpc", self.grpc, "must be host:port")
        _check("listen.stop_grace_ms", self.stop_grace_ms, 0, 600_000)
        _check("listen.keepalive_ms", self.keepalive_ms, 1_000, 3_600_000)
        _check("listen.keepalive_timeout_ms", self.keepalive_timeout_ms, 1_000, 600_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Where and how partitions are kept."""

    data_dir: Path = Path("logbroker-data")
    """Made if need be. One broker a directory."""
    max_open_files: int = 8_192
    """Descriptors of segment files kept open; the least recently used closes.

    No more than half of what the process may have (`ulimit -Hn`): connections need some too.
    """
    sync_threads: int = 4
    """How many fdatasync calls run at once."""
    check_interval_ms: int = 5_000
    """How often retention and the age of segments are looked at, also without traffic."""
    scrub_bytes_per_second: int = 8 << 20
    """How fast sealed segments are read again in the background, to find bytes that went bad.

    0: they are not.
    """
    scrub_interval_ms: int = 7 * 24 * 3_600_000
    """The least time between the ends of two such passes."""

    def __post_init__(self) -> None:
        _check("storage.max_open_files", self.max_open_files, 16, 1_000_000)
        _check("storage.sync_threads", self.sync_threads, 1, 256)
        _check("storage.check_interval_ms", self.check_interval_ms, 10, 3_600_000)
        _check("storage.scrub_bytes_per_second", self.scrub_bytes_per_second, 0, 1 << 40)
        _check("storage.scrub_interval_ms", self.scrub_interval_ms, 1_000, 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How one partition is kept. The broker's are the defaults of its topics."""

    durability: Durability = Durability.SYNCED
    """What receipts promise."""
    flush_interval_ms: int = 1_000
    """The longest a `written` batch waits for its fdatasync."""
    retention_ms: int = 7 * 24 * 3_600_000
    """How long records are kept after their append time; 0: without end."""
    retention_bytes: int = 0
    """How many bytes a partition keeps; 0: without limit."""
    segment_bytes: int = 256 << 20
    """A segment of this size is closed and the next one begun."""
    segment_ms: int = 7 * 24 * 3_600_000
    """A segment whose first batch is this old is closed and the next one begun."""

    def __post_init__(self) -> None:
        if not isinstance(self.durability, Durability):
            raise _invalid("log.durability", self.durability, "must be synced or written")
        _check("log.flush_interval_ms", self.flush_interval_ms, 1, 3_600_000)
        _check("log.retention_ms", self.retention_ms, 0, 1 << 62)
        _check("log.retention_bytes", self.retention_bytes, 0, 1 << 62)
        _check("log.segment_bytes", self.segment_bytes, 4 << 10, 2 << 30)
        _check("log.segment_ms", self.segment_ms, 1, 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """What producers may send, and how much of it at once."""

    record_bytes: int = 1 << 20
    """The largest record: key, value and headers."""
    batch_bytes: int = 2 << 20
    """The largest batch, as sent and decompressed; at least record_bytes + 65,536."""
    header_count: int = 200
    """The most headers of a record."""
    header_bytes: int = (64 << 10) + limits.NAME_CHARS
    """The largest header: its value, 64 KiB, and its name."""
    connection_bytes: int = 16 << 20
    """Bytes of produce requests under way for one stream; then it is not read from."""
    in_flight_bytes: int = 128 << 20
    """The same for all streams together; unary calls are refused beyond it."""
    idle_heartbeat_ms: int = 5_000
    """An idle Fetch stream says that it lives this often."""
    producer_retention_ms: int = 7 * 24 * 3_600_000
    """A producer that is silent this long is forgotten."""

    def __post_init__(self) -> None:
        _check("limits.record_bytes", self.record_bytes, 1, limits.BATCH_BYTES_CEILING - (64 << 10))
        _check("limits.batch_bytes", self.batch_bytes, 1, limits.BATCH_BYTES_CEILING)
        if self.batch_bytes < self.record_bytes + (64 << 10):
            rule = f"must be at least record_bytes + 65536 = {self.record_bytes + (64 << 10)}"
            raise _invalid("limits.batch_bytes", self.batch_bytes, rule)
        _check("limits.header_count", self.header_count, 0, 100_000)
        _check("limits.header_bytes", self.header_bytes, 0, limits.BATCH_BYTES_CEILING)
        _check("limits.connection_bytes", self.connection_bytes, self.batch_bytes, 1 << 40)
        _check("limits.in_flight_bytes", self.in_flight_bytes, self.connection_bytes, 1 << 40)
        _check("limits.idle_heartbeat_ms", self.idle_heartbeat_ms, 100, 3_600_000)
        _check("limits.producer_retention_ms", self.producer_retention_ms, 1_000, 1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything a broker can be told."""

    listen: ListenConfig = field(default_factory=ListenConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    log: LogConfig = field(default_factory=LogConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)


def load(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Mapping[str, Any]] | None = None,
) -> Config:
    """Returns the defaults, changed by the TOML file, by LOGBROKER_<SECTION>_<NAME>, by flags.

    `flags` is shaped as the file is: section, name, value. Raises InvalidError, naming the
    setting and the rule, for what is unknown, unreadable or out of range.
    """
    tables = _read(file) if file else {}
    sections = {section.name: section.default_factory for section in fields(Config)}
    if unknown := sorted(tables.keys() - sections.keys()):
        rule = f"is not a section; they are {', '.join(sections)}"
        raise _invalid(str(file), unknown[0], rule)
    made = {
        name: _section(name, kind, tables.get(name, {}), environ, (flags or {}).get(name, {}))
        for name, kind in sections.items()
    }
    return Config(**made)


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise _invalid("config file", str(file), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _invalid("config file", str(file), f"is not TOML: {error}") from error


def _section(
    section: str,
    kind: Any,
    table: Any,
    environ: Mapping[str, str],
    flags: Mapping[str, Any],
) -> Any:
    if not isinstance(table, dict):
        raise _invalid(section, table, "must be a table")
    types = get_type_hints(kind)
    if unknown := sorted(table.keys() - types.keys()):
        rule = f"is not a setting of [{section}]; they are {', '.join(types)}"
        raise _invalid(section, unknown[0], rule)
    given: dict[str, Any] = {}
    for name, type_ in types.items():
        variable = f"LOGBROKER_{section}_{name}".upper()
        for source, value in (
            (f"{section}.{name}", table.get(name)),
            (variable, environ.get(variable)),
            (f"{section}.{name}", flags.get(name)),
        ):
            if value is not None:
                given[name] = _convert(source, value, type_)
    return kind(**given)


def _convert(source: str, value: Any, type_: type) -> Any:
    convert, rule = CONVERTERS[type_]
    try:
        return convert(value)
    except (ValueError, TypeError) as error:
        raise _invalid(source, value, rule) from error


def _bool(value: Any) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).lower() not in words:
        raise ValueError(value)
    return words[str(value).lower()]


def _int(value: Any) -> int:
    if isinstance(value, (bool, float)):
        raise ValueError(value)
    return int(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(value)
    return value


CONVERTERS: dict[type, tuple[Callable[[Any], Any], str]] = {
    bool: (_bool, "must be true or false"),
    int: (_int, "must be a whole number"),
    str: (_text, "must be text"),
    Path: (Path, "must be a path"),
    Durability: (Durability, "must be synced or written"),
}


def _check(name: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or not low <= value <= high:
        raise _invalid(name, value, f"must be {low} to {high}")


def _invalid(name: str, value: Any, rule: str) -> InvalidError:
    return InvalidError("INVALID_SETTING", f"{name}: {value!r} {rule}", setting=name, value=value)
