"""BrokerService: version, limits, stats."""

from dataclasses import asdict
from typing import Any, Protocol

from logbroker.broker.stats import BrokerStats, GroupStats
from logbroker.config import LimitsConfig
from logbroker.server.open_streams import OpenStreams
from logbroker.v1 import broker_service_pb2 as pb
from logbroker.v1 import group_pb2
from logbroker.v1.broker_service_pb2_grpc import BrokerServiceServicer


class Telling(Protocol):
    """What this service asks of the broker."""

    limits: LimitsConfig

    def stats(self, open_stream_count: int) -> BrokerStats: ...
    async def group_stats(self) -> list[GroupStats]: ...


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
        groups = [group_stats_to_proto(one) for one in await self._broker.group_stats()]
        return pb.GetStatsResponse(**stats, rss_bytes=_rss_bytes(), groups=groups)


def group_stats_to_proto(stats: GroupStats) -> group_pb2.GroupStats:
    """Returns the message: its fields have the same names."""
    return group_pb2.GroupStats(**asdict(stats))


def _rss_bytes() -> int:
    """Returns the resident memory of this process; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0
