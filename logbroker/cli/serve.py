"""`serve`: runs a broker until it is told to stop."""

from dataclasses import MISSING, fields
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from logbroker import app
from logbroker.cli.broker_log import LogLevel, configure_log
from logbroker.cli.command import DEFAULT_SERVER, OutputOption, reporting
from logbroker.cli.output import Output, flush, note, write, write_json
from logbroker.cli.topic_options import (
    DurabilityOption,
    FlushIntervalOption,
    RetentionBytesOption,
    RetentionOption,
    SegmentAgeOption,
    SegmentBytesOption,
)
from logbroker.config import Config, Durability, ListenConfig, load
from logbroker.errors import InvalidError

PROMISE = {
    Durability.SYNCED: "answered when it is on disk",
    Durability.WRITTEN: "answered when the operating system has it",
}


def serve(
    config_file: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Settings as TOML.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir", metavar="DIR", help="Where everything is kept. [default: logbroker-data]"
        ),
    ] = None,
    grpc: Annotated[
        str | None,
        typer.Option(
            "--grpc",
            metavar="HOST:PORT",
            help=f"Where to listen; port 0 picks a free one. [default: {DEFAULT_SERVER}]",
        ),
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option(
            "--insecure", help="Allow an address that other machines reach, without authentication."
        ),
    ] = None,
    durability: DurabilityOption = None,
    retention: RetentionOption = None,
    retention_bytes: RetentionBytesOption = None,
    segment_bytes: SegmentBytesOption = None,
    segment_age: SegmentAgeOption = None,
    flush_interval: FlushIntervalOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="SECTION.NAME=VALUE", help="Any setting. May be repeated."),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option("--log-level", help="From which level on to log.")
    ] = LogLevel.INFO,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run a broker on a data directory until SIGTERM or Ctrl-C.

    A setting is taken from a flag, else from LOGBROKER_<SECTION>_<NAME>, else from the file.
    Topics made without settings of their own have those of the broker.
    """
    configure_log(log_level, as_json=output is Output.JSON)
    given: dict[str, dict[str, Any]] = {
        "listen": {"grpc": grpc, "insecure": insecure or None},
        "storage": {"data_dir": data_dir},
        "log": {
            "durability": durability,
            "retention_ms": retention,
            "retention_bytes": retention_bytes,
            "segment_bytes": segment_bytes,
            "segment_ms": segment_age,
            "flush_interval_ms": flush_interval,
        },
    }
    flags = _merged(_parse_settings(settings or []), given)
    with reporting(output):
        _check_assertions()
        config = load(config_file, flags=flags)
        app.check_address(config)
        _warn(config.listen)
        app.serve(config, lambda address: _show_started(config, address, output))


def _check_assertions() -> None:
    """Raises InvalidError under `python -O`: assertions guard what is written."""
    if not __debug__:
        message = "the broker's assertions are off: run Python without -O and PYTHONOPTIMIZE"
        raise InvalidError("INVALID_SETTING", message)


def _parse_settings(settings: list[str]) -> dict[str, dict[str, Any]]:
    """Returns `section.name=value` as the settings file has it; checks that each exists."""
    known = {section.name: _names_of(section.default_factory) for section in fields(Config)}
    parsed: dict[str, dict[str, Any]] = {name: {} for name in known}
    for setting in settings:
        path, separator, value = setting.partition("=")
        section, _, name = path.strip().partition(".")
        if not separator:
            raise typer.BadParameter(f"--set {setting!r} must be SECTION.NAME=VALUE")
        if section not in known:
            raise typer.BadParameter(f"--set {setting!r}: sections are {', '.join(known)}")
        if name not in known[section]:
            names = ", ".join(known[section])
            raise typer.BadParameter(f"--set {setting!r}: settings of {section} are {names}")
        parsed[section][name] = value.strip()
    return parsed


def _names_of(section: Any) -> list[str]:
    assert section is not MISSING, "every section has its defaults"
    return [setting.name for setting in fields(section)]


def _merged(
    flags: dict[str, dict[str, Any]], named: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Returns both; a flag of its own counts more than `--set`."""
    for section, values in named.items():
        flags[section] |= {name: value for name, value in values.items() if value is not None}
    return flags


def _warn(listen: ListenConfig) -> None:
    if listen.insecure:
        note(
            "WARNING: no authentication. Everyone who reaches "
            f"{listen.grpc} can read, write and delete everything."
        )


def _show_started(config: Config, address: str, output: Output) -> None:
    data_dir = str(config.storage.data_dir.absolute())
    durability = config.log.durability
    if output is Output.JSON:
        started = {
            "address": address,
            "data_dir": data_dir,
            "durability": durability,
            "insecure": config.listen.insecure,
            "version": version("logbroker"),
        }
        write_json(started)
    else:
        server = "" if address == DEFAULT_SERVER else f" --server {address}"
        write(
            f"logbroker {version('logbroker')} listens on {address}\n"
            f"  data directory  {data_dir}\n"
            f"  durability      {durability}: {PROMISE[durability]}\n"
            "  try             "
            f"logbroker topic create hello{server}\n"
            f"                  echo world | logbroker produce hello{server}\n"
            f"                  logbroker fetch hello{server}\n"
            "  stop            Ctrl-C\n"
        )
    flush()
