"""C14: a time leads to the first offset, in log order, with a stamp that late; or to none."""

from collections.abc import Sequence
from itertools import combinations, pairwise
from pathlib import Path
from random import Random

import grpc
import pytest

from cases.commands import output_of
from cases.data_dirs import copy_of, files, open_log
from cases.effort import effort
from logbroker.client import Client
from logbroker.record.columns import Columns, encode_batch
from logbroker.record.compression import Codec
from logbroker.testing.running_broker import BrokerProcess
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FindOffsetRequest
from logbroker.v1.fetch_service_pb2_grpc import FetchServiceStub

STAMPS_MS = [100, 50, 200, 150, 120, 90, 300]
CUT = [4, 5]
"""Where the batches of the case end."""
ANSWERS = {0: 0, 50: 0, 101: 2, 151: 2, 201: 6, 301: None}
SMALL, LARGE = 10, 5_000
"""Bytes of a value; with the large ones each batch has a segment to itself."""


def _batches(ends: Sequence[int]) -> list[list[int]]:
    return [STAMPS_MS[start:end] for start, end in pairwise([0, *ends, len(STAMPS_MS)])]


ALL_CUTS = [list(ends) for size in range(7) for ends in combinations(range(1, 7), size)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_c14_every_cut_into_batches_and_segments_gives_the_same_answers(tmp_path, size):
    for number, ends in enumerate(effort([*ALL_CUTS[::7], CUT], ALL_CUTS)):
        data_dir = tmp_path / str(number)
        async with open_log(data_dir, segment_bytes=4 << 10) as log:
            for stamps in _batches(ends):
                columns = Columns([b"v" * size] * len(stamps), timestamps_ms=stamps)
                await log.append(encode_batch(columns, now_ms=0))
            await _check(log)
            copy_of(data_dir, tmp_path / "killed")
        assert len(files(data_dir, "orders")) == (len(ends) + 1 if size == LARGE else 1)
        async with open_log(data_dir, segment_bytes=4 << 10) as log:
            await _check(log)
        for path in data_dir.rglob("*index"):
            path.unlink()
        for place in (data_dir, tmp_path / "killed"):
            async with open_log(place, segment_bytes=4 << 10) as log:
                await _check(log)


async def _check(log) -> None:
    assert {target: await log.find(target) for target in ANSWERS} == ANSWERS


@pytest.mark.slow
async def test_c14_any_stamps_in_any_batches_are_found_as_a_walk_through_them_would(tmp_path):
    for seed in range(effort(15, 200)):
        random = Random(seed)
        data_dir, all_stamps = tmp_path / str(seed), []
        async with open_log(data_dir, segment_bytes=4 << 10) as log:
            for _ in range(random.randrange(1, 60)):
                count, around = random.randrange(1, 20), random.randrange(1_000)
                stamps = [around + random.randrange(-200, 200) for _ in range(count)]
                columns = Columns([random.randbytes(40)] * count, timestamps_ms=stamps)
                codec = random.choice(list(Codec))
                appended = log.append(encode_batch(columns, now_ms=0, codec=codec))
                all_stamps += stamps
            await appended
            await _check_walk(log, all_stamps, random)
            start = random.randrange(len(all_stamps))
            await log.trim(start)
            await _check_walk(log, all_stamps, random, start)
        for path in random.sample(list(data_dir.rglob("*index")), k=2):
            path.unlink()
        async with open_log(data_dir) as log:
            await _check_walk(log, all_stamps, random, start)


async def _check_walk(log, stamps: list[int], random: Random, start: int = 0) -> None:
    for target in [*random.sample(range(-300, 1_300), k=20), max(stamps), max(stamps) + 1]:
        found = (at for at in range(start, len(stamps)) if stamps[at] >= target)
        assert await log.find(target) == next(found, None)


@pytest.mark.slow
async def test_c14_a_broker_gives_these_answers_and_none_is_one_of_them(tmp_path: Path):
    with BrokerProcess(tmp_path / "data") as broker:
        async with Client(broker.address) as client:
            await client.admin.create_topic("empty")
            for name, size in (("orders", SMALL), ("rolled", LARGE)):
                settings = TopicSettings(segment_bytes=4 << 10)
                await client.admin.create_topic(name, settings=settings)
                async with client.producer(name) as producer:
                    for stamps in _batches(CUT):
                        values = [b"v" * size] * len(stamps)
                        await producer.send_many(values, timestamps_ms=stamps, partition=0)
            for start in range(3):
                for name in ("orders", "rolled"):
                    found = {at: await client.find_offset(name, 0, at) for at in ANSWERS}
                    assert found == ANSWERS, f"at start {start}"
                assert await client.find_offset("empty", 0, 0) is None
                await _check_absent(broker.address)
                assert broker.stop() == 0
                if start == 1:
                    for path in broker.data_dir.rglob("*index"):
                        path.unlink()
                broker.start()
            # reading from or up to a time agrees with it
            fetch = ["fetch", "orders", "--format", r"{offset} "]
            for option, target, expected in (
                ("--from", 151, [2, 3, 4, 5, 6]),
                ("--from", 301, []),
                ("--until", 151, [0, 1]),
                ("--until", 301, list(range(7))),
            ):
                printed = output_of(*fetch, option, f"@{target}", server=broker.address)
                assert [int(offset) for offset in printed.split()] == expected


async def _check_absent(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        request = FindOffsetRequest(topic="orders", timestamp_ms=301)
        answer = await FetchServiceStub(channel).FindOffset(request)
        assert not answer.HasField("offset")
