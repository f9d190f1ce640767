"""Partitions as directories. One engine a data directory; FORMAT.md says what lies there.

A clean stop leaves a marker, taken away before anything is written, so that the next start
scans nothing. Without it the last segment of each partition is scanned when it is opened.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from uuid import uuid4

import structlog

from logbroker.clock import Clock
from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import LogbrokerError, PreconditionError
from logbroker.record.partition_id import PartitionId
from logbroker.storage import refusals
from logbroker.storage.engine import EngineStats, NeededFrom
from logbroker.storage.failures import Failures
from logbroker.storage.file import paths
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.disk import Disk
from logbroker.storage.file.flusher import Threads
from logbroker.storage.file.machine import Machine
from logbroker.storage.file.open_files import OpenFiles
from logbroker.storage.file.opening import damaged, open_partition
from logbroker.storage.file.partition_log import FilePartitionLog
from logbroker.storage.file.reader import SegmentReader
from logbroker.storage.file.scrub import Scrub

log = structlog.get_logger(__name__)

Key = tuple[str, int]


class Place:
    """A partition's directory: whose it is, and its log once it is opened."""

    def __init__(self, partition: PartitionId | None) -> None:
        self.partition = partition
        """None: there is something, and its checkpoint cannot be read."""
        self.log: FilePartitionLog | None = None
        self.lock = asyncio.Lock()
        self.trash_name = uuid4().hex
        """What its directory is called once it is thrown away, however many tries that takes."""


class FileEngine:
    """Made by `start`."""

    def __init__(
        self,
        config: StorageConfig,
        clock: Clock,
        disk: Disk,
        threads: Threads,
        lock: int,
        *,
        was_clean: bool,
    ) -> None:
        self._config = config
        self._disk = disk
        self._lock = lock
        self._was_clean = was_clean
        self._places: dict[Key, Place] = {}
        self._names = asyncio.Lock()
        """Held while directories come and go."""
        self.failures = Failures()
        self._is_closed = False
        self._needed_from: NeededFrom | None = lambda _: None
        files = OpenFiles(disk, _most_open_files(disk, config.max_open_files))
        reader = SegmentReader(disk, files, threads)
        self._machine = Machine(disk, clock, files, threads, reader)
        self._scrub = Scrub(config, clock, disk, threads, self._places)

    @classmethod
    async def start(
        cls,
        config: StorageConfig,
        clock: Clock,
        disk: Disk | None = None,
        threads: Threads | None = None,
    ) -> "FileEngine":
        """Locks the directory, made if need be, and looks what is there.

        PreconditionError (BROKER_RUNNING) if another engine holds it.
        """
        disk, threads = disk or Disk(), threads or Threads(config.sync_threads)
        data_dir = config.data_dir
        disk.make_directory(data_dir)
        lock = disk.lock(data_dir / paths.LOCK)
        if lock is None:
            message = f"another broker holds the data directory {data_dir}"
            raise PreconditionError("BROKER_RUNNING", message, path=str(data_dir))
        try:
            was_clean = _take_clean_marker(disk, data_dir)
            disk.make_directory(data_dir / paths.TOPICS)
            disk.make_directory(data_dir / paths.TRASH)
            disk.sync_directory(data_dir)  # they may be there, and their names not durable
            engine = cls(config, clock, disk, threads, lock, was_clean=was_clean)
            engine._places |= await engine._machine.threads.run(places_in, disk, data_dir)
            await engine._machine.threads.run(_empty_trash, disk, data_dir / paths.TRASH)
        except LogbrokerError:
            disk.close(lock)
            raise
        engine._machine.threads.start(engine._keep_house())
        engine._machine.threads.start(engine._scrub.run())
        return engine

    async def open(self, partition: PartitionId, config: LogConfig) -> FilePartitionLog:
        """Returns the partition's log, made if need be. Opened again, it takes the new config.

        UnavailableError (TOPIC_DAMAGED) if its checkpoint cannot be read; PreconditionError
        (TOPIC_RECREATED) if the directory is another incarnation's.
        """
        directory = paths.partition_directory(self._config.data_dir, partition)
        key = partition.topic, partition.partition
        while True:
            self._check_open()
            place = self._places.setdefault(key, Place(partition))
            async with place.lock:
                if self._places.get(key) is place:
                    return await self._open(place, directory, partition, config)

    def partitions(self) -> Sequence[PartitionId]:
        """Returns what is there. `topic_id` is empty where the checkpoint cannot be read."""
        return [
            place.partition or PartitionId(topic, "", number)
            for (topic, number), place in self._places.items()
        ]

    def keep_needed(self, needed_from: NeededFrom | None) -> None:
        """Makes retention ask from which offset on a partition is still needed; None: wait."""
        self._needed_from = needed_from

    async def delete(self, partition: PartitionId) -> None:
        """Removes the partition and its bytes, durably, also where an earlier try, or another
        process, was cut short; nothing if there is none.

        Of a partition whose checkpoint cannot be read nobody knows the topic id, and one
        without topic id is never deleted.
        """
        key = partition.topic, partition.partition
        threads, trash = self._machine.threads, self._config.data_dir / paths.TRASH
        directory = paths.partition_directory(self._config.data_dir, partition)
        place = self._places.get(key)
        if place is None:
            self._check_open()
            async with self._names:
                await threads.run(_sync_gone, self._disk, directory, trash)
            return
        async with place.lock:
            self._check_open()
            if place.partition is None and not partition.topic_id:
                raise damaged(partition.topic, partition.partition, directory)
            if self._places.get(key) is not place or place.partition not in {partition, None}:
                return
            if place.log:
                await place.log.delete()
                self.failures.remove(partition)
            thrown = trash / place.trash_name
            async with self._names:
                await threads.run(_throw_away, self._disk, directory, thrown)
            del self._places[key]
            await threads.run(_remove_if_there, self._disk, thrown)

    async def close(self) -> None:
        """Makes all durable, leaves the clean-stop marker, lets go of the directory."""
        if self._is_closed:
            return
        self._is_closed = True
        places = list(self._places.values())
        logs = [place.log for place in places if place.log]
        are_clean = await asyncio.gather(*(log.close() for log in logs))
        await self._machine.threads.close()
        self._scrub.save()
        is_known = self._was_clean or len(logs) == len(places)
        if all(are_clean) and is_known:
            data_dir = self._config.data_dir
            try:
                self._disk.write_files(data_dir, {data_dir / paths.CLEAN: b"clean\n"})
            except LogbrokerError as error:
                log.warning("clean-stop marker not left", error=str(error))
        self._disk.close(self._lock)

    def stats(self) -> EngineStats:
        """Returns what the engine tells of itself."""
        damaged = {
            f"{topic}/{number}": place.log.damaged
            for (topic, number), place in sorted(self._places.items())
            if place.log and place.log.damaged
        }
        return EngineStats(
            open_file_count=self._machine.files.open_count,
            disk_free_bytes=self._disk.free_bytes(self._config.data_dir),
            damaged_range_count=sum(map(len, damaged.values())),
            damaged_partitions=tuple(damaged),
            scrubbed_segment_count=self._scrub.segment_count,
            scrubbed_bytes=self._scrub.total_bytes,
            scrub_finished_time_ms=self._scrub.finished_time_ms,
            scrub_failure_count=self._scrub.failure_count,
        )

    async def housekeep(self) -> None:
        """Seals old segments and applies retention, once."""
        for place in list(self._places.values()):
            if place.log:
                try:
                    await place.log.keep_house(self._needed_from)
                except LogbrokerError as error:
                    log.warning("housekeeping failed", error=str(error), **error.details)

    async def _keep_house(self) -> None:
        clock = self._machine.clock
        while True:
            await clock.wait_until(clock.monotonic_ms() + self._config.check_interval_ms)
            await self.housekeep()

    async def _open(
        self, place: Place, directory: Path, partition: PartitionId, config: LogConfig
    ) -> FilePartitionLog:
        self._check_open()
        if place.partition is None:
            raise damaged(partition.topic, partition.partition, directory)
        if place.partition != partition:
            raise refusals.other_incarnation(partition, place.partition.topic_id)
        if place.log is None:
            try:
                place.log = await self._read(directory, partition, config)
            except LogbrokerError:
                if not self._disk.exists(directory / paths.CHECKPOINT):
                    del self._places[partition.topic, partition.partition]
                raise
        place.log.config = config
        return place.log

    async def _read(
        self, directory: Path, partition: PartitionId, config: LogConfig
    ) -> FilePartitionLog:
        threads = self._machine.threads
        if not self._disk.exists(directory):
            async with self._names:
                await threads.run(self._disk.make_directory, directory)
        opened = await threads.run(
            open_partition, self._disk, directory, partition, was_clean=self._was_clean
        )
        failed = partial(self.failures.add, partition)
        return FilePartitionLog(self._machine, directory, partition, config, opened, failed)

    def _check_open(self) -> None:
        if self._is_closed:
            raise refusals.closed()


def _most_open_files(disk: Disk, wanted: int) -> int:
    """Returns how many segment files may be open: half of what the process may have, at most."""
    most = disk.most_open_files() // 2
    if most < wanted:
        log.warning("fewer open files than set", max_open_files=wanted, possible=most)
    return min(wanted, most)


def _take_clean_marker(disk: Disk, data_dir: Path) -> bool:
    """Returns whether the last stop was clean, and forgets it durably."""
    marker = data_dir / paths.CLEAN
    was_clean = disk.exists(marker)
    if was_clean:
        disk.unlink(marker)
        disk.sync_directory(data_dir)
    return was_clean


def places_in(disk: Disk, data_dir: Path) -> dict[Key, Place]:
    """Returns the partitions that lie in a data directory, also of topics nobody remembers."""
    places = {}
    for topic in disk.names(data_dir / paths.TOPICS):
        for name in disk.names(data_dir / paths.TOPICS / topic):
            number = paths.partition_number_of(name)
            directory = data_dir / paths.TOPICS / topic / name
            if number is not None and (names := disk.names(directory)):
                place = Place(_identity(disk, directory, topic, number))
                is_ours = place.partition or any(map(paths.is_ours, names))
                if is_ours:
                    places[topic, number] = place
    return places


def _identity(disk: Disk, directory: Path, topic: str, number: int) -> PartitionId | None:
    data = disk.read_file(directory / paths.CHECKPOINT)
    found = Checkpoint.decode(data) if data is not None else None
    if found and (found.topic, found.partition) == (topic, number):
        return found.id
    internal = PartitionId(topic, topic, number)
    return internal if internal.is_internal else None


def _empty_trash(disk: Disk, trash: Path) -> None:
    for name in disk.names(trash):
        disk.remove_tree(trash / name)


def _throw_away(disk: Disk, directory: Path, thrown: Path) -> None:
    if disk.exists(directory):
        disk.rename(directory, thrown)
    _sync_gone(disk, directory, thrown.parent)


def _sync_gone(disk: Disk, directory: Path, trash: Path) -> None:
    """Makes it durable that a partition's directory is not there, and its topic's if empty.

    Also where it is not there already: whoever removed it may not have come that far.
    """
    topic = directory.parent
    disk.sync_directory(trash)
    if disk.exists(topic) and not disk.remove_empty(topic):
        disk.sync_directory(topic)
    if not disk.exists(topic):
        disk.sync_directory(topic.parent)


def _remove_if_there(disk: Disk, thrown: Path) -> None:
    if disk.exists(thrown):  # a partition that was never written to may have had no directory
        disk.remove_tree(thrown)
