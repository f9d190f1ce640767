"""Dead letters: what a group failed at, looked at, and given back to it alone."""

import asyncio
import time

from demo.figures import Comparison, Figures
from demo.groups import (
    DELAYS,
    LOOK_EVERY_S,
    STUCK_S,
    Bystanders,
    Delays,
    committed_offsets,
    wait_until_through,
)
from demo.screen import Screen
from logbroker import Client, DeadLetterFilter
from logbroker.client import RedriveInfo

SHOWN = 3


async def look_at_dead_letters(
    client: Client, topic: str, expected: Figures, screen: Screen
) -> None:
    """Shows some of them with their reasons, and counts them, also by reading their topic."""
    some = await client.admin.list_dead_letters(
        DeadLetterFilter(group=DELAYS, topic=topic, limit=SHOWN)
    )
    screen.say(f"{topic}.{DELAYS}.dlq, of which these are {len(some)}")
    screen.table(
        ("PARTITION", "OFFSET IN " + topic.upper(), "KEY", "FAILURES", "REASON"),
        [
            (
                str(letter.partition),
                f"{letter.source_offset:,}",
                "(null)" if letter.key is None else letter.key.decode(),
                str(letter.failures),
                letter.reason,
            )
            for letter in some
        ],
    )
    found = 0
    async with client.reader(f"{topic}.{DELAYS}.dlq") as reader:
        async for batch in reader.batches():
            found += batch.record_count
    screen.compare(
        [
            Comparison("parked", await count_parked(client), expected.never_left),
            Comparison("records in that topic, read like any other", found, expected.never_left),
        ]
    )


async def redrive(
    client: Client,
    topic: str,
    delays: Delays,
    bystanders: Bystanders,
    expected: Figures,
    screen: Screen,
) -> None:
    """Fixes the bug, and gives the dead letters back to their group. The others see nothing."""
    delivered_before = bystanders.delivered()
    offsets_before = {name: await committed_offsets(client, name) for name in delivered_before}
    delays.is_fixed = True
    started = time.perf_counter()
    async with client.worker(DELAYS, topic, delays.handle) as worker:
        job = await client.admin.start_redrive(DeadLetterFilter(group=DELAYS, topic=topic))
        job = await wait_until_settled(client, job)
        await wait_until_through(client, DELAYS)
    seconds = time.perf_counter() - started
    screen.say(
        f"the bug is fixed: redrive {job.redrive_id} gave {job.redriven_count:,} dead letters "
        f"back in {seconds:.1f} s"
    )
    offsets_after = {name: await committed_offsets(client, name) for name in offsets_before}
    comparisons = [
        Comparison("redriven and settled", job.resolved_count, expected.never_left),
        Comparison(f"{DELAYS}: got", worker.stats().delivered_count, expected.never_left),
        Comparison("of them redriven dead letters", delays.redriven_count, expected.never_left),
        Comparison("still parked", await count_parked(client), 0),
        Comparison("flights that never left", delays.never_left_count, expected.never_left),
        Comparison("mean departure delay, in minutes", delays.mean_minutes, expected.mean_delay),
    ]
    delivered = bystanders.delivered()
    for name, before in offsets_before.items():
        moved = sum(offsets_after[name][partition] != at for partition, at in before.items())
        got = delivered[name] - delivered_before[name]
        comparisons += [
            Comparison(f"{name}: records delivered meanwhile", got, 0),
            Comparison(f"{name}: records delivered in all", delivered[name], expected.flight_count),
            Comparison(f"{name}: committed offsets that moved", moved, 0),
        ]
    screen.compare(comparisons)


async def wait_until_settled(client: Client, job: RedriveInfo) -> RedriveInfo:
    """Returns the redrive once all that it gave back is settled, or has failed again."""
    for _ in range(int(STUCK_S / LOOK_EVERY_S)):
        job = await client.admin.get_redrive(job.redrive_id)
        if job.resolved_count + job.parked_again_count >= job.selected_count:
            return job
        await asyncio.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"redrive {job.redrive_id} is not through after {STUCK_S} s")


async def count_parked(client: Client) -> int:
    """Returns how many dead letters `delays` has."""
    found = await client.admin.get_group(DELAYS)
    return sum(one.parked_count for one in found.dead_letters)
