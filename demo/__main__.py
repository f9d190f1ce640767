"""The story, from top to bottom."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from rich.console import Console

from demo.crash import prove, publish_through_a_kill
from demo.dead_letters import look_at_dead_letters, redrive
from demo.figures import PUBLISHED, Figures, FiguresDifferError
from demo.flights import Flight, NoDataError, find_data, read_flights
from demo.groups import Delays, find_groups_where_they_were, read_as_groups
from demo.publishing import publish
from demo.replay import replay_all, replay_last, replay_since
from demo.screen import ClientLog, Screen
from logbroker import Client, LogbrokerError
from logbroker.testing.running_broker import BrokerProcess

TOPIC, SECOND_TOPIC = "flights", "flights-again"
PARTITION_COUNT = 4
SECOND_RUN = 120_000
"""How many flights the second run publishes: enough to be killed in the middle of."""


def main(arguments: Sequence[str] | None = None, expected: Figures = PUBLISHED) -> int:
    """Runs the demo and returns its exit code: 1 if anything is not as it should be.

    130 after Ctrl-C.
    """
    parser = argparse.ArgumentParser(prog="python -m demo", description=__package__)
    parser.add_argument("--data", type=Path, help="another zipped CSV with the same columns")
    options = parser.parse_args(arguments)
    screen = Screen(Console())
    structlog.configure(
        processors=[lambda _, __, event: str(event["event"])],
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: ClientLog(screen),
    )
    code = 0
    try:
        tell(options.data or find_data(), expected, screen)
    except* (NoDataError, FiguresDifferError, LogbrokerError, RuntimeError) as group:
        print(f"\nThe demo failed: {first_of(group)}", file=sys.stderr)
        code = 1
    except* KeyboardInterrupt:
        code = 130
    return code


def first_of(error: BaseException) -> BaseException:
    """Returns the error itself, out of however many groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def tell(data: Path, expected: Figures, screen: Screen) -> None:
    """Tells the whole story."""
    started = time.perf_counter()
    screen.title("logbroker: a year of flights out of New York")
    screen.section("The data")
    flights = list(read_flights(data))
    size = sum(len(flight.value) for flight in flights)
    seconds = time.perf_counter() - started
    screen.say(f"{len(flights):,} flights, {size / 1e6:.1f} MB as JSON, read in {seconds:.1f} s")

    with TemporaryDirectory(prefix="logbroker-demo-") as directory:
        screen.section("A broker")
        starting = time.perf_counter()
        with BrokerProcess(Path(directory) / "data") as broker:
            seconds = time.perf_counter() - starting
            screen.say(f"listens on {broker.address}, process {broker.pid}, up in {seconds:.1f} s")
            screen.say(f"data directory: {broker.data_dir}")
            asyncio.run(use(broker, flights, expected, screen))
    screen.section("Your own broker")
    show_what_next(screen, time.perf_counter() - started)


async def use(
    broker: BrokerProcess, flights: Sequence[Flight], expected: Figures, screen: Screen
) -> None:
    """Does what a user does with a broker, and what nobody should do to one."""
    async with Client(broker.address) as client:
        topic = await client.admin.create_topic(TOPIC, partition_count=PARTITION_COUNT)
        screen.say(
            f"topic {topic.topic}: {topic.partition_count} partitions, "
            f"durability {topic.settings.durability}: acknowledged means on disk"
        )

        screen.section("Publish: one JSON record for each flight, the tail number as its key")
        september = [flight for flight in flights if flight.month == 9]
        others = [flight for flight in flights if flight.month != 9]
        await publish(client, TOPIC, others, "eleven months", screen)
        since_ms = await a_moment_later()
        await publish(client, TOPIC, september, "September", screen)

        screen.section("Replay")
        await replay_all(client, TOPIC, expected, screen)
        screen.say()
        await replay_since(client, TOPIC, since_ms, expected, screen)
        screen.say()
        await replay_last(client, TOPIC, 2, screen)

        await use_groups(client, expected, screen)

        screen.section("Crash: SIGKILL to the broker in the middle of a second run")
        await client.admin.create_topic(SECOND_TOPIC, partition_count=PARTITION_COUNT)
        second_run = flights[:SECOND_RUN]
        after = await publish_through_a_kill(client, SECOND_TOPIC, second_run, broker, screen)
        await prove(client, SECOND_TOPIC, second_run, after, screen)
        screen.say("and the first run, read again from the broker that came back:")
        await replay_all(client, TOPIC, expected, screen, brief=True)
        await find_groups_where_they_were(client, expected, screen)


async def use_groups(client: Client, expected: Figures, screen: Screen) -> None:
    """Shares the flights between three groups, one of which fails at some, and mends that."""
    screen.section("Groups: two of them at once, and a third one later")
    async with AsyncExitStack() as stack:
        delays = Delays()
        bystanders = await read_as_groups(client, TOPIC, delays, stack, expected, screen)
        screen.section("Dead letters: the flights that never left")
        await look_at_dead_letters(client, TOPIC, expected, screen)
        screen.say()
        await redrive(client, TOPIC, delays, bystanders, expected, screen)


async def a_moment_later() -> int:
    """Returns a time, in ms since 1970, that is after everything published so far."""
    await asyncio.sleep(0.005)
    return time.time_ns() // 1_000_000


def show_what_next(screen: Screen, seconds: float) -> None:
    """Says how to go on."""
    logbroker = Path(sys.executable).with_name("logbroker")
    try:
        command = str(logbroker.relative_to(Path.cwd()))
    except ValueError:
        command = str(logbroker)
    screen.command(f"{command} serve")
    screen.say("keeps its data in ./logbroker-data until you stop it. Then, elsewhere:")
    screen.command(f"{command} topic create hello")
    screen.command(f"echo world | {command} produce hello")
    screen.command(f"{command} fetch hello")
    screen.say("From Python, with grpcurl, and what is promised: README.md")
    screen.say()
    screen.say(f"The demo took {seconds:.0f} s and left nothing behind.")


if __name__ == "__main__":
    sys.exit(main())
