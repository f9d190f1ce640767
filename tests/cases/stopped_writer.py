"""Writers that go on until the broker stops under them, and know what became of each record."""

from itertools import count

import grpc

from logbroker.client import Client
from logbroker.errors import LogbrokerError
from logbroker.v1.produce_service_pb2 import PublishRequest
from logbroker.v1.produce_service_pb2_grpc import ProduceServiceStub
from logbroker.v1.record_pb2 import Record as RecordMessage
from logbroker.wire.status import error_of


class Writer:
    """Sends numbered records until one fails, and notes what became of each."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.acked: dict[bytes, int] = {}
        self.open: list[bytes] = []
        """Failed, or outcome unknown."""
        self.surely_not_stored: list[bytes] = []
        self.code: grpc.StatusCode | None = None

    async def produce(self, address: str) -> None:
        """Writes with our client."""
        async with Client(address, timeout_ms=2_000) as client:
            producer = client.producer("t", linger_ms=1, delivery_timeout_ms=1_000)
            pending = []
            for number in count():
                value = self.value_of(number)
                try:
                    pending.append((value, await producer.send(value)))
                    if len(pending) >= 20:
                        await pending[-20][1]
                except LogbrokerError:
                    break
            for value, receipt in pending:
                try:
                    self.acked[value] = (await receipt).offset
                except LogbrokerError as error:
                    self._note(value, error)
            await producer.abandon(timeout_ms=0)

    async def publish(self, address: str) -> None:
        """Writes with the unary call."""
        async with grpc.aio.insecure_channel(address) as channel:
            stub = ProduceServiceStub(channel)
            for number in count():
                value = self.value_of(number)
                request = PublishRequest(topic="t", records=[RecordMessage(value=value)])
                try:
                    response = await stub.Publish(request)
                except grpc.aio.AioRpcError as failure:
                    self.code = failure.code()
                    if self.code is grpc.StatusCode.CANCELLED:  # turned away by gRPC, at the door
                        self.surely_not_stored.append(value)
                    else:
                        self._note(value, error_of(failure))
                    return
                self.acked[value] = response.results[0].receipt.base_offset

    def value_of(self, number: int) -> bytes:
        """Returns the value of its record of this number."""
        return f"{self.name}:{number}".encode()

    def _note(self, value: bytes, error: LogbrokerError) -> None:
        (self.surely_not_stored if error.no_effect else self.open).append(value)
