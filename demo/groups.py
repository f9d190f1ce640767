"""Groups: one topic for three uses, each at its own pace."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from demo.figures import Comparison, Figures
from demo.flights import fields_of
from demo.screen import Screen, rate
from logbroker import Client, Consumer, Delivered, GroupSettings, Order, RetryPolicy, Worker

COUNTING, DELAYS, ARCHIVE = "by-carrier", "delays", "archive"
COUNTING_WORKERS = 4
FAILURES = 3
BACK_OFF = RetryPolicy(initial_ms=20, max_ms=50, max_failures=FAILURES)
OUTSTANDING = 4_000
"""Records on their way to `delays`: of each plane one at a time, hence many planes at once."""
LOOK_EVERY_S = 0.2
STUCK_S = 240
"""A group that is not through after this time never will be."""


class NeverLeftError(Exception):
    """The bug: nobody thought of flights that never left."""


@dataclass(slots=True)
class Carriers:
    """What `by-carrier` counts."""

    counts: Counter[str] = field(default_factory=Counter)

    async def handle(self, record: Delivered) -> None:
        """Counts a flight."""
        self.counts[fields_of(record)["carrier"]] += 1


@dataclass(slots=True)
class Delays:
    """What `delays` adds up, and whether its bug is fixed."""

    is_fixed: bool = False
    left_count: int = 0
    never_left_count: int = 0
    delay_minutes: int = 0
    """Of all that left, together; early is less than nothing."""
    failure_count: int = 0
    redriven_count: int = 0
    keyed_count: int = 0
    """Deliveries with a tail number, failures included."""
    in_order_count: int = 0
    """Of these: never one that lies before another of the same plane."""
    latest: dict[bytes, int] = field(default_factory=dict)
    """The offset of each plane's latest flight: all of them lie in one partition."""

    @property
    def mean_minutes(self) -> float:
        """The departure delay of the flights that left."""
        return round(self.delay_minutes / max(self.left_count, 1), 2)

    async def handle(self, record: Delivered) -> None:
        """Adds a flight. Fails, at first, at one that never left."""
        if record.dead_letter is not None:
            self.redriven_count += 1
        elif record.key is not None:
            self.keyed_count += 1
            self.in_order_count += record.offset >= self.latest.get(record.key, 0)
            self.latest[record.key] = record.offset
        flight = fields_of(record)
        if flight["dep_time"] is not None:
            self.left_count += 1
            self.delay_minutes += flight["dep_delay"]
        elif self.is_fixed:
            self.never_left_count += 1
        else:
            raise NeverLeftError(f"{flight['carrier']} {flight['flight']} has no departure time")


class Bystanders(NamedTuple):
    """The groups to which nothing happens when another one fails; they stay attached."""

    counting: Sequence[Worker]
    archive: Consumer

    def delivered(self) -> dict[str, int]:
        """Returns how many records each group has got."""
        return {
            COUNTING: sum(worker.stats().delivered_count for worker in self.counting),
            ARCHIVE: self.archive.stats().delivered_count,
        }


async def read_as_groups(
    client: Client,
    topic: str,
    delays: Delays,
    stack: AsyncExitStack,
    expected: Figures,
    screen: Screen,
) -> Bystanders:
    """Reads the topic as two groups at once, then as a third one, which starts later.

    Two of them stay attached until the stack ends.
    """
    carriers = Carriers()
    counting = [
        client.worker(COUNTING, topic, carriers.handle, settings=GroupSettings(order=Order.NONE))
        for _ in range(COUNTING_WORKERS)
    ]
    screen.say(f"{COUNTING}: order none, {COUNTING_WORKERS} workers, each takes what there is")
    screen.say(f"{DELAYS}: order key, one flight of a plane at a time, which is slower")
    started = time.perf_counter()
    for worker in counting:
        await stack.enter_async_context(worker)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(say_when_through(client, COUNTING, started, expected, screen))
        tasks.create_task(add_up_delays(client, topic, delays, expected, screen))
    right = sum(carriers.counts[name] == count for name, count in expected.by_carrier.items())
    screen.compare(
        [
            Comparison(f"{COUNTING}: flights", carriers.counts.total(), expected.flight_count),
            Comparison(f"{COUNTING}: carriers with their count", right, len(expected.by_carrier)),
            Comparison(
                f"{DELAYS}: flights that left",
                delays.left_count,
                expected.flight_count - expected.never_left,
            ),
            Comparison(
                f"{DELAYS}: failures, {FAILURES} for each flight that never left",
                delays.failure_count,
                FAILURES * expected.never_left,
            ),
            Comparison(
                f"{DELAYS}: deliveries in the order of their plane",
                delays.in_order_count,
                delays.keyed_count,
            ),
        ]
    )
    screen.say()
    archive = await stack.enter_async_context(client.consumer(ARCHIVE, topic, follow=False))
    await fill_archive(archive, expected, screen)
    return Bystanders(counting, archive)


async def say_when_through(
    client: Client, group: str, started: float, expected: Figures, screen: Screen
) -> None:
    """Waits until the group has nothing left to do, and says how long that took."""
    await wait_until_through(client, group)
    seconds, count = time.perf_counter() - started, expected.flight_count
    screen.say(f"{group}: {count:,} records in {seconds:.1f} s: {count / seconds:,.0f} records/s")


async def wait_until_through(
    client: Client, group: str, show_lag: Callable[[int], None] = lambda _: None
) -> None:
    """Returns once the group, which has begun, has settled all there is: its lag is 0."""
    for _ in range(int(STUCK_S / LOOK_EVERY_S)):
        lag = next(one.lag for one in await client.admin.list_groups() if one.group.group == group)
        if lag == 0:
            return
        show_lag(lag)
        await asyncio.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"group {group} is not through after {STUCK_S} s: its lag is {lag:,}")


async def add_up_delays(
    client: Client, topic: str, delays: Delays, expected: Figures, screen: Screen
) -> None:
    """Handles the topic in the order of planes, with the bug; returns when all is settled."""
    settings = GroupSettings(order=Order.KEY, retry=BACK_OFF)
    worker = client.worker(
        DELAYS, topic, delays.handle, settings=settings, max_outstanding_records=OUTSTANDING
    )
    started = time.perf_counter()
    with screen.progress(DELAYS, expected.flight_count) as show:
        async with worker:
            await wait_until_through(client, DELAYS, lambda lag: show(expected.flight_count - lag))
            show(expected.flight_count)
    seconds = time.perf_counter() - started
    delays.failure_count = worker.stats().retry_count
    count = worker.stats().delivered_count
    screen.say(
        f"{DELAYS}: {count:,} deliveries in {seconds:.1f} s: {count / seconds:,.0f} a second"
    )


async def fill_archive(archive: Consumer, expected: Figures, screen: Screen) -> None:
    """Reads the topic from its beginning, a batch at a time, although others were there before."""
    started, size, in_order = time.perf_counter(), 0, 0
    following: Counter[int] = Counter()
    async for batch in archive.batches():
        for record in batch:
            in_order += record.offset == following[record.partition]
            following[record.partition] = record.offset + 1
            size += len(record.value or b"")
    await archive.flush()
    screen.say(f"{ARCHIVE}: order partition, started now, and still from the beginning")
    screen.say(rate(following.total(), size, time.perf_counter() - started))
    what = f"{ARCHIVE}: flights, offsets without a gap"
    screen.compare([Comparison(what, in_order, expected.flight_count)])


async def committed_offsets(client: Client, group: str) -> dict[int, int | None]:
    """Returns how far the group is in each partition of what it reads."""
    found = await client.admin.get_offsets(group)
    return {one.partition: one.committed_offset for one in found}


async def find_groups_where_they_were(client: Client, expected: Figures, screen: Screen) -> None:
    """Checks that every group still knows that it has settled everything."""
    comparisons = []
    for group in (COUNTING, DELAYS, ARCHIVE):
        offsets = await committed_offsets(client, group)
        settled = sum(offset or 0 for offset in offsets.values())
        comparisons.append(Comparison(f"group {group}: settled", settled, expected.flight_count))
    screen.compare(comparisons)
