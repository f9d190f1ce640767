"""What a disk holds: what any process sees of it, and what a loss of power leaves.

    content    what processes read: the page cache
    durable    what has been synced
    changes    what was written since, in order; a loss of power keeps any part of it

Names are the same: those of a directory, those that were synced, and changes in between. A
change that moves a name from one directory to another is one change of both.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple


class Write(NamedTuple):
    """Bytes at a position."""

    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Makes the change."""
        if len(content) < self.position:
            content.extend(bytes(self.position - len(content)))
        content[self.position : self.position + len(self.data)] = self.data


class Resize(NamedTuple):
    """A file cut off, or made longer by zeros."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Makes the change."""
        if self.size < len(content):
            del content[self.size :]
        else:
            content.extend(bytes(self.size - len(content)))


class File:
    """A file, whatever its names."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self.changes: list[Write | Resize] = []

    def change(self, change: Write | Resize) -> None:
        """Makes a change that is not synced."""
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        """Makes all changes durable."""
        for change in self.changes:
            change.apply(self.durable)
        self.changes.clear()

    def forget_changes(self, *, is_evicted: bool) -> None:
        """Does what a failed sync does: no later one makes these changes durable."""
        self.changes.clear()
        if is_evicted:
            self.content = bytearray(self.durable)

    def forget_cached(self) -> None:
        """Lets go of what is in memory alone and will never be written."""
        self.content = bytearray(self.durable)
        for change in self.changes:
            change.apply(self.content)

    def lose_power(self, random: Random) -> int:
        """Keeps what is durable, and some of the rest; returns how many bytes are lost."""
        lost = 0
        keeps_order = random.random() < 0.8
        count = random.randint(0, len(self.changes))
        for at, change in enumerate(self.changes):
            is_kept = at < count if keeps_order else random.random() < 0.7
            if isinstance(change, Resize):
                if is_kept:
                    change.apply(self.durable)
                continue
            size = len(change.data)
            if not is_kept:
                is_torn = at == count if keeps_order else random.random() < 0.5
                size = random.randint(0, size) if is_torn else 0
            Write(change.position, change.data[:size]).apply(self.durable)
            lost += len(change.data) - size
        self.changes.clear()
        self.content = bytearray(self.durable)
        return lost


class Directory:
    """A directory and the names in it."""

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node = File | Directory


class Naming(NamedTuple):
    """One change of names: some go, and then perhaps one comes."""

    gone: tuple[Directory, str] | None
    come: tuple[Directory, str, Node] | None

    @property
    def directories(self) -> list[Directory]:
        """Returns whose names change."""
        return [one[0] for one in (self.gone, self.come) if one]

    def apply(self, *, is_durable: bool) -> None:
        """Makes the change."""
        if self.gone:
            directory, name = self.gone
            (directory.durable if is_durable else directory.names).pop(name, None)
        if self.come:
            directory, name, node = self.come
            (directory.durable if is_durable else directory.names)[name] = node


class Platter:
    """All that is there, from the root on. It outlives every process."""

    def __init__(self) -> None:
        self.root = Directory()
        self._changes: list[Naming] = []

    def change(self, naming: Naming) -> None:
        """Changes names; `sync` of a directory makes that durable."""
        naming.apply(is_durable=False)
        self._changes.append(naming)

    def sync(self, directory: Directory) -> None:
        """Makes the names of a directory durable, and what these changes rest on."""
        involved = [directory]
        rest: list[Naming] = []
        due: list[Naming] = []
        for naming in reversed(self._changes):
            if any(one in involved for one in naming.directories):
                involved += naming.directories
                due.append(naming)
            else:
                rest.append(naming)
        for naming in reversed(due):
            naming.apply(is_durable=True)
        self._changes = rest[::-1]

    def lose_power(self, random: Random) -> int:
        """Keeps what is durable, and some of the rest; returns how many bytes are lost."""
        stopped: list[Directory] = []
        for naming in self._changes:
            is_kept = random.random() < 0.6
            if is_kept and not any(one in stopped for one in naming.directories):
                naming.apply(is_durable=True)
            else:
                stopped += naming.directories
        self._changes.clear()
        return _lose_power(self.root, random)

    def files(self) -> Iterator[tuple[str, File]]:
        """Yields all files by their paths, in the order of these."""
        yield from _files(self.root, "")


def _lose_power(directory: Directory, random: Random) -> int:
    lost = 0
    directory.names = dict(directory.durable)
    for name in sorted(directory.names):
        node = directory.names[name]
        if isinstance(node, Directory):
            lost += _lose_power(node, random)
        else:
            lost += node.lose_power(random)
    return lost


def _files(directory: Directory, above: str) -> Iterator[tuple[str, File]]:
    for name in sorted(directory.names):
        node = directory.names[name]
        if isinstance(node, Directory):
            yield from _files(node, f"{above}/{name}")
        else:
            yield f"{above}/{name}", node
