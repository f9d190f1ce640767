"""The crash: SIGKILL to the broker while records are on their way, and what is left of them."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from demo.figures import Comparison
from demo.flights import Flight
from demo.publishing import PROGRESS_EVERY
from demo.screen import Screen
from logbroker import Client, PendingReceipt
from logbroker.testing.running_broker import BrokerProcess

Place = tuple[int, int]
"""A partition and an offset in it."""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What the producer knows when all is over."""

    receipts: Sequence[PendingReceipt]
    """One for each flight, in the order of the flights."""
    acknowledged_before: int
    """How many of them were there when the broker was killed."""
    places_before: frozenset[Place]
    """Where those records lay, by the receipts of that moment."""


async def publish_through_a_kill(
    client: Client, topic: str, flights: Sequence[Flight], broker: BrokerProcess, screen: Screen
) -> Aftermath:
    """Publishes the flights; half-way the broker is killed, and started again on its port.

    The producer is told nothing. It notices, waits, and sends again what was not answered.
    """
    receipts: list[PendingReceipt] = []
    places: frozenset[Place] = frozenset()
    with screen.progress("second run", len(flights)) as show:
        async with client.producer(topic) as producer, asyncio.TaskGroup() as tasks:
            for number, flight in enumerate(flights):
                if number == len(flights) // 2:
                    await receipts[number // 2]  # at least a quarter is acknowledged
                    places = kill(broker, receipts, screen)
                    tasks.create_task(restart(broker, screen))
                receipts.append(await producer.send(flight.value, key=flight.key))
                if number % PROGRESS_EVERY == 0:
                    show(len(receipts) - producer.unsent_count)
            await producer.flush()
            show(len(flights))
    return Aftermath(receipts, len(places), places)


def kill(
    broker: BrokerProcess, receipts: Sequence[PendingReceipt], screen: Screen
) -> frozenset[Place]:
    """Kills the broker; returns the places of the records that were acknowledged by then."""
    pid = broker.pid
    broker.kill()
    places = [(one.partition, one.offset) for one in receipts if one.done()]
    screen.say(
        f"kill -9 {pid}: {len(receipts):,} records sent, {len(places):,} of them acknowledged, "
        f"{len(receipts) - len(places):,} on their way"
    )
    assert len(places) == len(set(places)), "two records with one offset"
    return frozenset(places)


async def restart(broker: BrokerProcess, screen: Screen) -> None:
    """Starts the broker again on its port and its data directory."""
    started = time.perf_counter()
    await asyncio.to_thread(broker.start)
    screen.say(f"a new broker, process {broker.pid}: up in {time.perf_counter() - started:.1f} s")


async def prove(
    client: Client, topic: str, flights: Sequence[Flight], after: Aftermath, screen: Screen
) -> None:
    """Reads the topic and compares it, record by record, with the receipts and the flights."""
    sent = {
        (receipt.partition, receipt.offset): flight
        for receipt, flight in zip(after.receipts, flights, strict=True)
    }
    found = intact = intact_before = in_order = 0
    last: dict[int, int] = {}
    for partition, offset in sent:
        in_order += offset > last.get(partition, -1)
        last[partition] = offset
    async with client.reader(topic, start="earliest") as reader:
        async for record in reader:
            place = record.partition, record.offset
            flight = sent.get(place)
            is_intact = flight is not None and record[2:4] == (flight.key, flight.value)
            found += 1
            intact += is_intact
            intact_before += is_intact and place in after.places_before
    screen.compare(
        [
            Comparison(
                "acknowledged before the kill: at their offsets, with their bytes",
                intact_before,
                after.acknowledged_before,
            ),
            Comparison(
                "acknowledged in the whole run: at their offsets, with their bytes",
                intact,
                len(flights),
            ),
            Comparison("in the order in which they were sent", in_order, len(flights)),
            Comparison("records in the topic: none of them twice", found, len(flights)),
        ]
    )
