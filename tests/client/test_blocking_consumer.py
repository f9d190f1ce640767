"""Consumers and workers without an event loop, against a broker in a process of its own."""

import threading
from collections.abc import Iterator

import pytest

from logbroker.client.blocking import BlockingClient
from logbroker.errors import ConflictError
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings
from logbroker.testing.running_broker import BrokerProcess

pytestmark = pytest.mark.slow

FAST = GroupSettings(retry=RetryPolicy(initial_ms=1, max_ms=1))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("broker") / "data") as broker:
        yield broker.address


@pytest.fixture
def client(address: str) -> Iterator[BlockingClient]:
    with BlockingClient(address) as client:
        yield client


@pytest.fixture
def topic(client: BlockingClient, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)[:80]
    client.admin.create_topic(name)
    with client.producer(name) as producer:
        producer.send_many([b"%d" % number for number in range(100)])
    return name


def test_a_loop_gets_every_record_and_settles_it(client, topic):
    with client.consumer("all", topic, follow=False) as consumer:
        assert [record.offset for record in consumer] == list(range(100))
    (progress,) = client.admin.get_offsets("all", topic)
    assert (progress.committed_offset, progress.lag) == (100, 0)
    assert client.admin.get_group("all").lag == 0


def test_a_loop_that_is_left_settles_what_was_done_and_no_more(client, topic):
    with client.consumer("left", topic) as consumer:
        for record in consumer:
            if record.offset == 10:
                break
        assert consumer.positions() == {(topic, 0): 11}
        assert consumer.assignment == ((topic, 0),)
    (progress,) = client.admin.get_offsets("left", topic)
    assert progress.committed_offset == 10


def test_answers_are_given_from_any_thread_and_their_result_is_known(client, topic):
    options = {"auto_settle": False, "order": "none", "settings": None}
    with client.consumer("hands", topic, **options) as consumer:
        records = [next(consumer) for _ in range(100)]
        results = []

        def settle(mine):
            results.extend(consumer.acknowledge(record) for record in mine)

        threads = [threading.Thread(target=settle, args=[records[at::4]]) for at in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for result in results:
            result.result(10_000)
        assert all(result.done() and result.error() is None for result in results)
        assert consumer.stats().settled_count == 100
        assert consumer.committed_offsets() == {(topic, 0): 100}
        assert consumer.poll(1) is None
        with pytest.raises(ConflictError):
            consumer.release(records[0]).result(10_000)


def test_in_partition_order_nothing_behind_a_retry_comes_before_it(client, topic):
    with client.consumer("order", topic, follow=False, settings=FAST) as consumer:
        seen = []
        for record in consumer:
            seen.append(record.offset)
            if record.offset == 50 and record.failures == 0:
                consumer.retry(record, 0)
    assert seen == [*range(51), *range(50, 100)]


def test_batches_and_commit_and_flow(client, topic):
    with client.consumer("batches", topic, auto_settle=False) as consumer:
        batch = next(consumer.batches())
        assert len(batch) == 100
        consumer.pause(topic, 0)
        consumer.resume(topic, 0)
        consumer.set_limits(10, 1_000)
        consumer.commit()
        consumer.flush()
    (progress,) = client.admin.get_offsets("batches", topic)
    assert progress.committed_offset == 100


def test_a_worker_runs_handlers_in_threads_until_it_is_stopped(client, topic):
    seen, threads, is_done = [], set(), threading.Event()

    @client.handles("worker", topic, concurrency=3, order="none")
    def handle(record):
        threads.add(threading.current_thread().name)
        seen.append(record.offset)
        if len(seen) == 100:
            is_done.set()

    with handle:
        assert is_done.wait(20)
    assert sorted(seen) == list(range(100))
    assert threads
    assert handle.stats().done_count == 100
    (progress,) = client.admin.get_offsets("worker", topic)
    assert progress.lag == 0


def test_a_worker_can_be_run_and_stopped_by_its_own_handler(client, topic):
    def handle(record):
        if record.offset == 5:
            worker.stop()

    worker = client.worker("stop", topic, handle, concurrency=1)
    worker.run()
    (progress,) = client.admin.get_offsets("stop", topic)
    assert 6 <= progress.committed_offset < 100
    assert progress.leased_count == 0
