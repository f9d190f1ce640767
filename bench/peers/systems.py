"""All systems, logbroker first."""

from bench.peers.kafka.system import SYSTEM as KAFKA
from bench.peers.logbroker.system import SYSTEM as LOGBROKER
from bench.peers.nats.system import SYSTEM as NATS
from bench.peers.rabbitmq.system import QUORUM_QUEUES, STREAMS
from bench.peers.redis.system import SYSTEM as REDIS
from bench.peers.system import System

OURS = LOGBROKER
SYSTEMS: dict[str, System] = {
    system.name: system for system in (OURS, KAFKA, NATS, REDIS, STREAMS, QUORUM_QUEUES)
}
