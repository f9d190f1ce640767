"""serve(config): what a broker is made of, readable as a list."""

import asyncio
import gc
import ipaddress
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version

import structlog
import uvloop

from logbroker.broker.broker import open_broker
from logbroker.clock import SystemClock
from logbroker.config import Config
from logbroker.errors import InvalidError
from logbroker.malloc import give_back_at_rest, keep_freed_memory
from logbroker.server.server import serve_grpc
from logbroker.storage.file.disk import raise_open_files_limit
from logbroker.storage.file.engine import FileEngine

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
GC_THRESHOLD = 50_000
"""Allocations between two looks for garbage in cycles: the broker makes hardly any."""

log = structlog.get_logger()


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[str]:
    """Runs a broker and yields its address; at the end stops it in good order.

    PreconditionError (BROKER_RUNNING) if another broker has the data directory; InvalidError
    for an address that others reach, unless `listen.insecure` allows it.
    """
    check_address(config)
    clock = SystemClock()
    engine = await FileEngine.start(config.storage, clock)  # locks the directory, recovers it
    try:
        async with (
            # replays the journals, opens the partitions, keeps house
            open_broker(engine, clock, defaults=config.log, limits=config.limits) as broker,
            # takes calls; at the end tells the streams and waits for what is under way
            serve_grpc(broker, config.listen, version("logbroker")) as port,
        ):
            looking = asyncio.create_task(broker.loop_lag.run())
            try:
                yield f"{config.listen.grpc.rpartition(':')[0]}:{port}"
            finally:
                looking.cancel()
    finally:
        await engine.close()  # flushes, writes indexes, checkpoints and the clean-stop marker


def check_address(config: Config) -> None:
    """Raises InvalidError for an address that other machines reach, unless that is allowed."""
    host = config.listen.grpc.rpartition(":")[0].strip("[]")
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback and not config.listen.insecure:
        message = (
            f"listen.grpc: {config.listen.grpc!r} can be reached by other machines, and there is "
            "no authentication yet; say --insecure (listen.insecure) if you mean it"
        )
        raise InvalidError("INVALID_SETTING", message, address=config.listen.grpc)


async def _serve(config: Config, started: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(*_: object) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)

    # Not the loop's own handlers: it takes them away before the process has ended.
    for number in STOP_SIGNALS:
        signal.signal(number, on_signal)
    async with running(config) as address:
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_THRESHOLD)
        log.info("listening", address=address, data_dir=str(config.storage.data_dir))
        giving_back = asyncio.create_task(give_back_at_rest(SystemClock()))
        started(address)
        await stop.wait()
        log.info("stopping")
        giving_back.cancel()
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # a late one must not spoil a clean stop
    log.info("stopped")


def serve(config: Config, started: Callable[[str], None]) -> None:
    """Runs a broker until SIGTERM or SIGINT; calls `started` with its address once it serves."""
    gc.freeze()  # what was imported: to look through it for garbage takes 20 ms and finds none
    keep_freed_memory()
    raise_open_files_limit(2 * config.storage.max_open_files)
    uvloop.run(_serve(config, started))
