"""The data directory: its lock, its clean-stop marker, its trash, partitions nobody can read."""

import asyncio
from threading import Lock

import pytest

from logbroker.config import LogConfig
from logbroker.errors import InvalidError, PreconditionError, UnavailableError
from logbroker.storage.file.checkpoint import Checkpoint
from logbroker.storage.file.disk import Disk
from logbroker.testing.engine_harness import PARTITION, batch_of, error_of, values_from
from logbroker.testing.faulty_disk import FaultyDisk


def test_a_second_broker_is_refused_and_told_the_path(place, run):
    async def test():
        async with place.log() as log:
            with pytest.raises(PreconditionError, match=str(place.data_dir)) as raised:
                async with place.engine():
                    pass
            assert raised.value.reason == "BROKER_RUNNING"
            await log.append(batch_of("unharmed"))
        async with place.log() as log:
            assert await values_from(log, 0) == ["unharmed"]

    run(test)


def test_a_clean_stop_leaves_a_marker_and_the_next_start_scans_nothing(place, run):
    async def test():
        await place.fill("abc")
        assert (place.data_dir / "clean").exists()
        data = bytearray(place.files()[0].read_bytes())
        data[-1] ^= 1  # a scan would take this for a torn tail
        place.files()[0].write_bytes(data)
        async with place.log() as log:
            assert not (place.data_dir / "clean").exists()
            assert log.stats().torn_bytes == 0

    run(test)


def test_no_marker_is_left_after_a_kill(place, run):
    async def test():
        disk = FaultyDisk(place.data_dir)
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.kill()
        assert not (place.data_dir / "clean").exists()

    run(test)


def test_no_marker_is_left_while_a_partition_waits_for_its_scan(place, run):
    async def test():
        disk = FaultyDisk(place.data_dir)
        async with place.log(disk) as log:
            await log.append(batch_of("a"))
            disk.kill()
        async with place.engine():
            pass
        assert not (place.data_dir / "clean").exists()
        async with place.log():
            pass
        assert (place.data_dir / "clean").exists()

    run(test)


def test_a_deleted_partition_leaves_nothing_behind(place, run):
    async def test():
        async with place.engine() as engine:
            log = await engine.open(PARTITION, LogConfig())
            await log.append(batch_of("a"))
            await engine.delete(PARTITION)
            assert list((place.data_dir / "trash").iterdir()) == []
            assert list((place.data_dir / "topics").iterdir()) == []
            assert engine.stats().open_file_count == 0

    run(test)


def test_trash_of_a_delete_that_was_cut_short_is_emptied_at_the_start(place, run):
    async def test():
        disk = FaultyDisk(place.data_dir)
        async with place.engine(disk) as engine:
            await engine.open(PARTITION, LogConfig())
            disk.fail("remove_tree", 5)
            assert isinstance(await error_of(engine.delete(PARTITION)), UnavailableError)
        assert len(list((place.data_dir / "trash").iterdir())) == 1
        async with place.engine() as engine:
            assert engine.partitions() == []
        assert list((place.data_dir / "trash").iterdir()) == []

    run(test)


@pytest.mark.parametrize("harm", [b"noise", b"", b'{"format":1}\ncrc32c 00000000\n', None])
def test_a_partition_with_an_unreadable_checkpoint_is_left_alone(place, run, harm):
    async def test():
        await place.fill("abc")
        path = place.directory / "checkpoint"
        path.unlink() if harm is None else path.write_bytes(harm)
        before = place.files()[0].read_bytes()
        async with place.engine() as engine:
            assert engine.partitions() == [PARTITION._replace(topic_id="")]
            error = await error_of(engine.open(PARTITION, LogConfig()))
            assert isinstance(error, UnavailableError)
            assert error.reason == "TOPIC_DAMAGED"
            deleted = await error_of(engine.delete(PARTITION._replace(topic_id="")))
            assert isinstance(deleted, UnavailableError)
            other = await engine.open(PARTITION._replace(topic="healthy"), LogConfig())
            await other.append(batch_of("x"))
        assert place.files()[0].read_bytes() == before

    run(test)


def test_a_checkpoint_of_another_partition_is_not_believed(place, run):
    async def test():
        await place.fill("abc")
        other = Checkpoint(topic="other", topic_id="6f1c", partition=0)
        (place.directory / "checkpoint").write_bytes(other.encode())
        async with place.engine() as engine:
            error = await error_of(engine.open(PARTITION, LogConfig()))
            assert isinstance(error, UnavailableError)

    run(test)


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "../x", "a\0b", "-rf", "x" * 201])
def test_nothing_is_made_outside_the_data_directory(place, run, topic):
    async def test():
        async with place.engine() as engine:
            error = await error_of(engine.open(PARTITION._replace(topic=topic), LogConfig()))
            assert isinstance(error, InvalidError)
        assert list((place.data_dir / "topics").iterdir()) == []

    run(test)


def test_a_partition_that_cannot_be_made_is_not_there(place, run):
    async def test():
        disk = FaultyDisk(place.data_dir)
        async with place.engine(disk) as engine:
            disk.is_full = True
            assert await error_of(engine.open(PARTITION, LogConfig())) is not None
            assert engine.partitions() == []
            disk.is_full = False
            log = await engine.open(PARTITION, LogConfig())
            await log.append(batch_of("a"))
            assert engine.partitions() == [PARTITION]

    run(test)


def test_one_partition_is_opened_once_however_many_ask(place, run):
    async def test():
        async with place.engine() as engine:
            logs = await asyncio.gather(*(engine.open(PARTITION, LogConfig()) for _ in range(5)))
            assert len(set(map(id, logs))) == 1

    run(test)


def test_a_partition_never_written_to_has_no_segment_file(place, run):
    async def test():
        await place.fill([])
        assert [path.name for path in place.directory.iterdir()] == ["checkpoint"]

    run(test)


class CountingDisk(Disk):
    """Knows how many descriptors were open at most."""

    def __init__(self):
        self.open_count = self.peak = 0
        self._counting = Lock()

    def open(self, path, *, create=False):
        descriptor = super().open(path, create=create)
        with self._counting:
            self.open_count += 1
            self.peak = max(self.peak, self.open_count)
        return descriptor

    def close(self, descriptor):
        super().close(descriptor)
        with self._counting:
            self.open_count -= 1


def test_many_partitions_work_with_few_descriptors(place, run):
    async def test():
        disk = CountingDisk()
        partitions = [PARTITION._replace(partition=number) for number in range(60)]
        async with place.engine(disk, max_open_files=16) as engine:
            logs = [await engine.open(partition, LogConfig()) for partition in partitions]
            for _ in range(2):
                await asyncio.gather(*(log.append(batch_of("v")) for log in logs))
                assert engine.stats().open_file_count <= 16
        assert disk.peak <= 16 + 2 * 4  # and a few small files, one a thread
        async with place.engine(max_open_files=16) as engine:
            assert sorted(engine.partitions()) == partitions
            for partition in partitions:
                log = await engine.open(partition, LogConfig())
                assert log.bounds().next_offset == 2
                await log.read(0, 1)
            assert engine.stats().open_file_count <= 16

    run(test)
