"""Apache Kafka through confluent-kafka, librdkafka's client for Python.

Its calls block, and this process has nothing else to do meanwhile, so they block the event
loop. Consumers are polled in threads of their own.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bench.peers.system import Level, Sending, Take
from bench.peers.threads import done_within, polled
from bench.records import Records

TOPIC_CONFIG = {Level.SYNCED: {"flush.messages": "1"}, Level.WRITTEN: {}}
THROUGHPUT = {
    "linger.ms": 5,
    "batch.num.messages": 10_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1 << 20,
}
OPTIONS = {
    Sending.FASTEST: THROUGHPUT,
    Sending.EACH: THROUGHPUT,
    Sending.PROMPT: {**THROUGHPUT, "linger.ms": 0},
    # What comes while five requests are under way goes together, instead of one by one.
    Sending.PACED: {**THROUGHPUT, "linger.ms": 1, "max.in.flight.requests.per.connection": 5},
}
READING = {
    "queued.min.messages": 1_000_000,
    "queued.max.messages.kbytes": 1 << 20,
    "fetch.message.max.bytes": 8 << 20,
}
POLLED = 10_000
POLL_S = 0.1
FLUSH_S = 0.05
ANSWER_S = 60
SETTLED_S = 10.0
CLOSE_S = 5.0
"""A share consumer may hang in `close`, when it has done all that it is measured by."""


async def connect(address: str, level: Level) -> "Connection":
    """Returns a client of that server."""
    return Connection({"bootstrap.servers": address, "log_level": 2}, level)


class Connection:
    """What the clients of one measurement have in common."""

    def __init__(self, servers: dict[str, Any], level: Level) -> None:
        self._servers = servers
        self._level = level
        self._admin = AdminClient(servers)

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a topic; returns when its partitions can be written."""
        new = NewTopic(topic, partition_count, 1, config=TOPIC_CONFIG[self._level])
        self._admin.create_topics([new])[topic].result(ANSWER_S)
        while True:
            found = self._admin.list_topics(topic, ANSWER_S).topics[topic]
            leaders = [partition.leader for partition in found.partitions.values()]
            if len(leaders) == partition_count and min(leaders) >= 0:
                return
            await asyncio.sleep(0.05)

    async def delete_topic(self, topic: str) -> None:
        """Removes a topic."""
        self._admin.delete_topics([topic])[topic].result(ANSWER_S)

    @asynccontextmanager
    async def sender(self, topic: str, sending: Sending) -> "AsyncIterator[Sender]":
        """Returns a publisher."""
        producer = Producer({**self._servers, **OPTIONS[sending]})
        sender = Sender(producer, topic, sending)
        yield sender
        await sender.flush()

    async def replay(self, topic: str, count: int, _: str) -> int:
        """Reads so many records from the start of all partitions."""
        consumer = Consumer({**self._servers, **READING, "group.id": "replay"})
        partitions = self._admin.list_topics(topic, ANSWER_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        size = found = 0
        while found < count:
            messages = consumer.consume(min(POLLED, count - found), ANSWER_S)
            assert messages, f"{found} of {count} records"
            size += sum([len(message.value()) for message in messages])
            found += len(messages)
        consumer.close()
        return size

    @asynccontextmanager
    async def consume(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as a member of a consumer group, offsets committed in the background."""
        options = {"group.id": group, "auto.offset.reset": "earliest", "group.protocol": "consumer"}
        consumer = Consumer({**self._servers, **options})
        consumer.subscribe([topic])

        def poll() -> None:
            first = consumer.poll(POLL_S)
            if first:
                take(_value(first))
                for message in consumer.consume(POLLED, 0):  # what else is there already
                    take(_value(message))

        async with polled(poll):
            yield
        await asyncio.to_thread(consumer.close)

    @asynccontextmanager
    async def work(self, topic: str, group: str, take: Take) -> AsyncIterator[None]:
        """Reads as a member of a share group, and acknowledges each record."""
        self._start_at_the_earliest(group)
        options = {"group.id": group, "share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer({**self._servers, **options})
        refused: list[Exception] = []
        consumer.set_acknowledgement_commit_callback(
            lambda _, error: refused.append(error) if error else None
        )
        consumer.subscribe([topic])

        def poll() -> None:
            messages = consumer.poll(POLL_S)
            for message in messages:
                take(_value(message))
                consumer.acknowledge(message)
            if messages:
                consumer.commit_async()
            if refused:
                raise refused[0]

        async with polled(poll):
            yield
        settled = await asyncio.to_thread(consumer.commit_sync, SETTLED_S)
        refused += [error for error in settled.values() if error]
        if refused:
            raise refused[0]
        await asyncio.to_thread(done_within, CLOSE_S, consumer.close)

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Cannot tell: the client has no call for the offsets of a share group."""
        return None

    async def close(self) -> None:
        """Has nothing to do: every client here ends with what it was for."""

    def _start_at_the_earliest(self, group: str) -> None:
        entry = ConfigEntry(
            "share.auto.offset.reset",
            "earliest",
            incremental_operation=AlterConfigOpType.SET,
        )
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([resource]).values():
            future.result(ANSWER_S)


class Sender:
    """A producer of one topic."""

    def __init__(self, producer: Producer, topic: str, sending: Sending) -> None:
        self._producer = producer
        self._topic = topic
        self._report = self._note if sending is not Sending.FASTEST else None
        self._reported = self._sent = 0
        self._error: KafkaError | None = None

    async def send(self, records: Records) -> None:
        """Takes records: one call each, as the client's documentation has it."""
        produce, topic, report = self._producer.produce, self._topic, self._report
        for value, key in zip(records.values, records.keys, strict=True):
            while True:
                try:
                    produce(topic, value, key, on_delivery=report)
                    break
                except BufferError:
                    self._producer.poll(POLL_S)
        self._sent += len(records.values)
        self._producer.poll(0)

    async def flush(self) -> None:
        """Returns when all are answered."""
        end = perf_counter() + ANSWER_S
        while left := self._producer.flush(FLUSH_S):
            if perf_counter() > end:
                raise TimeoutError(f"{left} records without an answer")
            await asyncio.sleep(0)  # whoever gave it a time may cancel it here
        if self._error:
            raise KafkaException(self._error)
        assert not self._report or self._reported == self._sent

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes one, and polls until it is reported."""
        self._sent += 1
        self._producer.produce(self._topic, value, key, on_delivery=self._note)
        while self._reported < self._sent:
            self._producer.poll(ANSWER_S)
        if self._error:
            raise KafkaException(self._error)

    def _note(self, error: KafkaError | None, _: Any) -> None:
        self._reported += 1
        self._error = self._error or error


def _value(message: Any) -> bytes:
    if message.error():
        raise KafkaException(message.error())
    value: bytes = message.value()
    return value
