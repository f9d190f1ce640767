"""BrokerService: version, limits, stats."""

from dataclasses import asdict
from typing import Any, Protocol

from logbroker.broker.stats import BrokerStats
from logbroker.config import LimitsConfig
from logbroker.server.open_streams import OpenStreams
from logbroker.v1 import broker_service_pb2 as pb
from logbroker.v1.broker_service_pb2_grpc import BrokerServiceServicer


class Telling(Protocol):
    """What this service asks of the broker."""

    limits: LimitsConfig

    def stats(self, open_stream_count: int) -> BrokerStats: ...


class BrokerService(BrokerServiceServicer):
    """Tells about the broker itself."""

    def __init__(self, broker: Telling, streams: OpenStreams, version: str) -> None:
        self._broker = broker
        self._streams = streams
        self._version = version

    async def GetBroker(self, request: pb.GetBrokerRequest, context: Any) -> Any:
        """Returns version and limits."""
        limits = self._broker.limits
        return pb.GetBrokerResponse(
            version=self._version,
            limits=pb.Limits(
                record_bytes=limits.record_bytes,
                batch_bytes=limits.batch_bytes,
                header_count=limits.header_count,
                header_bytes=limits.header_bytes,
            ),
        )

    async def GetStats(self, request: pb.GetStatsRequest, context: Any) -> Any:
        """Returns what the broker has counted."""
        stats = asdict(self._broker.stats(len(self._streams)))
        return pb.GetStatsResponse(**stats, rss_bytes=_rss_bytes())


def _rss_bytes() -> int:
    """Returns the resident memory of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
