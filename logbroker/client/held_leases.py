"""The leases a member holds: what it was delivered and has not settled or lost."""

from collections.abc import Callable, Iterable, Sequence

from logbroker.client.audience import Audience, TopicPartition
from logbroker.client.delivered import DeliveredBatch
from logbroker.client.lease import Lease
from logbroker.client.record_batch import RecordBatch, check_records
from logbroker.errors import DataLossError
from logbroker.record.batch import Batch
from logbroker.v1 import consume_service_pb2 as pb

LARGE_BYTES = 64 << 10
"""Behind batches of this size acknowledgements do not gather: few come in that time."""

PassDamage = Callable[[Lease, int, DataLossError], None]
"""Gives up a batch that cannot be read: its lease, its first offset, why."""


class HeldLeases:
    """Hands on what is delivered, and hears what is taken back."""

    def __init__(self, audience: Audience) -> None:
        self.by_token: dict[int, Lease] = {}
        self.caught_up: set[TopicPartition] = set()
        """Partitions of which all there was has been delivered, last we heard."""
        self.delivered_count = 0
        self.lost_count = 0
        """Records taken back before they were answered."""
        self.is_urgent = False
        """What came last is large, or came before: then the broker may have to wait for us."""
        self._audience = audience

    def take(
        self, delivery: pb.Delivery, batches: Sequence[Batch], pass_damage: PassDamage
    ) -> None:
        """Takes a delivery, and hands its batches on."""
        runs = list(delivery.ranges)
        ranges = [(one.first_offset, one.end_offset) for one in runs]
        lease = Lease(
            delivery.token,
            delivery.topic,
            delivery.topic_id,
            delivery.partition,
            ranges,
            dead_letter_topic=delivery.dead_letter_topic,
        )
        self.by_token[lease.token] = lease
        self.delivered_count += lease.held.count
        # Of suspects the next one comes only when this one is settled.
        self.is_urgent = max([run.delivery_number for run in runs], default=1) > 1
        self.reopen(lease)
        for batch in batches:
            try:
                check_records(batch)
                first, end = batch.header.base_offset, batch.header.next_offset
                own = lease.held.within(first, end)
                if not own:
                    continue
                read = RecordBatch(batch, lease.partition, own[0][0], own[-1][1])
                read.columns()
            except DataLossError as error:
                pass_damage(lease, batch.header.base_offset, error)
                continue
            inside = runs
            if len(runs) > 1:
                inside = [one for one in runs if one.first_offset < end and one.end_offset > first]
            self.is_urgent |= batch.header.size_bytes >= LARGE_BYTES
            self._audience.take(DeliveredBatch(lease, read, inside))

    def take_back(self, taken_back: Iterable[pb.TakenBack]) -> None:
        """Hears of leases that are over without an answer."""
        for one in taken_back:
            if lease := self.by_token.get(one.token):
                self.lost_count += lease.lose(one.first_offset, one.end_offset)
                self.reopen(lease)
        self.forget_settled()
        self._audience.drop()

    def reopen(self, lease: Lease) -> None:
        """Hears of what may come again, or has come: the broker tells when that is all, again."""
        self.caught_up.discard(TopicPartition(lease.topic, lease.partition))

    def forget_settled(self) -> None:
        """Drops leases of which nothing is open."""
        for token in [token for token, lease in self.by_token.items() if not lease.is_open]:
            del self.by_token[token]

    def lose_all(self) -> None:
        """Gives up all of them: the stream they came by is gone."""
        for lease in self.by_token.values():
            lease.is_gone = True
            self.lost_count += lease.lose_all()
        self.by_token.clear()
        self.caught_up = set()

    def forked(self) -> None:
        """Gives up all of them, uncounted: this is a child process, its parent is the member."""
        for lease in self.by_token.values():
            lease.is_gone = True
            lease.lose_all()
