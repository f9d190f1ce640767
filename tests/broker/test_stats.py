"""The stats: what was counted, and how things are."""

from .brokers import batch_of, fetched, topic_on


async def test_the_stats_count_what_was_done():
    async with topic_on(partition_count=3) as broker:
        await broker.clock.advance(1_234)
        batch = batch_of(b"1", b"2", producer_id=7)
        await broker.produce("a", "", 0, batch)
        await broker.produce("a", "", 0, batch)
        await fetched(broker)
        stats = broker.stats(open_stream_count=9)
        assert (stats.uptime_ms, stats.topic_count, stats.partition_count) == (1_234, 1, 3)
        assert (stats.appended_batch_count, stats.appended_record_count) == (1, 2)
        assert stats.duplicate_batch_count == 1
        assert stats.appended_bytes == stats.fetched_bytes == batch.header.size_bytes
        assert (stats.in_flight_bytes, stats.open_stream_count) == (0, 9)
        assert (stats.failed_partition_count, stats.damaged_topics, stats.error_counts) == (
            0,
            (),
            {},
        )


async def test_a_deleted_topic_is_gone_from_the_stats():
    async with topic_on(partition_count=3) as broker:
        await broker.delete_topic("a", "")
        stats = broker.stats()
        assert (stats.topic_count, stats.partition_count) == (0, 0)
