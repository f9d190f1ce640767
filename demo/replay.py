"""Replaying: from the start, since a point in time, from an offset."""

import time
from collections import Counter

from demo.figures import Comparison, Figures
from demo.flights import fields_of
from demo.screen import Screen, rate
from logbroker import Client, Timestamp

LAST = 10


async def replay_all(
    client: Client, topic: str, expected: Figures, screen: Screen, *, brief: bool = False
) -> None:
    """Reads every record and counts the flights of each carrier; `brief` shows only how many."""
    started, size, without_key = time.perf_counter(), 0, 0
    carriers: Counter[str] = Counter()
    async with client.reader(topic, start="earliest") as reader:
        async for record in reader:
            carriers[fields_of(record)["carrier"]] += 1
            without_key += record.key is None
            size += len(record.value or b"")
    if not brief:
        screen.say("everything, from the start, counted by carrier")
    screen.say(rate(carriers.total(), size, time.perf_counter() - started))
    comparisons = [
        Comparison("flights", carriers.total(), expected.flight_count),
        Comparison("without a tail number", without_key, expected.without_tail_number),
        Comparison("carriers", len(carriers), len(expected.by_carrier)),
    ]
    if brief:
        right = sum(carriers[name] == count for name, count in expected.by_carrier.items())
        comparisons.append(Comparison("carriers with their count", right, len(carriers)))
    else:
        by_count = sorted(expected.by_carrier.items(), key=lambda item: -item[1])
        comparisons += [Comparison(f"carrier {name}", carriers[name], n) for name, n in by_count]
    screen.compare(comparisons)


async def replay_since(
    client: Client, topic: str, since_ms: int, expected: Figures, screen: Screen
) -> None:
    """Reads what was published since a point in time, which is September."""
    months: Counter[int] = Counter()
    async with client.reader(topic, start=Timestamp(since_ms)) as reader:
        async for record in reader:
            months[fields_of(record)["month"]] += 1
    moment = time.strftime("%H:%M:%S", time.localtime(since_ms / 1_000))
    screen.say(f"what was published since {moment}.{since_ms % 1_000:03}, when September began")
    screen.compare(
        [
            Comparison("flights", months.total(), expected.in_september),
            Comparison("of them in September", months[9], expected.in_september),
        ]
    )


async def replay_last(client: Client, topic: str, partition: int, screen: Screen) -> None:
    """Reads the last records of one partition, from an offset."""
    description = await client.admin.get_topic(topic)
    high_watermark = description.partitions[partition].high_watermark
    start = max(0, high_watermark - LAST)
    rows, offsets = [], []
    async with client.reader(topic, partition=partition, start=start) as reader:
        async for record in reader:
            flight = fields_of(record)
            offsets.append(record.offset)
            rows.append(
                (
                    f"{record.offset:,}",
                    "(null)" if record.key is None else record.key.decode(),
                    f"{flight['carrier']} {flight['flight']}",
                    f"{flight['origin']} to {flight['dest']}",
                    flight["time_hour"],
                )
            )
    screen.say(f"the last {LAST} of partition {partition}, from offset {start:,}")
    screen.table(("OFFSET", "KEY", "FLIGHT", "ROUTE", "SCHEDULED"), rows)
    in_order = sum(a == b for a, b in zip(offsets, range(start, high_watermark), strict=False))
    screen.compare([Comparison("records, offsets without a gap", in_order, high_watermark - start)])
