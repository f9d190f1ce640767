"""Builds and runs the gRPC server, with health and reflection."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from logbroker.broker.broker import Broker
from logbroker.config import ListenConfig
from logbroker.errors import UnavailableError
from logbroker.limits import REQUEST_OVERHEAD_BYTES
from logbroker.server.broker_service import BrokerService
from logbroker.server.consume_service import ConsumeService
from logbroker.server.dead_letter_service import DeadLetterService
from logbroker.server.fetch_service import FetchService
from logbroker.server.group_service import GroupService
from logbroker.server.health import health_of
from logbroker.server.interceptors import StatusInterceptor
from logbroker.server.open_streams import OpenStreams
from logbroker.server.produce_service import ProduceService
from logbroker.server.topic_service import TopicService
from logbroker.v1.broker_service_pb2_grpc import add_BrokerServiceServicer_to_server
from logbroker.v1.dead_letter_service_pb2_grpc import add_DeadLetterServiceServicer_to_server
from logbroker.v1.group_service_pb2_grpc import add_GroupServiceServicer_to_server
from logbroker.v1.topic_service_pb2_grpc import add_TopicServiceServicer_to_server

SERVICES = (
    "TopicService",
    "ProduceService",
    "FetchService",
    "ConsumeService",
    "GroupService",
    "DeadLetterService",
    "BrokerService",
)
MIN_PING_INTERVAL_MS = 1_000
PENDING_CALLS = 1 << 20
"""Above a number that gRPC sets to 1,000 otherwise it drops calls at random, as CANCELLED: a
reader of 2,000 partitions opens as many at once."""


@asynccontextmanager
async def serve_grpc(broker: Broker, config: ListenConfig, version: str) -> AsyncIterator[int]:
    """Serves and yields the port. At the end streams are told, and calls get their grace.

    UnavailableError where the address cannot be had.
    """
    streams = OpenStreams()
    server = grpc.aio.server(
        interceptors=[StatusInterceptor(broker.error_counts, streams)],
        options=[
            ("grpc.max_receive_message_length", broker.limits.batch_bytes + REQUEST_OVERHEAD_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.keepalive_time_ms", config.keepalive_ms),
            ("grpc.keepalive_timeout_ms", config.keepalive_timeout_ms),
            ("grpc.http2.ping_timeout_ms", config.keepalive_timeout_ms),  # else a minute counts
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.http2.min_ping_interval_without_data_ms", MIN_PING_INTERVAL_MS),
            ("grpc.http2.max_ping_strikes", 0),
            ("grpc.so_reuseport", 0),
            ("grpc.server.max_pending_requests", PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", PENDING_CALLS),
        ],
    )
    produce = ProduceService(broker, streams, broker.limits.connection_bytes)
    fetch = FetchService(broker, streams)
    consume = ConsumeService(broker, streams)
    server.add_generic_rpc_handlers((produce.handler(), fetch.handler(), consume.handler()))
    groups, letters = GroupService(broker.groups), DeadLetterService(broker.dead_letters)
    add_DeadLetterServiceServicer_to_server(letters, server)  # type: ignore[no-untyped-call]  # generated
    add_GroupServiceServicer_to_server(groups, server)  # type: ignore[no-untyped-call]  # generated
    topics, about = TopicService(broker), BrokerService(broker, streams, version)
    add_TopicServiceServicer_to_server(topics, server)  # type: ignore[no-untyped-call]  # generated
    add_BrokerServiceServicer_to_server(about, server)  # type: ignore[no-untyped-call]  # generated
    _add_reflection(server)
    async with health_of(server, broker, SERVICES) as checks:
        port = _listen(server, config.grpc)
        await server.start()
        try:
            yield port
        finally:
            await checks.enter_graceful_shutdown()
            streams.stop()
            await streams.wait_quiet()
            await server.stop(config.stop_grace_ms / 1_000)


def _listen(server: grpc.aio.Server, address: str) -> int:
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise UnavailableError("UNREACHABLE", f"cannot listen on {address}: {error}") from error
    if not port:
        raise UnavailableError("UNREACHABLE", f"cannot listen on {address}", address=address)
    return port


def _add_reflection(server: grpc.aio.Server) -> None:
    names = [f"logbroker.v1.{name}" for name in SERVICES]
    names += [health.SERVICE_NAME, reflection.SERVICE_NAME]
    reflection.enable_server_reflection(names, server)
