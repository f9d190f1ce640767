"""Bits that change on the disk, where there are good bytes behind them.

A flipped bit in the last batch of a log cannot be told from a write that was torn, so none is
flipped there; nor in checkpoints and journals, without which a topic waits for its operator.
"""

from random import Random

from history.events import Place

from logbroker.record.partition_id import PartitionId
from logbroker.storage.file import paths
from logbroker.storage.file.recovery import scan
from logbroker.storage.file.walk import Walked

from .platter import File, Platter


def flip(platter: Platter, random: Random, topics: dict[str, str]) -> list[Place]:
    """Flips a bit of some segment of these topics; returns the records whose batch that was.

    `topics`: their ids by name.
    """
    files = [
        (path, file)
        for path, file in platter.files()
        if path.endswith(".log") and path.split("/")[3] in topics and file.durable
    ]
    if not files:
        return []
    path, file = random.choice(files)
    _, _, _, topic, number, name = path.split("/")
    partition = PartitionId(topic, topics[topic], int(number))
    batches: list[Walked] = []
    found = scan(
        bytes(file.durable), int(name.removesuffix(".log")), partition.seed, batches.append
    )
    if found.damage or len(batches) < 3:
        return []
    chosen = random.choice(batches[:-2])
    _flip(file, random.randrange(chosen.position, chosen.end), 1 << random.randrange(8))
    return [
        Place(topic, partition.partition, offset)
        for offset in range(chosen.base_offset, chosen.next_offset)
    ]


def flip_index(platter: Platter, random: Random) -> bool:
    """Flips a bit of some index file, which must not matter; returns whether there is one."""
    suffixes = paths.INDEX, paths.TIME_INDEX
    files = [file for path, file in platter.files() if path.endswith(suffixes) and file.durable]
    if not files:
        return False
    file = random.choice(files)
    size = min(len(file.durable), len(file.content))
    if size:
        _flip(file, random.randrange(size), 1 << random.randrange(8))
    return size > 0


def _flip(file: File, position: int, bit: int) -> None:
    file.durable[position] ^= bit
    file.content[position] ^= bit
