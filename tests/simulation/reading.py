"""A reader with its own loop: it follows a log, commits, and begins again where it was."""

import asyncio
from random import Random

from history.events import Place

from logbroker.client import Client, Commit
from logbroker.errors import LogbrokerError

from .log_watch import LogWatch
from .loop import Process
from .machine import ADDRESS
from .world import World

GROUP = "committers"
AGAIN_S = 0.2


class Following:
    """Reads a topic by one process after another."""

    def __init__(self, world: World, topic: str, partition_count: int, watch: LogWatch) -> None:
        self._world = world
        self._topic = topic
        self._partition_count = partition_count
        self._watch = watch
        self._random = Random(world.random.getrandbits(64))
        self._process: Process | None = None
        self._changed = asyncio.Event()
        self._is_over = False

    async def run(self) -> None:
        """Returns after `stop`."""
        while not self._is_over:
            self._changed = asyncio.Event()
            self._process = Process(f"reader of {self._topic}")
            task = self._process.start(self._follow())
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if task.done():
                task.result()
            else:
                self.end_process()
            await asyncio.sleep(AGAIN_S)

    def kill(self) -> None:
        """Kills the process; another one goes on."""
        self._world.counts["readers killed"] += 1
        self._changed.set()

    def stop(self) -> None:
        """Ends it for good."""
        self._is_over = True
        self._changed.set()

    def end_process(self) -> None:
        """Ends what runs."""
        if self._process:
            self._process.kill()
            self._world.network.process_killed(self._process)

    async def _follow(self) -> None:
        watch = self._watch
        async with Client(ADDRESS, timeout_ms=20_000) as client:
            try:
                starts = await self._starts(client)
                reader = client.reader(self._topic, start=starts, follow=True, skip_damage=True)
                async with reader:
                    at: dict[int, int] = {}
                    async for record in reader:
                        place = Place(self._topic, record.partition, record.offset)
                        watch.show(place, record.key, record.value or b"")
                        self._world.trace("shown", place)
                        if record.offset <= at.get(record.partition, -1):
                            watch.faults.append(f"a reader was shown {place} behind {at}")
                        at[record.partition] = record.offset
                        if self._random.random() < 0.2:
                            await self._commit(client, record.partition, record.offset + 1)
            except LogbrokerError as error:
                self._world.counts[f"readers that met {error.reason}"] += 1

    async def _starts(self, client: Client) -> dict[int, int]:
        watch, places = self._watch, [(self._topic, one) for one in range(self._partition_count)]
        asked = {place: watch.known_bounds(place) for place in places}
        try:
            found = await client.admin.get_offsets(GROUP, self._topic)
        except LogbrokerError as error:
            if error.reason == "GROUP_NOT_FOUND":
                return {}
            raise
        starts = {}
        for one in found:
            partition = self._topic, one.partition
            watch.bounds_answered(
                partition, asked[partition], one.log_start_offset, one.high_watermark
            )
            if one.committed_offset is not None:
                self._watch.known_to_end(partition, one.committed_offset, one.high_watermark)
                self._watch.committed(partition, one.committed_offset)
                starts[one.partition] = max(one.committed_offset, one.log_start_offset)
        return starts

    async def _commit(self, client: Client, partition: int, offset: int) -> None:
        self._watch.commit_asked((self._topic, partition), offset)
        commit = Commit(self._topic, partition, offset, is_automatic=True)
        [found] = await client.admin.commit_offsets(GROUP, [commit])
        if isinstance(found, int):
            self._watch.commit_confirmed((self._topic, partition), offset)
