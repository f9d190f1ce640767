"""What a run has written, what of it can be read, and whether a delivery is that."""

from collections import Counter, defaultdict
from typing import Any

from logbroker.broker.leasing import Delivery
from logbroker.group.dead_letter import dead_letter_of
from logbroker.record.batch import Batch
from logbroker.record.columns import decode_records

from .brokers import batch_of, records_of
from .driven_broker import DrivenBroker
from .shadow import Shadow


class Written:
    """The records of one topic, and of one dead-letter topic."""

    def __init__(self, source: str, dead: str) -> None:
        self._source = source
        self._dead = dead
        self._records: dict[tuple[int, int], tuple[bytes | None, bytes]] = {}
        """Key and value, by partition and offset; also of what a crash may have taken."""
        self._ends: Counter[int] = Counter()
        self._letters: dict[int, list[int]] = defaultdict(list)
        """By partition, the sources of the dead letters in its dead-letter topic."""

    async def publish(self, driven: DrivenBroker, number: int, keys: list[bytes | None]) -> None:
        """Writes records with these keys to a partition."""
        first = self._ends[number]
        values = [b"%d/%d" % (number, first + at) for at in range(len(keys))]
        for at, record in enumerate(zip(keys, values, strict=True), first):
            self._records[number, at] = record
        batch = batch_of(*values, keys=keys)
        receipt = await driven.drive(driven.broker.produce(self._source, "", number, batch))
        assert receipt.base_offset == first

    def see(self, broker: Any, shadow: Shadow, number: int) -> None:
        """Takes in what can be read now; what a crash took was never promised."""
        partition = broker.get_topic(self._source).partition(number)
        bounds = broker._partitions.get(partition).log.bounds()
        known = len(shadow.model.entries)
        assert bounds.high_watermark >= known, "an acknowledged record is lost"
        shadow.write([self._records[number, at][0] for at in range(known, bounds.high_watermark)])
        self._ends[number] = bounds.high_watermark

    async def read_letters(self, broker: Any, shadow: Shadow, number: int) -> None:
        """Takes in the dead letters that can be read now."""
        known = self._letters[number]
        for record in await records_of(broker, self._dead, number, start=len(known)):
            source = dead_letter_of(record.headers).offset
            assert (record.key, record.value) == self._records[number, source]
            known.append(source)
            shadow.write([record.key])

    def copies(self) -> Counter[tuple[int, int]]:
        """Returns how many dead letters there are of each record that has any."""
        return Counter(
            (number, source) for number, sources in self._letters.items() for source in sources
        )

    def check(self, broker: Any, delivery: Delivery, place: tuple[str, int]) -> list[int]:
        """Returns the offsets in a delivery; AssertionError for records that are others."""
        topic, number = place
        seed = broker.get_topic(topic).partition(number).seed
        at, offsets = 0, []
        while at < len(delivery.batches):
            batch = Batch.decode(delivery.batches, seed, at)
            at += batch.header.size_bytes
            for record in decode_records(batch):
                is_own = topic == self._source
                source = record.offset if is_own else self._letters[number][record.offset]
                assert (record.key, record.value) == self._records[number, source]
                offsets.append(record.offset)
        return offsets
