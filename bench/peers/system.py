"""What a system is to the workloads: a server to start, and a client to measure.

A server is a process of its own; so is every client (`client.py`). The two halves meet only in
an address, so a workload never knows which system it measures.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.records import Records


class Level(StrEnum):
    """What an answer to a publisher means."""

    SYNCED = "synced"
    """The record is on the disk: fsync or fdatasync came before the answer."""
    WRITTEN = "written"
    """The system's fastest setting that answers at all."""


class Ability(Enum):
    """What a system can do beside taking records and confirming them."""

    REPLAY = auto()  # reads a topic from its start, without a group, and leaves it as it is
    GROUPS = auto()  # several groups read one topic, each with a progress of its own
    SHARED = auto()  # a group has several members, who share its records
    WORK = auto()  # leases records to workers, who settle each by itself
    PARTITIONS = auto()  # spreads a topic's keys over partitions


class Sending(StrEnum):
    """How a publisher goes about it."""

    FASTEST = "fastest"
    """In whatever batches suit the client; that all were answered is looked at once, at the end."""
    EACH = "each"
    """One by one, and the answer to each is looked at."""
    PROMPT = "prompt"
    """One by one, and none waits for others to fill a batch."""
    PACED = "paced"
    """At a rate, with a short way to the reader."""


Take = Callable[[bytes], None]
"""Is given the value of each record that a consumer receives."""


class Sender(Protocol):
    """A publisher of one topic."""

    async def send(self, records: Records) -> None:
        """Takes records; returns when there is room for more."""

    async def flush(self) -> None:
        """Returns when all that was taken is answered; raises if any was refused."""

    async def confirm(self, value: bytes, key: bytes) -> None:
        """Publishes a record and returns when its answer is there."""


class Connection(Protocol):
    """A client, connected."""

    async def create_topic(self, topic: str, partition_count: int) -> None:
        """Makes a topic."""

    async def delete_topic(self, topic: str) -> None:
        """Removes a topic and all its records."""

    def sender(self, topic: str, sending: Sending) -> AbstractAsyncContextManager[Sender]:
        """Returns a publisher."""

    async def replay(self, topic: str, count: int, how: str) -> int:
        """Reads so many records from the start; returns the bytes of their values."""

    def consume(self, topic: str, group: str, take: Take) -> AbstractAsyncContextManager[None]:
        """Reads as a member of a group, from the start on, and settles in bulk."""

    def work(self, topic: str, group: str, take: Take) -> AbstractAsyncContextManager[None]:
        """Leases records, and settles each by itself once it was taken.

        At the end all settlements are sent, and answered where the system answers them.
        """

    async def unsettled(self, topic: str, group: str) -> int | None:
        """Returns how many records the group has not settled; None where no one can tell."""

    async def close(self) -> None:
        """Disconnects."""


class Server(Protocol):
    """A server on a directory that outlives it, and on ports of the loopback alone."""

    address: str
    """What its clients connect to."""
    directory: Path

    def prepare(self) -> None:
        """Does what is done once before the first start."""

    def start(self) -> None:
        """Starts it; returns when it takes connections."""

    @property
    def is_running(self) -> bool:
        """Tells whether it was started, and neither stopped nor killed."""

    def stop(self) -> None:
        """Ends it in good order."""

    def kill(self) -> None:
        """Ends it with SIGKILL."""

    def rss_bytes(self) -> int:
        """Returns the resident memory of all its processes."""

    def disk_bytes(self) -> int:
        """Returns the blocks that its directory takes on the disk."""

    def remove(self) -> None:
        """Removes its directory."""


class LoadTool(Protocol):
    """A load generator that the system's own people ship."""

    name: str
    reads: bool
    """It has a way to read a topic from its start."""
    synced_part: float
    """How much of a count is enough where every answer waits for the disk."""

    def publish(self, server: Server, topic: str, size: int, count: int) -> float:
        """Publishes so many records, or more, to a topic that is there; returns records a
        second."""

    def fill(self, server: Server, topic: str, size: int, count: int) -> None:
        """Publishes exactly so many thousands of records to a topic of one partition."""

    def read(self, server: Server, topic: str, size: int, count: int) -> float:
        """Reads so many from the topic's start; returns records a second."""


class Missing(NamedTuple):
    """Something that is not installed."""

    what: str
    how: str
    """A command that brings it."""

    def __str__(self) -> str:
        return f"{self.what} (`{self.how}`)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class System:
    """One system, as one client of it sees it."""

    name: str
    title: str
    client_module: str
    """Has `connect`."""
    answers: Mapping[Level, str]
    """How it is set to each of the levels that it has, and what its answer means then."""
    abilities: frozenset[Ability]
    is_level_of_topic: bool
    """One server serves both levels: a topic has one or the other."""
    has_owners: bool
    """A partition has one member at a time: so many members need as many partitions."""
    is_blind_faster: bool
    """Its client has a way to publish that reports no single answer: `FASTEST` is not `EACH`."""
    join_s: float
    """In which members of a group that join together have surely joined."""
    server: Callable[[Path, Level], Server]
    """Makes one, not started, for a directory that may hold what an earlier one left there."""
    missing: Callable[[], list[Missing]]
    versions: Callable[[], dict[str, str]]
    """Of what is measured; called where nothing is missing."""
    replays: tuple[str, ...] = ("records",)
    """Ways to replay."""
    tool: LoadTool | None = None
    tool_missing: Callable[[], list[Missing]] = list

    @property
    def levels(self) -> frozenset[Level]:
        """Returns the levels that it has."""
        return frozenset(self.answers)

    @property
    def fastest(self) -> Level:
        """Returns the level at which it is filled."""
        return Level.WRITTEN if Level.WRITTEN in self.answers else Level.SYNCED

    def can(self, ability: Ability) -> bool:
        """Tells whether it has an ability."""
        return ability in self.abilities


Connect = Callable[[str, Level], Awaitable[Connection]]
"""The function `connect` of a client module: takes the server's address."""
