"""One member of a group: its stream, its leases, its answers. Joins again when the stream breaks.

When the stream ends the broker frees what it had leased, so everything that was delivered
and is not settled is lost here too. Nothing is handed on that is not held.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from grpc.aio import EOF, AioRpcError, StreamStreamCall
from grpc.aio import InternalError as RefusedByGrpc

from logbroker.client.audience import Audience, TopicPartition
from logbroker.client.connection import Connection
from logbroker.client.consume_requests import limits_request, open_request
from logbroker.client.consumer_settings import ConsumerSettings
from logbroker.client.forks import tell_of_forks
from logbroker.client.held_leases import HeldLeases
from logbroker.client.lease import Lease
from logbroker.client.lease_keeper import LeaseKeeper
from logbroker.client.logs import ClientLog
from logbroker.client.retry import failure_of, unreachable, wait_ms
from logbroker.client.settlement_pause import SettlementPause
from logbroker.client.settlements import Outbox, Turn
from logbroker.errors import DataLossError, InternalError, LogbrokerError
from logbroker.group.settings import GroupSettings, Order
from logbroker.record.batch import Batch
from logbroker.record.offset_ranges import Range
from logbroker.v1 import consume_service_pb2 as pb
from logbroker.wire.consume_response import read_consume_response
from logbroker.wire.convert_groups import group_settings_of

Response = tuple[pb.ConsumeResponse, Sequence[Batch]]
Stream = StreamStreamCall[bytes, Response]

SMALL_BYTES = 4 << 10
"""A delivery of no more is handled before the next one is asked for, which costs as much."""
LEAVE_MS = 5_000
"""How long an orderly end waits for the broker."""
DAMAGED = "the records cannot be read: "

log = ClientLog(__name__)


class Membership:
    """Keeps a member in its group."""

    def __init__(
        self, connection: Connection, settings: ConsumerSettings, audience: Audience
    ) -> None:
        self.settings = settings
        self.group_settings: GroupSettings | None = None
        """In force; None before it has joined."""
        self.member_id = ""
        self.assignment: tuple[TopicPartition, ...] | None = None
        """In partition order, what belongs to it; None: not told yet, or another order."""
        self.failure: LogbrokerError | None = None
        self.held = HeldLeases(audience)
        self.joined_count = 0
        self.outbox = Outbox(
            self._wake_writer,
            wake_later=self._wake_writer_later,
            note_lost=audience.note_lost,
            note_reopened=self.held.reopen,
            retry_later=self._retry_later,
        )
        self._connection = connection
        self._clock = connection.clock
        self._audience = audience
        self._limits = settings.max_outstanding_records, settings.max_outstanding_bytes
        self._has_new_limits = False
        self._keeper = LeaseKeeper(
            connection.clock, self.held.by_token, self._wake_writer, audience.may_extend
        )
        self._wake = asyncio.Event()
        self._pause = SettlementPause(connection.clock, self.outbox.hurry)
        self._has_joined = asyncio.Event()
        self._has_stream = False
        self._is_leaving = False
        self._attempt = 0
        self._join_by_ms = 0
        self._tasks: asyncio.TaskGroup | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_forked = False
        tell_of_forks(self)

    async def join(self) -> None:
        """Returns once it is a member. Raises why it is not: UNREACHABLE after `timeout_ms`."""
        if self._task is None:
            self._join_by_ms = self._clock.monotonic_ms() + self._connection.timeout_ms
            self._task = asyncio.create_task(self._run(), name=f"member of {self.settings.group}")
            self._task.add_done_callback(self._ended)
        await self._has_joined.wait()
        if self.failure is not None:
            raise self.failure.again()

    async def leave(self, timeout_ms: int = LEAVE_MS) -> None:
        """Sends what is answered, releases the rest, and ends: within `timeout_ms`.

        At once where it has lost its stream, and with it all that it held.
        """
        self._is_leaving = True
        self.outbox.hurry()
        self._wake.set()
        if self._task is None or self.failure is not None:
            return
        if self._has_stream or not self._has_joined.is_set():
            with suppress(TimeoutError):
                await self._clock.wait_for(asyncio.wait({self._task}), timeout_ms)
        await self.end()

    async def end(self) -> None:
        """Ends at once: for the broker, the member has vanished unless it has left."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._lose_stream()

    def set_limits(self, records: int, size_bytes: int) -> None:
        """Changes how much may be outstanding from now on."""
        if (records, size_bytes) != self._limits:
            self._limits = records, size_bytes
            self._has_new_limits = True
            self._wake.set()

    def release(self, lease: Lease, ranges: Iterable[Range]) -> Turn | None:
        """Gives back what of the ranges is held."""
        held = [found for first, end in ranges for found in lease.take(first, end)]
        return self.outbox.answer(lease, held, pb.OUTCOME_RELEASE) if held else None

    def forked(self) -> None:
        """Gives up all leases: this is a child process, its parent is the member."""
        self._is_forked = True
        self.outbox.forked()
        self.held.forked()

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as self._tasks:
            self._keeper.start(self._tasks)
            while not (self._is_leaving and (self.outbox.is_idle or not self.held.by_token)):
                error = await self._attend()
                if error is None:
                    break
                self._lose_stream()
                self._check(error)
                if self.failure is not None:
                    break
                await self._rest(error)
            self._lose_stream()
            self._keeper.stop()
            self._pause.stop()

    async def _attend(self) -> LogbrokerError | None:
        """Is a member until the stream ends; returns why it did, None after leaving."""
        try:
            await self._connection.wait_ready(
                self._clock.monotonic_ms() + self._connection.timeout_ms
            )
            call = self._connection.open_stream("ConsumeService/Consume", read_consume_response)
        except LogbrokerError as error:
            return error
        self._has_stream = True
        writing = asyncio.create_task(self._write(call), name="member's answers")
        reading = asyncio.create_task(self._read(call), name="member's deliveries")
        try:
            await asyncio.wait({writing, reading}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
            return await reading
        finally:
            self._has_stream = False
            call.cancel()
            for task in (writing, reading):
                task.cancel()
            await asyncio.wait({writing, reading})

    async def _read(self, call: Stream) -> LogbrokerError | None:
        try:
            while (response := await call.read()) is not EOF:
                assert isinstance(response, tuple)
                self._take(*response)
                if 0 < sum([len(one.records) for one in response[1]]) <= SMALL_BYTES:
                    await asyncio.sleep(0)  # who waits for it goes first: reading costs a moment
        except AioRpcError as failure:
            return failure_of(failure)
        except LogbrokerError as error:
            return error
        return None if self._is_leaving else unreachable("the broker ended the stream")

    async def _write(self, call: Stream) -> None:
        try:
            self._has_new_limits = False
            opening = open_request(self.settings, self._limits, self._connection.max_response_bytes)
            await call.write(opening.SerializeToString())
            while True:
                while (request := self._next_request()) is None:
                    await self._wake.wait()
                    self._wake.clear()
                await call.write(request.SerializeToString())
                if request.HasField("leave"):
                    await call.done_writing()
                    return
        except (AioRpcError, RefusedByGrpc, asyncio.InvalidStateError):
            return  # the reader knows why

    def _next_request(self) -> pb.ConsumeRequest | None:
        if self.member_id == "":
            return None  # answers go only where they are waited for
        if extensions := self._keeper.take():
            return pb.ConsumeRequest(extend=extensions)
        if self._has_new_limits:  # before what is given back, or it would come here again
            self._has_new_limits = False
            return limits_request(self._limits)
        if settlements := self.outbox.take():
            return pb.ConsumeRequest(settle=settlements)
        if self._is_leaving and self.outbox.is_idle:
            return pb.ConsumeRequest(leave=pb.LeaveConsume())
        return None

    def _take(self, response: pb.ConsumeResponse, batches: Sequence[Batch]) -> None:
        if response.taken_back:
            self.held.take_back(response.taken_back)
        if response.HasField("joined"):
            self._take_joined(response.joined)
        if response.HasField("assignment"):
            self.assignment = tuple(
                TopicPartition(one.topic, one.partition) for one in response.assignment.partitions
            )
            self.held.caught_up &= set(self.assignment)
            log.debug("assigned", group=self.settings.group, partitions=len(self.assignment))
        if response.settled:
            self.outbox.take_answers(response.settled)
            self.held.forget_settled()
        if response.extended:
            lost_count = self._keeper.take_answers(response.extended)
            if lost_count:
                self.held.lost_count += lost_count
                self._audience.drop()
        if response.HasField("delivery"):
            self._keeper.keep_every(response.delivery.lease_ms)
            self.held.take(response.delivery, batches, self._pass_damage)
        for one in response.caught_up:
            self.held.caught_up.add(TopicPartition(one.topic, one.partition))
        if response.caught_up or response.settled or response.HasField("assignment"):
            self._audience.wake()

    def _take_joined(self, joined: pb.Joined) -> None:
        if self._attempt:
            log.info("member has the broker again", group=self.settings.group)
        self._attempt = 0
        self.joined_count += 1
        self.member_id = joined.member_id
        self.group_settings = group_settings_of(joined.settings)
        self._keeper.keep_every(self.group_settings.lease_ms)
        self._has_joined.set()
        self._wake.set()

    def _pass_damage(self, lease: Lease, base_offset: int, error: DataLossError) -> None:
        """Rejects records that cannot be read: nobody can handle them."""
        end = int(error.details.get("next_offset", base_offset + 1))
        log.warning(
            "damaged records rejected", topic=lease.topic, partition=lease.partition,
            offset=base_offset, next_offset=end,
        )  # fmt: skip
        if held := lease.take(base_offset, end):
            self.outbox.answer(lease, held, pb.OUTCOME_REJECT, reason=f"{DAMAGED}{error}")

    def _lose_stream(self) -> None:
        """Gives up all leases."""
        self.member_id = ""
        self.outbox.lose_connection()
        self.held.lose_all()
        self.held.delivered_count = self._over_count
        self._keeper.clear()
        self.assignment = None
        self._audience.drop()

    def _check(self, error: LogbrokerError) -> None:
        """Takes the error as final if it is: no later attempt can make it good."""
        is_replaced = error.reason == "MEMBER_FENCED" and self.settings.instance_id != ""
        may_pass = error.may_retry or error.reason == "MEMBER_FENCED"
        is_late = not self._has_joined.is_set() and self._clock.monotonic_ms() >= self._join_by_ms
        if not self._is_leaving and (is_replaced or is_late or not may_pass):
            self._fail(error)

    async def _rest(self, error: LogbrokerError) -> None:
        if self._attempt == 0:
            log.warning(
                "member lost the broker, joins again when it is back",
                group=self.settings.group, reason=error.reason, error=str(error),
            )  # fmt: skip
        self._attempt += 1
        delay_ms = wait_ms(error, self._attempt, self._connection.backoff, self._connection.random)
        await self._clock.wait_until(self._clock.monotonic_ms() + delay_ms)

    def _wake_writer_later(self) -> None:
        """Lets acknowledgements gather: each costs the broker a message, a flush, and an answer.

        Not where something waits for them: room, of which half is taken; the next record of
        a key; records that are delivered alone.
        """
        outstanding = self.held.delivered_count - self._over_count
        is_keyed = self.group_settings is not None and self.group_settings.order is Order.KEY
        is_needed = self.held.is_urgent or is_keyed or 2 * outstanding >= self._limits[0]
        if is_needed or self._tasks is None or self._is_over:
            self.outbox.hurry()
        else:
            self._pause.begin(self._tasks)

    @property
    def lost_count(self) -> int:
        """How many records were taken back, or answered too late."""
        return self.held.lost_count + self.outbox.lost_count

    @property
    def _over_count(self) -> int:
        """How many of the delivered records are settled or lost."""
        return self.outbox.settled_count + self.lost_count

    def _retry_later(self, turn: Turn, range_: Range, error: LogbrokerError) -> None:
        assert self._tasks is not None
        self._tasks.create_task(self._put_back_later(turn, range_, error))

    async def _put_back_later(self, turn: Turn, range_: Range, error: LogbrokerError) -> None:
        delay_ms = wait_ms(error, 5, self._connection.backoff, self._connection.random)
        try:
            await self._clock.wait_until(self._clock.monotonic_ms() + delay_ms)
        finally:
            self.outbox.put_back(turn, range_)

    def _wake_writer(self) -> None:
        if self._is_over:  # nobody sends it: it is refused, once what is given now is complete
            asyncio.get_running_loop().call_soon(self.outbox.lose_connection)
        else:
            self._wake.set()

    @property
    def _is_over(self) -> bool:
        has_ended = self._task is not None and self._task.done()
        return has_ended or self.failure is not None or self._is_forked

    def _fail(self, error: LogbrokerError) -> None:
        self.failure = error
        self._has_joined.set()
        self._audience.wake()

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():
            return
        if fault := task.exception():
            log.error("a member failed", error=repr(fault), exc_info=fault)
            self._lose_stream()
            self._fail(InternalError("BROKER_FAULT", f"the member failed: {fault!r}"))
        self._audience.wake()
