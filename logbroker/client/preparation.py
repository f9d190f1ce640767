"""What must be done before a batch can go: the producer's id, and encoding. Some of it waits."""

import asyncio
from collections.abc import Callable

from logbroker.client.connection import Connection
from logbroker.client.lane import Identity, Lane
from logbroker.errors import LogbrokerError
from logbroker.record.compression import Codec
from logbroker.v1 import produce_service_pb2 as pb


class Preparation:
    """Prepares the next batches of lanes."""

    def __init__(
        self,
        connection: Connection,
        codec: Codec,
        *,
        seal: Callable[[Lane], None],
        on_retry: Callable[[LogbrokerError], None],
    ) -> None:
        """`seal` ends a lane's open batch; `on_retry` hears why there is no id yet."""
        self._connection = connection
        self._clock = connection.clock
        self._codec = codec
        self._seal = seal
        self._on_retry = on_retry
        self._identity: Identity | None = None

    def is_done(self, lane: Lane) -> bool:
        """Whether the lane's next batch is sealed and encoded; does so if that takes no wait."""
        if lane.identity is None:
            return False
        if lane.under_way_count == len(lane.unresolved):
            self._seal(lane)
        batch = lane.unresolved[lane.under_way_count]
        if batch.encoded is None:
            if self._codec is not Codec.NONE:
                return False
            batch.encode(Codec.NONE, self._clock.now_ms())
        return True

    async def run(self, lane: Lane) -> None:
        """Does for the lane's next batch what takes a wait, if it may go."""
        if lane.may_go(now_ms=self._clock.monotonic_ms()):
            if lane.identity is None:
                lane.follow(await self._get_identity())
            elif lane.under_way_count < len(lane.unresolved):
                await self._encode(lane)

    def forget(self, identity: Identity) -> None:
        """Gives up a producer id that the broker does not know; perhaps there is another one."""
        if self._identity == identity:
            self._identity = None

    async def _encode(self, lane: Lane) -> None:
        batch, now_ms = lane.unresolved[lane.under_way_count], self._clock.now_ms()
        if self._codec is Codec.NONE or batch.encoded:
            batch.encode(self._codec, now_ms)
        else:
            try:
                await asyncio.to_thread(batch.encode, self._codec, now_ms)
            except RuntimeError:  # the interpreter ends, and starts no more threads
                batch.encode(self._codec, now_ms)

    async def _get_identity(self) -> Identity:
        if self._identity is None:
            response = await self._connection.call(
                "ProduceService/CreateProducer",
                pb.CreateProducerRequest(),
                pb.CreateProducerResponse,
                on_retry=self._on_retry,
            )
            self._identity = Identity(response.producer_id, response.producer_epoch)
        return self._identity
