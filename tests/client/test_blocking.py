"""The client without an event loop, against a broker in a process of its own."""

import threading
from collections.abc import Iterator

import pytest

from logbroker.client.blocking import BlockingClient
from logbroker.errors import InvalidError, NotFoundError, PreconditionError
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker.address


@pytest.fixture
def topic(address: str, request: pytest.FixtureRequest) -> str:
    name = request.node.name[:150].replace("[", "-").replace("]", "")
    with BlockingClient(address) as client:
        client.admin.create_topic(name, 2)
    return name


def test_every_verb_of_admin_works(address, topic):
    with BlockingClient(address) as client:
        admin = client.admin
        assert topic in [found.topic for found in admin.list_topics()]
        assert admin.grow_topic(topic, 3).topic.partition_count == 3
        described = admin.get_topic(topic)
        assert len(described.partitions) == 3
        assert admin.update_topic(topic, described.topic.settings).topic == topic
        assert admin.trim_topic(topic, 0, 0) == 0
        assert admin.get_broker().limits.record_bytes == 1 << 20
        assert admin.get_stats()["partition_count"] >= 3
        assert client.find_offset(topic, 0, 0) is None
        admin.delete_topic(topic)
        with pytest.raises(NotFoundError):
            admin.get_topic(topic)


def test_records_of_many_threads_arrive_once_and_in_the_order_of_each(address, topic):
    with BlockingClient(address) as client, client.producer(topic) as producer:

        def send(name: int) -> None:
            receipts = [
                producer.send(b"%d" % number, b"%d" % name, partition=0) for number in range(500)
            ]
            offsets = [receipt.result().offset for receipt in receipts]
            assert offsets == sorted(offsets)

        threads = [threading.Thread(target=send, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found: dict[bytes | None, list[int]] = {}
        with client.reader(topic) as reader:
            for record in reader:
                found.setdefault(record.key, []).append(int(record.value or b""))
        assert found == {b"%d" % name: list(range(500)) for name in range(4)}


def test_publish_and_columns_follow_what_was_sent_before(address, topic):
    with BlockingClient(address) as client, client.producer(topic) as producer:
        producer.send(b"1", partition=0)
        assert producer.publish(b"2", partition=0).offset == 1
        producer.send(b"3", partition=0)
        (receipt,) = producer.send_many([b"4", b"5"], partition=0)
        assert (receipt.base_offset, receipt.record_count) == (3, 2)
        with client.reader(topic, partition=0, start=1) as reader:
            assert next(reader).value == b"2"
            assert reader.position(0) == 2
            batches = [list(batch.values) for batch in reader.batches()]
        assert [value for batch in batches for value in batch] == [b"3", b"4", b"5"]


def test_errors_come_from_results_and_what_nobody_saw_from_flush(address, topic):
    with BlockingClient(address) as client:
        producer = client.producer(topic)
        with pytest.raises(InvalidError):
            producer.send("text")
        receipt = producer.send(b"v" * (1 << 21))
        with pytest.raises(InvalidError) as caught:
            receipt.result()
        assert caught.value.reason == "RECORD_TOO_LARGE"
        assert receipt.done()
        producer.flush()
        producer.send(b"v" * (1 << 21))
        with pytest.raises(InvalidError):
            producer.flush()
        producer.flush()
        producer.close()
        with pytest.raises(PreconditionError):
            producer.send(b"v")


def test_poll_waits_no_longer_than_it_is_told(address, topic):
    with (
        BlockingClient(address) as client,
        client.reader(topic, follow=True) as reader,
        client.producer(topic) as producer,
    ):
        assert reader.poll(20) is None
        producer.publish(b"v")
        record = reader.poll(10_000)
        assert record is not None
        assert record.value == b"v"


def test_a_closed_client_refuses(address):
    client = BlockingClient(address)
    client.close()
    client.close()
    with pytest.raises(PreconditionError):
        client.admin.list_topics()
    with pytest.raises(PreconditionError):
        client.producer("t")
