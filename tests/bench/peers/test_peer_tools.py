"""What the others' load tools print, read. The texts are theirs, as they came."""

import pytest

from bench.peers.kafka.tool import rate_of_consumer, rate_of_producer
from bench.peers.nats.tool import rate_of as rate_of_nats
from bench.peers.redis.tool import rate_of as rate_of_redis

PRODUCER = """\
Warmup first 2000 records. Steady state results will print after the complete test summary.
4000 records sent, 2679.169457 records/sec (0.26 MB/sec), 93.70 ms avg latency, 1302.00 ms max \
latency, 72 ms 50th, 172 ms 95th, 197 ms 99th, 205 ms 99.9th.
2000 steady state records sent, 11695.906433 records/sec (1.12 MB/sec), 51.63 ms avg latency, \
72.00 ms max latency, 51 ms 50th, 72 ms 95th, 72 ms 99th, 72 ms 99.9th.
"""
CONSUMER = """\
start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-29 21:30:49:382, 2026-11-29 21:30:50:797, 0.1907, 0.1348, 2000, 1413.4276, 1193, 222, \
0.8592, 9009.0090
"""
NATS = """

NATS JetStream asynchronous publisher stats: 55,951 msgs/sec ~ 5.3 MiB/sec ~ min: 16,404.03us \
~ avg: 17,629.88us ~ max: 18,855.74us ~ P50: 16,404.03us ~ P90: 18,855.74us
"""
REDIS = (
    " \nXADD t:0 * k key-000000 v xxx: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\n"
    "                            \nXADD t:0 * k key-000000 v xxx: 166666.67 requests per second, "
    "p50=0.279 msec\n"
)


def test_the_producer_of_kafka_is_measured_behind_its_warm_up() -> None:
    assert rate_of_producer(PRODUCER) == pytest.approx(11695.9, abs=0.1)


def test_the_consumer_of_kafka_is_measured_without_the_time_it_took_to_join() -> None:
    assert rate_of_consumer(CONSUMER) == pytest.approx(9009.0, abs=0.1)


def test_the_bench_of_nats_has_commas_in_its_numbers() -> None:
    assert rate_of_nats(NATS) == 55_951


def test_the_benchmark_of_redis_says_its_rate_last() -> None:
    assert rate_of_redis(REDIS) == pytest.approx(166_666.67)


@pytest.mark.parametrize("read", [rate_of_producer, rate_of_consumer, rate_of_nats, rate_of_redis])
def test_an_output_without_a_rate_is_an_error_and_no_zero(read) -> None:
    with pytest.raises((IndexError, ValueError)):
        read("could not connect")
