"""How fast is a topic read: as batches, and as records?

`raw` is the client's reader giving batches, checksums verified, nothing decoded. `decoded`
is `async for record in reader`. What is read was just written, so it comes from the page
cache.
"""

from time import perf_counter

from bench.lab import WRITTEN, Lab, write
from bench.records import Shape, stored_bytes
from bench.rows import AtLeast, Row
from logbroker.limits import FETCH_BYTES

SHAPES = [Shape(100, 1_000), Shape(1_000, 1_000)]
RAW_GOAL = AtLeast(0.75)
DECODED_GOAL = AtLeast(0.4)


def response_bytes(shape: Shape) -> int:
    """Returns the size of a response: as many whole batches as one carries."""
    return max(1, FETCH_BYTES // stored_bytes(shape)) * stored_bytes(shape)


class Fetch:
    """(c): a topic of one partition, read from its start to its end."""

    title = "Fetch, from the page cache"

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._topics: dict[Shape, str] = {}

    async def prepare(self) -> None:
        """Writes what is read."""
        for shape in SHAPES:
            topic = f"fetch-{shape.record_bytes}"
            await self._lab.client.admin.create_topic(topic, settings=WRITTEN)
            await write(
                self._lab.client, topic, shape, self._lab.scale.fetch_bytes // stored_bytes(shape)
            )
            self._topics[shape] = topic

    async def run_round(self) -> None:
        """Measures the bare limit, and next to it the three ways to read."""
        lab = self._lab
        for shape, topic in self._topics.items():
            size = response_bytes(shape)
            seconds = lab.scale.seconds
            bare, plain = _bare(shape), f"{_bare(shape)}, default malloc"
            lab.samples.add(bare, await lab.bare.pull(size, seconds) * size / 1e6)
            lab.samples.add(plain, await lab.bare_as_it_comes.pull(size, seconds) * size / 1e6)
            rate = await self._read_raw(topic)
            lab.samples.add(_raw(shape), rate * stored_bytes(shape) / shape.record_count / 1e6)
            lab.samples.add(f"{_raw(shape)}, records", rate)
            lab.samples.add(_decoded(shape), await self._read_records(topic))
            lab.samples.add(f"{_decoded(shape)}, by batch", await self._read_lists(topic))

    async def close(self) -> None:
        """Has nothing to let go."""

    def rows(self) -> list[Row]:
        """Returns the rows of each size."""
        rows = []
        for shape in SHAPES:
            bare, raw, decoded = _bare(shape), _raw(shape), _decoded(shape)
            records = f"{raw}, records"
            rows += [
                Row(name=bare, unit="MB/s"),
                Row(name=f"{bare}, default malloc", unit="MB/s", limit=bare),
                Row(name=raw, unit="MB/s", limit=bare, goal=RAW_GOAL),
                Row(name=records, unit="records/s"),
                Row(name=decoded, unit="records/s", limit=records, goal=DECODED_GOAL),
                Row(name=f"{decoded}, by batch", unit="records/s", limit=records),
            ]
        return rows

    async def _read_raw(self, topic: str) -> float:
        begun, count = perf_counter(), 0
        async with self._lab.client.reader(topic) as reader:
            async for batch in reader.batches():
                count += batch.record_count
            return count / (perf_counter() - begun)

    async def _read_lists(self, topic: str) -> float:
        begun, count = perf_counter(), 0
        async with self._lab.client.reader(topic) as reader:
            async for batch in reader.batches():
                for record in batch.records():
                    count += 1
                    assert record.value
            return count / (perf_counter() - begun)

    async def _read_records(self, topic: str) -> float:
        begun, count = perf_counter(), 0
        async with self._lab.client.reader(topic) as reader:
            async for record in reader:
                count += 1
                assert record.value
            return count / (perf_counter() - begun)


def _bare(shape: Shape) -> str:
    return f"bare server stream, {response_bytes(shape) / 1e6:.2f} MB"


def _raw(shape: Shape) -> str:
    return f"raw {shape.record_bytes:,} B"


def _decoded(shape: Shape) -> str:
    return f"decoded {shape.record_bytes:,} B"
