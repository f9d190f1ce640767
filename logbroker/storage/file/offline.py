"""What is done to files while no broker runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logbroker.errors import PreconditionError
from logbroker.storage.file import paths
from logbroker.storage.file.disk import Disk


@contextmanager
def no_broker_on(data_dir: Path, disk: Disk) -> Iterator[None]:
    """Keeps brokers out of a data directory. PreconditionError (BROKER_RUNNING) if one is there."""
    lock = disk.lock(data_dir / paths.LOCK)
    if lock is None:
        message = f"a broker holds the data directory {data_dir}; stop it first"
        raise PreconditionError("BROKER_RUNNING", message, path=str(data_dir))
    try:
        yield
    finally:
        disk.close(lock)
