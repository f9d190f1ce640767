"""What a stream carries."""

from logbroker.client.lane import Lane
from logbroker.client.outgoing_batch import OutgoingBatch
from logbroker.client.under_way import UnderWay
from logbroker.record.columns import Columns
from logbroker.record.compression import Codec


def batch_of(size: int) -> OutgoingBatch:
    batch = OutgoingBatch.of_columns(0, Columns([b"v" * size]), size, 0)
    batch.encode(Codec.NONE, 0)
    return batch


def test_a_request_is_under_way_until_its_last_batch_is_answered():
    lane = Lane(0, max_under_way=5, is_idempotent=True)
    first, second, third = (batch_of(size) for size in (10, 20, 30))
    under_way = UnderWay()
    assert under_way.first() is None
    under_way.add_request([(first, lane), (second, lane)])
    under_way.add_request([(third, lane)])
    assert under_way.size_bytes == sum(each.size_bytes for each in (first, second, third))
    assert under_way.pop() == (first, lane)
    assert under_way.request_count == 2
    assert under_way.first() == (second, lane)
    assert under_way.pop() == (second, lane)
    assert (under_way.request_count, under_way.size_bytes) == (1, third.size_bytes)
    under_way.clear()
    assert (under_way.request_count, under_way.size_bytes, under_way.first()) == (0, 0, None)
