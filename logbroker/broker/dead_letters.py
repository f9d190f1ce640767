"""Dead letters on their way: from their source into the dead-letter topic, once.

The journal's record that settles a record in its source is the dead letter's birth; its copy
is appended afterwards, with a sequence that follows from that record: the number of dead
letters its ledger had before. What a stop left unwritten is written at the next start. What
was written is told by the sequences in the topic or, where that was deleted with what it
held, by `LettersWritten` in the ledger; it is not written again.

A ledger whose dead letters cannot be written waits and tries again; others go on.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable
from typing import NamedTuple

import structlog

from logbroker.broker.coordinator import Coordinator
from logbroker.broker.dead_letter_topics import DEAD_LETTER_PRODUCER_ID, DeadLetterTopics, Target
from logbroker.broker.groups import Groups
from logbroker.broker.letter_copies import Row, columns_of, parts
from logbroker.broker.partitions import Partition
from logbroker.broker.pending_letters import Letter
from logbroker.errors import (
    LogbrokerError,
    NotFoundError,
    UnavailableError,
)
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.ledger_events import GivenUp, LettersWritten
from logbroker.group.retry_policy import Exhausted
from logbroker.group.settings import OutOfRange
from logbroker.record.batch import Batch
from logbroker.record.columns import encode_batch

RETRY_MS = (1_000, 60_000)
"""How long to wait where dead letters cannot be written: at first, and at most."""
LETTERS_AT_ONCE = 1_000
PARTS_AT_ONCE = 8
"""How many appends are under way before they are waited for."""

log = structlog.get_logger()


class Retry(NamedTuple):
    """When to try again to write the dead letters of a ledger."""

    at_ms: int
    """Monotonic."""
    delay_ms: int


class DeadLetters:
    """Writes what belongs in dead-letter topics, by ledger in order."""

    def __init__(self, groups: Groups, coordinator: Coordinator) -> None:
        self.topics = DeadLetterTopics(groups, coordinator)
        self._groups = groups
        self._has_letters = asyncio.Event()
        self._retries: dict[LedgerId, Retry] = {}
        groups.on_letter = self._has_letters.set

    async def decided(self, decide: Callable[[], list[InLedger]]) -> list[InLedger]:
        """Returns what `decide` does, once there is a topic for the dead letters in it.

        A record that retention took before is none: it has expired, and is counted as that.
        """
        while True:
            decided = decide()
            letters = [told for told in decided if is_letter(told)]
            if self._let_expire(letters):
                continue
            missing = {told.ledger for told in letters if self.topics.find(told.ledger) is None}
            if not missing:
                return decided
            for ledger_id in missing:
                await self.topics.make(ledger_id)

    def _let_expire(self, letters: list[InLedger]) -> bool:
        """Takes note of what retention took; returns whether there was anything new."""
        groups, has_expired = self._groups, False
        firsts: dict[LedgerId, int] = {}
        for ledger_id, event in letters:
            assert isinstance(event, GivenUp)
            first = event.ranges[0][0]
            firsts[ledger_id] = min(firsts.get(ledger_id, first), first)
        for ledger_id, first in firsts.items():
            ledger = groups.ledger(ledger_id)
            if ledger.settings.out_of_range is not OutOfRange.EARLIEST:
                continue  # where the group goes on is decided with the next lease
            start = groups.partition(ledger_id).log.bounds().log_start_offset
            if first < start and (expired := ledger.decide_trim(start)):
                log.warning("given up too late: expired", ledger=ledger_id, log_start_offset=start)
                groups.commit_in(ledger_id, expired)
                has_expired = True
        return has_expired

    async def run(self) -> None:
        """Writes dead letters as they come, until it is cancelled."""
        clock = self._groups.clock
        self._catch_up()
        while True:
            self._has_letters.clear()
            for ledger_id in self._due():
                await self._try(ledger_id)
            if self._due():
                continue
            next_ms = min((retry.at_ms for retry in self._retries.values()), default=None)
            waiting = self._has_letters.wait()
            if next_ms is None:
                await waiting
                continue
            try:
                await clock.wait_for(waiting, max(next_ms - clock.monotonic_ms(), 1))
            except TimeoutError:
                continue

    async def wait_tried(self, topic_id: str) -> None:
        """Waits until the dead letters there are of a topic are written, or could not be."""
        if untried := self._groups.letters.untried_of(topic_id):
            await asyncio.wait(untried)

    async def wait_written(self, topic_id: str, partition: int, offset: int) -> int:
        """Returns up to where, at most `offset`, a log is needed no more for dead letters.

        Waits until they are written, or could not be for now: those are left to be read.
        """
        letters = self._groups.letters
        while untried := [
            letter.is_tried
            for letter in letters.below(topic_id, partition, offset)
            if not letter.is_tried.done()
        ]:
            await asyncio.wait(untried)
        left = [letter.event.ranges[0][0] for letter in letters.below(topic_id, partition, offset)]
        if left:
            log.warning(
                "dead letters not written yet keep their records",
                topic_id=topic_id,
                partition=partition,
                offset=min(left),
                count=len(left),
            )
        return min([offset, *left])

    def _catch_up(self) -> None:
        """Sees to it that new sequences are behind those in the topics.

        They are, unless damage took dead letters from the journal.
        """
        groups = self._groups
        for ledger_id, ledger in groups.state.all().items():
            target = self.topics.find(ledger_id)
            if target is None:
                continue
            try:
                partition = groups.partitions.get(target.topic.partition(ledger_id.partition))
                written = self._written(ledger_id, target, partition)
                if written > ledger.state.counters.dead_letters:
                    log.error("dead letters missing in the journal", ledger=ledger_id)
                    groups.commit_in(ledger_id, [LettersWritten(written)])
            except LogbrokerError as error:
                log.error("dead letters not looked at", ledger=ledger_id, reason=error.reason)

    def _due(self) -> list[LedgerId]:
        """Returns the ledgers to write for now; where that must wait, nobody waits for it."""
        letters, now_ms = self._groups.letters, self._groups.clock.monotonic_ms()
        known = letters.ledger_ids()
        self._retries = {one: self._retries[one] for one in known if one in self._retries}
        due = []
        for ledger_id in known:
            retry = self._retries.get(ledger_id)
            if retry is None or retry.at_ms <= now_ms:
                due.append(ledger_id)
                continue
            for letter in letters.of(ledger_id):
                letter.tried()
        return due

    async def _try(self, ledger_id: LedgerId) -> None:
        run = self._groups.letters.of(ledger_id, LETTERS_AT_ONCE)
        try:
            for letter in run:
                if letter.is_durable and not letter.is_durable.done():
                    await asyncio.wait([letter.is_durable])
            await self._write(ledger_id, run)
        except LogbrokerError as error:
            before = self._retries.get(ledger_id)
            delay_ms = min(before.delay_ms * 2, RETRY_MS[1]) if before else RETRY_MS[0]
            at_ms = self._groups.clock.monotonic_ms() + delay_ms
            self._retries[ledger_id] = Retry(at_ms, delay_ms)
            log.error(
                "dead letters not written",
                ledger=ledger_id,
                reason=error.reason,
                error=str(error),
                again_ms=delay_ms,
            )
        else:
            self._retries.pop(ledger_id, None)
            for letter in run:
                self._groups.letters.remove(letter)

    async def _write(self, ledger_id: LedgerId, run: list[Letter]) -> None:
        groups = self._groups
        if groups.state.get(ledger_id) is None:
            return  # the group is gone, and said so
        if self.topics.find(ledger_id) is None:
            await self.topics.make(ledger_id)
        target = self.topics.find(ledger_id)
        if target is None:
            raise NotFoundError("TOPIC_NOT_FOUND", "the dead-letter topic was deleted at once")
        parked_id = LedgerId(ledger_id.group, target.topic.topic_id, ledger_id.partition)
        source = groups.partition(ledger_id)
        partition = groups.partitions.get(target.topic.partition(ledger_id.partition))
        written = self._written(ledger_id, target, partition)
        under_way: list[tuple[int, Future[Batch]]] = []
        try:
            async for part in parts(run, source, written):
                appended = self._append(ledger_id, target, partition, part)
                under_way.append((part[-1].sequence + 1, appended))
                if len(under_way) == PARTS_AT_ONCE:
                    await self._finish(ledger_id, under_way)
            await self._finish(ledger_id, under_way)
        except LogbrokerError:
            await self._finish(ledger_id, under_way)
            raise
        _check_durable(partition)
        self._note_written(ledger_id, run[-1].end)
        if live := groups.live.get(ledger_id.group):
            live.look_into(parked_id)

    def _written(self, ledger_id: LedgerId, target: Target, partition: Partition) -> int:
        """Returns how many of the ledger's dead letters are, or were, in a dead-letter topic."""
        epoch, next_sequence = partition.producers.last_of(DEAD_LETTER_PRODUCER_ID)
        known = self._groups.ledger(ledger_id).state.counters.letters_written
        return max(known, next_sequence if epoch == target.read.dead_letter_epoch else 0)

    def _append(
        self, ledger_id: LedgerId, target: Target, partition: Partition, part: list[Row]
    ) -> "Future[Batch]":
        """Writes these now; what it returns is done once they are durable."""
        batch = encode_batch(
            columns_of(part, target.read, ledger_id),
            now_ms=self._groups.clock.now_ms(),
            producer_id=DEAD_LETTER_PRODUCER_ID,
            producer_epoch=target.read.dead_letter_epoch,
            base_sequence=part[0].sequence,
        )
        base = partition.log.bounds().next_offset
        appended = partition.log.append(batch)
        now_ms = self._groups.clock.now_ms()
        stored = batch.header._replace(base_offset=base, append_time_ms=now_ms)
        partition.producers.apply(stored)
        partition.note_unsaved(batch.header.size_bytes, self._groups.clock.now_ms())
        return appended

    async def _finish(
        self, ledger_id: LedgerId, under_way: "list[tuple[int, Future[Batch]]]"
    ) -> None:
        """Waits for appends, and notes how far they came; raises what the first failed with."""
        results = await asyncio.gather(*(one for _, one in under_way), return_exceptions=True)
        written = 0
        for (end, _), result in zip(under_way, results, strict=True):
            if isinstance(result, BaseException):
                under_way.clear()
                self._note_written(ledger_id, written)
                raise result
            written = end
        under_way.clear()
        self._note_written(ledger_id, written)

    def _note_written(self, ledger_id: LedgerId, count: int) -> None:
        ledger = self._groups.ledger(ledger_id)
        if ledger.state.counters.letters_written < count:
            self._groups.commit_in(ledger_id, [LettersWritten(count)])


def is_letter(told: InLedger) -> bool:
    """Returns whether this event makes dead letters."""
    event = told.event
    return isinstance(event, GivenUp) and event.outcome is Exhausted.DEAD_LETTER


def _check_durable(partition: Partition) -> None:
    """Raises where an earlier try wrote what the disk then failed to keep."""
    bounds = partition.log.bounds()
    if bounds.high_watermark < bounds.next_offset:
        message = f"what was written to {partition.id} is not durable"
        raise UnavailableError("STORAGE_FAILED", message)
