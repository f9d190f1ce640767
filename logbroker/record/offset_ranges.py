"""A set of offsets, kept as half-open ranges. Pure.

`edges` ascends strictly: start, end, start, end, ... Ranges never touch. Everything is a
bisection; only what lies within the range that is asked about is looked at.

Many small ranges at a time cost a tenth of as many one by one: the edges of what either of two
sets holds alone are those that either has alone, so sets of Python's do all the work. How
many offsets that leaves tells whether it is their union (they do not meet), or the difference.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice
from operator import lt, sub
from typing import NamedTuple

Range = tuple[int, int]
"""From the first offset up to, and without, the second."""

FEW = 4
"""So many ranges are handled one by one."""
FAR_APART = 16
"""Ranges with more edges than this between them, for each of theirs, are too."""


class OffsetRanges:
    """Offsets, of which many lie side by side."""

    __slots__ = ("count", "edges")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.edges: list[int] = []
        self.count = 0
        """How many offsets there are."""
        if ranges == ():
            return
        given = list(ranges)
        if len(given) == 1:
            self.add(*given[0])
            return
        self.edges = list(chain.from_iterable(given))
        if all(map(lt, self.edges, islice(self.edges, 1, None))):
            self.count = _count(self.edges)
            return
        self.edges = []
        for first, end in given:
            self.add(first, end)

    def add(self, first: int, end: int) -> None:
        """Takes in all offsets from `first` up to `end`."""
        edges = self.edges
        if first >= end:
            return
        if not edges or first > edges[-1]:
            edges += (first, end)
            self.count += end - first
            return
        if first == edges[-1]:
            edges[-1] = end
            self.count += end - first
            return
        start, stop = bisect_left(edges, first), bisect_right(edges, end)
        if start == stop:
            if start % 2 == 0:
                edges[start:start] = (first, end)
                self.count += end - first
            return
        self.count += end - first - self._held(start, stop, first, end)
        edges[start:stop] = _borders(start % 2 == 0, first, stop % 2 == 0, end)

    def remove(self, first: int, end: int) -> None:
        """Drops all offsets from `first` up to `end`, those that are there."""
        edges = self.edges
        if first >= end or not edges:
            return
        if edges[0] == first and end < edges[1]:
            edges[0] = end
            self.count -= end - first
            return
        start, stop = bisect_left(edges, first), bisect_right(edges, end)
        if start == stop:
            if start % 2 == 1:
                edges[start:start] = (first, end)
                self.count -= end - first
            return
        self.count -= self._held(start, stop, first, end)
        edges[start:stop] = _borders(start % 2 == 1, first, stop % 2 == 1, end)

    def add_all(self, ranges: Sequence[Range]) -> list[Range]:
        """Takes in the ranges, which ascend; returns what of them was there before."""
        if len(ranges) == 1 and (not self.edges or ranges[0][0] >= self.edges[-1]):
            self.add(*ranges[0])
            return []
        if len(ranges) > FEW:
            if not self.edges or ranges[0][0] > self.edges[-1]:
                added = OffsetRanges(ranges)
                self.edges += added.edges
                self.count += added.count
                return []
            found = self._apart(ranges)
            if found and found.is_disjoint:
                self.edges[found.start : found.stop] = found.edges
                self.count += found.size
                return []
            if found and found.is_within:
                return list(ranges)
        before: list[Range] = []
        others: list[Range] = []
        for first, end in ranges:
            if self.meets(first, end):
                before += self.within(first, end)
                others += self.gaps(first, end)
            else:
                others.append((first, end))
        if before and len(others) < len(ranges):
            self.add_all(others)
        else:
            for first, end in others:
                self.add(first, end)
        return before

    def remove_all(self, ranges: Sequence[Range]) -> None:
        """Drops all offsets of the ranges, which ascend, those that are there."""
        if len(ranges) > FEW and self.edges:
            found = self._apart(ranges)
            if found and found.is_within:
                self.edges[found.start : found.stop] = found.edges
                self.count -= found.size
                return
            if found and found.is_disjoint:
                return
        for first, end in ranges:
            self.remove(first, end)

    def holds_all(self, ranges: Sequence[Range]) -> bool:
        """Returns whether all offsets of the ranges, which ascend, are there."""
        if len(ranges) > FEW and self.edges and (found := self._apart(ranges)):
            return found.is_within
        return all(self.holds(first, end) for first, end in ranges)

    def clear(self) -> None:
        """Drops all."""
        self.edges.clear()
        self.count = 0

    def drop_below(self, offset: int) -> None:
        """Drops all offsets below this one."""
        if self.edges and self.edges[0] < offset:
            self.remove(self.edges[0], offset)

    def holds(self, first: int, end: int) -> bool:
        """Returns whether all offsets from `first` up to `end` are there."""
        edges = self.edges
        at = bisect_right(edges, first)
        return at % 2 == 1 and end <= edges[at]

    def meets(self, first: int, end: int) -> bool:
        """Returns whether any offset from `first` up to `end` is there."""
        edges = self.edges
        at = bisect_right(edges, first)
        return at % 2 == 1 or (at < len(edges) and edges[at] < end)

    def next_gap(self, offset: int) -> int:
        """Returns the first offset, from `offset` on, that is not there."""
        at = bisect_right(self.edges, offset)
        return self.edges[at] if at % 2 == 1 else offset

    def next_held(self, offset: int, default: int) -> int:
        """Returns the first offset, from `offset` on, that is there; at most `default`."""
        at = bisect_right(self.edges, offset)
        if at % 2 == 1:
            return min(offset, default)
        return min(self.edges[at], default) if at < len(self.edges) else default

    def within(self, first: int, end: int) -> list[Range]:
        """Returns what is there from `first` up to `end`."""
        edges = self.edges
        start, stop = bisect_right(edges, first), bisect_left(edges, end)
        if start == stop:
            return [(first, end)] if start % 2 == 1 and first < end else []
        cut = edges[start:stop]
        if start % 2 == 1:
            cut.insert(0, first)
        if stop % 2 == 1:
            cut.append(end)
        return list(zip(cut[::2], cut[1::2], strict=True)) if first < end else []

    def gaps(self, first: int, end: int) -> list[Range]:
        """Returns what is not there from `first` up to `end`."""
        found = []
        for start, stop in self.within(first, end):
            if first < start:
                found.append((first, start))
            first = stop
        if first < end:
            found.append((first, end))
        return found

    def count_within(self, first: int, end: int) -> int:
        """Returns how many there are from `first` up to `end`."""
        if first >= end:
            return 0
        return self._held(bisect_right(self.edges, first), bisect_left(self.edges, end), first, end)

    def missing(self, offsets: Iterable[int]) -> list[int]:
        """Returns those of the offsets that are not there."""
        edges = self.edges
        return [offset for offset in offsets if not bisect_right(edges, offset) % 2]

    def ranges(self) -> list[Range]:
        """Returns all, ascending."""
        return list(zip(self.edges[::2], self.edges[1::2], strict=True))

    def lowest(self, below: int, max_count: int, max_ranges: int = 1 << 30) -> tuple[Range, ...]:
        """Returns the lowest offsets below this one: at most so many, in so many ranges."""
        most = 2 * min(max_count, max_ranges)
        cut = self.edges[: min(bisect_left(self.edges, below), most)]
        if len(cut) % 2 == 1:
            cut.append(below)
        if _count(cut) > max_count:
            counts = list(accumulate(map(sub, cut[1::2], cut[::2])))
            last = bisect_left(counts, max_count)
            cut[2 * last + 1 :] = [cut[2 * last + 1] - (counts[last] - max_count)]
        return tuple(zip(cut[::2], cut[1::2], strict=True))

    def copy(self) -> "OffsetRanges":
        """Returns a set of its own with the same offsets."""
        made = OffsetRanges()
        made.edges, made.count = self.edges.copy(), self.count
        return made

    @property
    def first(self) -> int:
        """The lowest offset; there must be one."""
        return self.edges[0]

    @property
    def end(self) -> int:
        """One past the highest offset; there must be one."""
        return self.edges[-1]

    def __contains__(self, offset: int) -> bool:
        return bisect_right(self.edges, offset) % 2 == 1

    def __iter__(self) -> Iterator[int]:
        for first, end in self.ranges():
            yield from range(first, end)

    def __bool__(self) -> bool:
        return bool(self.edges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OffsetRanges) and self.edges == other.edges

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"OffsetRanges({self.ranges()})"

    def _apart(self, ranges: Sequence[Range]) -> "Apart | None":
        """Returns what is here, or in the ranges, but not in both; None: handle them one by one."""
        edges = self.edges
        given = list(chain.from_iterable(ranges))
        start, stop = bisect_left(edges, given[0]), bisect_right(edges, given[-1])
        start, stop = start - start % 2, stop + stop % 2
        if stop - start > FAR_APART * len(given):
            return None
        if not all(map(lt, given, islice(given, 1, None))):
            return None
        here = edges[start:stop]
        apart = sorted(set(here).symmetric_difference(given))
        count, before = _count(given), _count(here)
        after = _count(apart)
        return Apart(start, stop, apart, count, after == before + count, after == before - count)

    def _held(self, start: int, stop: int, first: int, end: int) -> int:
        cut = self.edges[start:stop]
        if start % 2 == 1:
            cut.insert(0, first)
        if stop % 2 == 1:
            cut.append(end)
        return sum(cut[1::2]) - sum(cut[::2])


class Apart(NamedTuple):
    """Some of a set's edges, and what stands there instead if ranges are taken in or out."""

    start: int
    stop: int
    edges: list[int]
    size: int
    """How many offsets there are in the ranges."""
    is_disjoint: bool
    is_within: bool


def _count(edges: Sequence[int]) -> int:
    return sum(edges[1::2]) - sum(edges[::2])


def _borders(has_first: bool, first: int, has_end: bool, end: int) -> tuple[int, ...]:
    if has_first:
        return (first, end) if has_end else (first,)
    return (end,) if has_end else ()


def joined(offsets: Iterable[int]) -> list[Range]:
    """Returns ascending offsets as ranges."""
    found: list[Range] = []
    for offset in offsets:
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + 1)
        else:
            found.append((offset, offset + 1))
    return found
