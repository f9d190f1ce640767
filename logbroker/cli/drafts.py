"""Input lines as columns of records, ready to be sent in bulk. Pure."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from logbroker.cli.lines import Block
from logbroker.cli.record_json import RecordDraft, draft_of_json
from logbroker.record.record import Header


class Drafts(NamedTuple):
    """The records of consecutive lines, all of one partition or all without one."""

    line_numbers: range | list[int]
    values: list[bytes | None]
    keys: list[bytes | None] | None = None
    headers: list[tuple[Header, ...]] | None = None
    timestamps_ms: list[int] | None = None
    partition: int | None = None


class BadLine(NamedTuple):
    """What is wrong with a line."""

    line_number: int
    why: str


ParseBlock = Callable[[Block, int], tuple[list[Drafts], BadLine | None]]
"""A block, and now in ms: the records before the first bad line, and that line."""


def values_of(key: bytes | None, headers: tuple[Header, ...]) -> ParseBlock:
    """Returns the rule by which each line is a value. All have this key and these headers."""

    def parse(block: Block, now_ms: int) -> tuple[list[Drafts], BadLine | None]:
        count = len(block.lines)
        keys: list[bytes | None] | None = [key] * count if key is not None else None
        rows = [headers] * count if headers else None
        numbers = range(block.first, block.first + count)
        return [Drafts(numbers, list(block.lines), keys, rows)], None

    return parse


def keys_and_values_of(separator: bytes, headers: tuple[Header, ...]) -> ParseBlock:
    """Returns the rule by which a line is a key, the separator, a value."""

    def parse(block: Block, now_ms: int) -> tuple[list[Drafts], BadLine | None]:
        pairs, bad = [], None
        for number, line in enumerate(block.lines, block.first):
            key, found, value = line.partition(separator)
            if not found:
                bad = BadLine(number, f"no key separator {separator.decode(errors='replace')!r}")
                break
            pairs.append((key, value))
        numbers = range(block.first, block.first + len(pairs))
        values: list[bytes | None] = [value for _, value in pairs]
        keys: list[bytes | None] = [key for key, _ in pairs]
        return [Drafts(numbers, values, keys, [headers] * len(pairs) if headers else None)], bad

    return parse


def json_of(*, ignore_partition: bool) -> ParseBlock:
    """Returns the rule by which a line is a record as JSON. Lines of blanks are passed over."""

    def parse(block: Block, now_ms: int) -> tuple[list[Drafts], BadLine | None]:
        numbered, bad = list[tuple[int, RecordDraft]](), None
        for number, line in enumerate(block.lines, block.first):
            if not line.strip():
                continue
            try:
                draft = draft_of_json(line)
            except ValueError as error:
                bad = BadLine(number, str(error))
                break
            numbered.append((number, draft._replace(partition=None) if ignore_partition else draft))
        return [_columns(run, now_ms) for run in _runs(numbered)], bad

    return parse


def _runs(numbered: list[tuple[int, RecordDraft]]) -> Iterable[list[tuple[int, RecordDraft]]]:
    """Returns runs of one partition each; within a partition the order stays.

    Where a record's partition depends on its key, it must not overtake, nor be overtaken
    by, one that names its partition: then a run ends wherever the partition changes.
    """
    if all(draft.partition is not None for _, draft in numbered):
        by_partition: dict[int | None, list[tuple[int, RecordDraft]]] = {}
        for row in numbered:
            by_partition.setdefault(row[1].partition, []).append(row)
        return by_partition.values()
    runs: list[list[tuple[int, RecordDraft]]] = []
    for row in numbered:
        if not runs or runs[-1][-1][1].partition != row[1].partition:
            runs.append([])
        runs[-1].append(row)
    return runs


def _columns(run: list[tuple[int, RecordDraft]], now_ms: int) -> Drafts:
    drafts = [draft for _, draft in run]
    has_timestamps = any(draft.timestamp_ms is not None for draft in drafts)
    return Drafts(
        [number for number, _ in run],
        [draft.value for draft in drafts],
        [draft.key for draft in drafts] if any(each.key is not None for each in drafts) else None,
        [draft.headers for draft in drafts] if any(each.headers for each in drafts) else None,
        [now_ms if each.timestamp_ms is None else each.timestamp_ms for each in drafts]
        if has_timestamps
        else None,
        drafts[0].partition,
    )
