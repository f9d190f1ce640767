"""Leases what may go of one ledger: reads first, then decides, so that bytes bound the lease.

A lease takes whole batches where it can; of a batch that is leased in part a batch of those
records alone is made. What cannot be read is passed over, counted and logged.
"""

from typing import NamedTuple

import structlog

from logbroker.broker.fetch import out_of_range
from logbroker.broker.groups import Groups
from logbroker.broker.holding import Holding
from logbroker.broker.live_group import Sizes
from logbroker.errors import (
    DataLossError,
    InvalidError,
    NotFoundError,
    OffsetOutOfRangeError,
    UnavailableError,
)
from logbroker.group.dispatch import MANY
from logbroker.group.group import TopicRead
from logbroker.group.group_events import LedgerId
from logbroker.group.ledger import DeliveredRun, Ledger
from logbroker.group.ledger_events import Leased, Moment, Trimmed
from logbroker.group.settings import OutOfRange
from logbroker.limits import FETCH_BYTES
from logbroker.record.batch import Batch, BatchHeader
from logbroker.record.columns import batch_of, keys_of
from logbroker.record.offset_ranges import OffsetRanges, Range
from logbroker.storage.engine import Bounds, PartitionLog, Run

SCATTERED_BYTES = 64 << 10
"""How much is read where only some records of it are wanted, as after retries."""

SHARE_RECORDS = 500
"""So many may always go at once."""

WORTHWHILE_LIMIT = 500
"""Under a lower limit whatever there is room for goes at once."""

log = structlog.get_logger()


class Delivery(NamedTuple):
    """Records of one partition, leased under one token."""

    ledger_id: LedgerId
    topic: str
    topic_id: str
    partition: int
    token: int
    lease_ms: int
    runs: list[DeliveredRun]
    dead_letter_topic: str
    batches: bytes


class Limits(NamedTuple):
    """How much may go now."""

    record_count: int
    byte_count: int
    """Of batches; one goes however large."""
    response_bytes: int
    """No batch is larger."""


def share_of(limit: int) -> int:
    """Returns how many records one lease takes, so that others are on their way meanwhile."""
    return max(limit // 2, SHARE_RECORDS)


def is_worthwhile(room: int, limit: int, held: int) -> bool:
    """Tells whether to lease now to a member, or to wait until there is room for more at once.

    A delivery has its price, and part of a batch costs as much as all of it. Who has half of
    a large limit in hand is not kept waiting by that: its own answers make the room.
    """
    return limit < WORTHWHILE_LIMIT or held <= limit // 2 or room >= limit // 4


class Leasing:
    """Gives records of ledgers to those who may take them."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    async def lease(
        self, ledger_id: LedgerId, holding: Holding, limits: Limits, lease_ms: int | None = None
    ) -> Delivery | None:
        """Returns a delivery; None where there is nothing to be had now.

        NotFoundError where the topic is gone; OffsetOutOfRangeError by the group's policy;
        InvalidError (RESPONSE_TOO_LARGE) for a batch over `response_bytes`.
        """
        try:
            return await self._lease(ledger_id, holding, limits, lease_ms)
        except NotFoundError:
            if ledger_id.topic_id in holding.topic_ids:
                raise
            return None  # somebody deleted the dead-letter topic
        except UnavailableError:
            if not self._groups.is_damaged(ledger_id):
                raise
            return None  # which was said at the start; the other partitions go on

    async def _lease(
        self, ledger_id: LedgerId, holding: Holding, limits: Limits, lease_ms: int | None
    ) -> Delivery | None:
        groups = self._groups
        live = groups.live_group(ledger_id.group)
        ledger = groups.ledger(ledger_id)
        found = groups.partition(ledger_id)
        seed = found.seed
        share = share_of(ledger.settings.max_unsettled)
        if share < limits.record_count:
            limits = limits._replace(record_count=share)
        while live.may_take(holding, ledger_id) and groups.state.get(ledger_id) is ledger:
            bounds = found.log.bounds()
            self._check_range(ledger_id, ledger, bounds)
            if ledger.state.keys and not await self._learn_keys(
                ledger_id, ledger, found.log, seed, limits.record_count
            ):
                continue
            here = ledger.state.leases.count_of(holding.name)
            if not is_worthwhile(ledger.window_room, ledger.settings.max_unsettled, here):
                return None
            wanted = self._decide(
                ledger, holding, limits, groups.moment(), bounds.high_watermark, max_ranges=2
            )
            if wanted is None:
                return None
            decided_count = groups.decided_count
            first = wanted.ranges[0][0]
            sizes = live.sizes.get(ledger_id)
            run = await self._read(ledger_id, ledger, found.log, wanted, limits, sizes)
            if run is None:
                continue
            if groups.state.get(ledger_id) is not ledger or not live.may_take(holding, ledger_id):
                return None
            headers = _headers(run.batches, seed)
            base = headers[0].base_offset
            live.sizes[ledger_id] = _sizes(headers)
            if base > first:
                self._skip(ledger_id, ledger, first, base)
                continue
            below = _whole_batches(headers, first, limits.record_count)
            now = groups.moment()
            is_all = len(wanted.ranges) == 1 and wanted.ranges[0][1] <= below
            if is_all and groups.decided_count == decided_count:
                leased: Leased | None = wanted  # nothing has happened, and there is no more
            else:
                leased = self._decide(ledger, holding, limits, now, below)
            if leased is None:
                return None
            if leased.ranges[0][0] < base:
                continue
            token = groups.new_token()
            end_ms = ledger.lease_end_ms(now, lease_ms)
            leased = Leased(token, holding.name, leased.ranges, end_ms, leased.is_suspect)
            batches = _cut(run.batches, headers, leased.ranges, seed)
            if len(batches) > limits.response_bytes:
                raise _too_large(len(batches), limits.response_bytes, leased.ranges[0][0])
            groups.commit_in(ledger_id, [leased], now=now)
            holding.sized(token, len(batches))
            topic = live.topic_read(ledger_id.topic_id)
            return _delivery(ledger_id, topic, ledger, leased, batches, lease_ms)
        return None

    def _decide(
        self,
        ledger: Ledger,
        holding: Holding,
        limits: Limits,
        now: Moment,
        below: int,
        max_ranges: int = MANY,
    ) -> Leased | None:
        """Returns what it may have, without a token and a deadline yet."""
        here = ledger.state.leases.count_of(holding.name)
        decided = ledger.decide_lease(
            holding.name,
            0,
            now,
            high_watermark=below,
            max_count=limits.record_count,
            max_ranges=max_ranges,
            held_elsewhere=holding.record_count - here,
        )
        return decided[0] if decided else None

    async def _read(
        self,
        ledger_id: LedgerId,
        ledger: Ledger,
        partition_log: PartitionLog,
        wanted: Leased,
        limits: Limits,
        sizes: Sizes | None,
    ) -> Run | None:
        """Returns whole batches from the first one wanted on; None where to look again."""
        first = wanted.ranges[0][0]
        is_scattered = len(wanted.ranges) > 1 or wanted.is_suspect
        most = SCATTERED_BYTES if is_scattered else FETCH_BYTES
        if sizes:
            # Reading is not free: what may go, between a batch's end and another's beginning.
            most = min(most, 2 * sizes.batch_bytes + sizes.record_bytes * limits.record_count)
        size = max(min(limits.byte_count, limits.response_bytes, most), 1)
        try:
            run = await partition_log.read(first, size)
        except DataLossError as error:
            self._skip(ledger_id, ledger, first, int(error.details["next_offset"]))
            return None
        except OffsetOutOfRangeError:  # retention was faster
            return None
        return run if run.batches else None

    def _skip(self, ledger_id: LedgerId, ledger: Ledger, first: int, end: int) -> None:
        log.error("damaged records passed over", ledger=ledger_id, offset=first, next_offset=end)
        self._groups.commit_in(ledger_id, ledger.decide_skip(first, end))

    def _check_range(self, ledger_id: LedgerId, ledger: Ledger, bounds: Bounds) -> None:
        """Takes note of what retention removed; goes on where the group's policy says."""
        state = ledger.state
        start, end = bounds.log_start_offset, bounds.high_watermark
        if state.log_start_offset >= start and state.committed <= end:
            return
        decided = ledger.decide_trim(start)
        lost = sum(event.expired_unsettled for event in decided if isinstance(event, Trimmed))
        policy = ledger.settings.out_of_range
        if state.is_parked_from_birth or (not lost and state.committed <= end):
            self._groups.commit_in(ledger_id, decided)
            return
        at = state.committed
        if policy is OutOfRange.ERROR:
            raise out_of_range(at, bounds)
        to = start if policy is OutOfRange.EARLIEST else end
        if at > end or policy is OutOfRange.LATEST:
            decided = [*decided, *ledger.decide_reset(to, "out_of_range")]
        skipped = max(to - at, 0)
        log.warning(
            "group was out of range", ledger=ledger_id, offset=at, to_offset=to, skipped=skipped
        )
        self._groups.commit_in(ledger_id, decided)

    async def _learn_keys(
        self,
        ledger_id: LedgerId,
        ledger: Ledger,
        partition_log: PartitionLog,
        seed: int,
        count: int,
    ) -> bool:
        """Reads keys until so many records have their turn; False where to look again."""
        while True:
            keys = ledger.state.keys
            wanted = ledger.wanted_keys(partition_log.bounds().high_watermark)
            if keys is None or wanted is None or keys.ready.count >= count:
                return True
            first, end = wanted
            try:
                run = await partition_log.read(first, FETCH_BYTES)
            except DataLossError as error:
                self._skip(ledger_id, ledger, first, int(error.details["next_offset"]))
                if ledger.state.keys is keys:
                    ledger.pass_over_keys(int(error.details["next_offset"]))
                return False
            except OffsetOutOfRangeError:
                return False
            if self._groups.state.get(ledger_id) is not ledger or ledger.state.keys is not keys:
                return False  # it is gone, or was reset, and begins elsewhere
            at = 0
            for header in _headers(run.batches, seed):
                if header.base_offset > first:
                    self._skip(ledger_id, ledger, first, header.base_offset)
                    ledger.pass_over_keys(header.base_offset)
                if header.base_offset >= end:
                    break
                batch = Batch.decode(run.batches, seed, at)
                base = header.base_offset
                start = min(max(base, first, ledger.state.committed), header.next_offset)
                ledger.learn_keys(start, keys_of(batch)[start - base : end - base])
                first, at = header.next_offset, at + header.size_bytes


def _delivery(
    ledger_id: LedgerId,
    topic: TopicRead | None,
    ledger: Ledger,
    leased: Leased,
    batches: bytes,
    lease_ms: int | None,
) -> Delivery:
    if topic is None:
        source = ledger_id.topic_id
        raise NotFoundError("TOPIC_NOT_FOUND", f"topic {source} is gone", topic_id=source)
    is_dead_letter = topic.topic_id != ledger_id.topic_id
    return Delivery(
        ledger_id,
        topic.topic,
        topic.topic_id,
        ledger_id.partition,
        leased.token,
        ledger.settings.lease_ms if lease_ms is None else lease_ms,
        ledger.delivered_runs(leased.ranges),
        topic.dead_letter_topic if is_dead_letter else "",
        batches,
    )


def _headers(batches: bytes | memoryview, seed: int) -> list[BatchHeader]:
    headers, at, end = [], 0, len(batches)
    while at < end:
        header = BatchHeader.decode(batches, seed, at)
        headers.append(header)
        at += header.size_bytes
    return headers


def _sizes(headers: list[BatchHeader]) -> Sizes:
    if len(headers) == 1:
        size = headers[0].size_bytes
        return Sizes(-(-size // headers[0].record_count), size)
    sizes = [header.size_bytes for header in headers]
    return Sizes(-(-sum(sizes) // sum(one.record_count for one in headers)), max(sizes))


def _whole_batches(headers: list[BatchHeader], first: int, max_count: int) -> int:
    """Returns where the last batch ends that goes whole; the end of all where that is too little.

    Too little is less than half of what may go.
    """
    below = first
    for header in headers:
        if header.next_offset - first > max_count:
            break
        below = header.next_offset
    return below if (below - first) * 2 >= max_count else headers[-1].next_offset


def _cut(
    batches: bytes | memoryview, headers: list[BatchHeader], ranges: tuple[Range, ...], seed: int
) -> bytes:
    """Returns the batches as they are where all of one is leased, else made anew."""
    if len(ranges) == 1:
        (first, end) = ranges[0]
        if first == headers[0].base_offset and end == headers[-1].next_offset:
            return bytes(batches)
    leased, parts, at, whole = OffsetRanges(ranges), [], 0, 0
    for header in headers:
        size = header.size_bytes
        if not leased.holds(header.base_offset, header.next_offset):
            parts.append(batches[whole:at])
            if wanted := leased.within(header.base_offset, header.next_offset):
                part = batch_of(Batch.decode(batches, seed, at), wanted)
                parts.append(part.encode(seed))
            whole = at + size
        at += size
    return b"".join([*parts, batches[whole:at]])


def _too_large(size: int, cap: int, offset: int) -> InvalidError:
    message = (
        f"the records at offset {offset} have {size} bytes; this client says it can receive {cap}"
    )
    return InvalidError("RESPONSE_TOO_LARGE", message, offset=offset, size=size, cap=cap)
