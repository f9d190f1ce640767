"""How a producer gathers and sends."""

from dataclasses import dataclass

from logbroker.errors import InvalidError
from logbroker.limits import BATCH_BYTES_CEILING, SEQUENCE_WINDOW
from logbroker.record.compression import Codec

FIRST_GRANT_BYTES = 16 << 10
"""The room a batch is given first: what many open batches hold unused..."""
GRANT_BYTES = 64 << 10
"""... and the most it is given at once: as much again as it has used, up to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """How a producer gathers and sends. The defaults suit both lone records and bulk."""

    codec: Codec | str = Codec.NONE
    """`none`, `gzip` or `zstd`."""
    max_batch_bytes: int = 1 << 20
    """A batch of this size is full. Larger messages travel faster, up to about 1 MiB."""
    linger_ms: int = 5
    """How long a batch waits for more records while others of its partition are under way."""
    max_in_flight: int = 32
    """How many batches of a partition are under way at once; 1 without idempotence."""
    buffer_bytes: int = 64 << 20
    """Bytes of records held until they are answered; then `send` waits."""
    idempotent: bool = True
    """Whether the broker stores a batch once that was sent twice."""
    delivery_timeout_ms: int = 120_000
    """How long a record is tried, counted from its batch's first one."""

    def __post_init__(self) -> None:
        for name, low, high in (
            ("max_batch_bytes", 1, BATCH_BYTES_CEILING),
            ("linger_ms", 0, 3_600_000),
            ("max_in_flight", 1, SEQUENCE_WINDOW),
            ("buffer_bytes", FIRST_GRANT_BYTES, 1 << 40),
            ("delivery_timeout_ms", 1, 1 << 40),
        ):
            if not low <= getattr(self, name) <= high:
                message = f"{name} must be {low} to {high}, not {getattr(self, name)}"
                raise InvalidError("INVALID_SETTING", message, setting=name)
        if self.codec_number is None:
            message = f"codec must be none, gzip or zstd, not {self.codec!r}"
            raise InvalidError("INVALID_SETTING", message, setting="codec")

    @property
    def codec_number(self) -> Codec | None:
        """The codec; None if there is none of this name."""
        if isinstance(self.codec, Codec):
            return self.codec
        return {codec.name.lower(): codec for codec in Codec}.get(self.codec)
