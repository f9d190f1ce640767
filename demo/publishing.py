"""Publishing: records go in one by one, receipts come back when they are on disk."""

import time
from collections.abc import Sequence

from demo.flights import Flight
from demo.screen import Screen, rate
from logbroker import Client

PROGRESS_EVERY = 1_000


async def publish(
    client: Client, topic: str, flights: Sequence[Flight], what: str, screen: Screen
) -> None:
    """Publishes the flights in their order and returns when every one is acknowledged."""
    started = time.perf_counter()
    with screen.progress(what, len(flights)) as show:
        async with client.producer(topic) as producer:
            for number, flight in enumerate(flights, start=1):
                await producer.send(flight.value, key=flight.key)  # waits only for room
                if number % PROGRESS_EVERY == 0:
                    show(number - producer.unsent_count)
            await producer.flush()  # raises if a single record is not stored
            show(len(flights))
    size = sum(len(flight.value) for flight in flights)
    screen.say(f"{what}: {rate(len(flights), size, time.perf_counter() - started)}")
