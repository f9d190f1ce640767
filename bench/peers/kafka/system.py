"""Apache Kafka: one process, broker and controller at once (KRaft)."""

import subprocess
from functools import partial
from pathlib import Path

from bench.peers.fetched import (
    SETUP,
    fetched,
    missing_packages,
    missing_programs,
    package_versions,
)
from bench.peers.kafka.tool import KafkaTool
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Ability, Level, Missing, System

JVM = [
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]
"""What Kafka's own start script gives it."""
FORMAT_S = 60
PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=BROKER://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=BROKER://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=127.0.0.1:{controller}
log.dirs={data}
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
group.share.max.size=1000
group.share.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=500
"""


def jars() -> Path:
    """Returns where its jars are."""
    return fetched() / "kafka"


def has_jars() -> bool:
    """Tells whether they are there."""
    return any(jars().glob("kafka_2.13-*.jar"))


def server(directory: Path, _: Level) -> ServerProcess:
    """Makes a server."""
    broker, controller = ports_of(directory, "broker", "controller")
    data, properties = directory / "data", directory / "server.properties"
    properties.write_text(PROPERTIES.format(broker=broker, controller=controller, data=data))
    return ServerProcess(
        directory,
        java("kafka.Kafka", str(properties), options=JVM),
        address=f"{LOOPBACK}:{broker}",
        ports=[broker],
        first=partial(_format, data, properties),
    )


def java(main: str, *args: str, options: list[str] | None = None) -> list[str]:
    """Returns the command that runs a class of Kafka's."""
    log4j = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
    return ["java", *(options or []), log4j, "-cp", f"{jars()}/*", main, *args]


def _format(data: Path, properties: Path) -> None:
    """Makes the directory Kafka's, as its quick start says."""
    if (data / "meta.properties").exists():
        return
    storage_tool = java("kafka.tools.StorageTool")
    made = _run([*storage_tool, "random-uuid"])
    cluster = made.split()[-1]
    command = [*storage_tool, "format", "--standalone", "-t", cluster, "-c", str(properties)]
    _run(command)


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=FORMAT_S)
    return done.stdout


def missing() -> list[Missing]:
    """Returns what is not installed."""
    broker = [] if has_jars() else [Missing("Kafka's jars", SETUP)]
    java = missing_programs("java", how="apt install openjdk-17-jre-headless")
    return [*broker, *java, *missing_packages("confluent-kafka")]


def versions() -> dict[str, str]:
    """Returns the versions of the broker and the client."""
    (jar,) = jars().glob("kafka_2.13-*.jar")
    return {"Apache Kafka": jar.stem.partition("-")[2], **package_versions("confluent-kafka")}


SYSTEM = System(
    name="kafka",
    title="Apache Kafka",
    client_module="bench.peers.kafka.client",
    answers={
        Level.SYNCED: "acks=all, a topic of flush.messages=1: fsync of the log before each answer",
        Level.WRITTEN: "acks=all: in the page cache, and no fsync until the system does one",
    },
    abilities=frozenset(Ability),
    is_level_of_topic=True,
    has_owners=True,
    is_blind_faster=True,
    join_s=2.0,
    server=server,
    missing=missing,
    versions=versions,
    tool=KafkaTool(java),
)
