"""One record, as applications see it. Null and empty differ everywhere."""

from typing import NamedTuple


class Header(NamedTuple):
    """One named value. `value` None is null, which is not empty."""

    name: str
    value: bytes | None


class Record(NamedTuple):
    """A record as it was read: where it lies, and what it holds."""

    offset: int
    timestamp_ms: int
    """The producer's, in ms since 1970, unchanged."""
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    partition: int = 0

    def header(self, name: str) -> bytes | None:
        """Returns the value of the last header of this exact name; None if there is none.

        Names may repeat: `header_values` returns all.
        """
        return next(
            (header.value for header in reversed(self.headers) if header.name == name), None
        )

    def header_values(self, name: str) -> list[bytes | None]:
        """Returns the values of all headers of this exact name, in their order."""
        return [header.value for header in self.headers if header.name == name]
