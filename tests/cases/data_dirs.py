"""What lies in a data directory, and a single log on it, without a broker."""

import hashlib
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from logbroker.broker.broker import Broker, open_broker
from logbroker.clock import Clock, SystemClock
from logbroker.config import LimitsConfig, LogConfig, StorageConfig
from logbroker.record.partition_id import PartitionId
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.engine import FileEngine
from logbroker.storage.file.partition_log import FilePartitionLog
from logbroker.testing.running_broker import BrokerProcess

PARTITION = PartitionId("orders", "6f1c", 0)


@asynccontextmanager
async def open_log(
    data_dir: Path, clock: Clock | None = None, **settings: object
) -> AsyncIterator[FilePartitionLog]:
    """Opens the log of PARTITION, and stops cleanly at the end."""
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock or SystemClock())
    try:
        yield await engine.open(PARTITION, LogConfig(**settings))  # type: ignore[arg-type]
    finally:
        await engine.close()


def files(data_dir: Path, topic: str, partition: int = 0, suffix: str = ".log") -> list[Path]:
    """Returns the files of a partition with this suffix, in the order of their offsets."""
    return sorted((data_dir / "topics" / topic / str(partition)).glob(f"*{suffix}"))


def sha256s(paths: list[Path]) -> dict[str, str]:
    """Returns the hash of each file, by its name."""
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def copy_of(data_dir: Path, target: Path) -> Path:
    """Returns a copy, made in `target`; of a running engine's directory: as a kill leaves it.

    Without unfinished files: they may have their names, or be gone, before they are copied.
    """
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(data_dir, target, ignore=shutil.ignore_patterns("*.tmp"))
    return target


def shorten(path: Path, cut: int) -> None:
    """Takes so many bytes from the end of a file."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - cut])


def log_lines(broker: BrokerProcess, event: str = "") -> list[dict[str, object]]:
    """Returns what a broker has logged, of all its runs, or the events of this name."""
    written = broker.log_file.read_text().splitlines()
    lines = [json.loads(line) for line in written if line.startswith("{")]  # gRPC writes there too
    return [line for line in lines if event in {"", line["event"]}]


@asynccontextmanager
async def open_broker_on(
    data_dir: Path, clock: Clock | None = None, disk: Disk | None = None
) -> AsyncIterator[Broker]:
    """Opens a broker in this process, without its server, and stops it cleanly at the end."""
    clock = clock or SystemClock()
    engine = await FileEngine.start(StorageConfig(data_dir=data_dir), clock, disk)
    try:
        async with open_broker(
            engine, clock, defaults=LogConfig(), limits=LimitsConfig()
        ) as broker:
            yield broker
    finally:
        await engine.close()
