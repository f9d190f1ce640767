"""RabbitMQ twice: streams, which are a log, and quorum queues, which are a work queue."""

from functools import partial

from bench.peers.rabbitmq.server import missing, server, versions
from bench.peers.system import Ability, Level, System

STREAMS = System(
    name="rabbitmq-stream",
    title="RabbitMQ streams",
    client_module="bench.peers.rabbitmq.stream_client",
    answers={Level.WRITTEN: "confirmed once written; a stream never calls fsync for an answer"},
    abilities=frozenset({Ability.REPLAY, Ability.GROUPS}),
    is_level_of_topic=True,
    has_owners=False,
    is_blind_faster=False,
    join_s=0.5,
    server=server,
    missing=partial(missing, "rstream"),
    versions=partial(versions, "rstream"),
)
QUORUM_QUEUES = System(
    name="rabbitmq-quorum",
    title="RabbitMQ quorum queues",
    client_module="bench.peers.rabbitmq.quorum_client",
    answers={Level.SYNCED: "confirmed after fsync of the write-ahead log; there is no other way"},
    abilities=frozenset({Ability.SHARED, Ability.WORK}),
    is_level_of_topic=True,
    has_owners=False,
    is_blind_faster=False,
    join_s=0.5,
    server=server,
    missing=partial(missing, "aio-pika"),
    versions=partial(versions, "aio-pika"),
)
