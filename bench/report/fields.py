"""Fields of JSON, of the type that is wanted, or an error that says which one is not there."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


class UnreadableError(Exception):
    """A file is not what a report can be made of; the message names the place in it."""


class Fields:
    """An object of JSON and its place in the file. What nobody asks for is not looked at."""

    def __init__(self, value: object, place: str) -> None:
        """Takes an object; raises UnreadableError if it is something else."""
        if not isinstance(value, Mapping):
            raise UnreadableError(f"{place or 'the file'} must be an object, is {_kind(value)}")
        self._value: Mapping[str, Any] = value
        self._place = place

    def text(self, name: str) -> str:
        """Returns a string."""
        return text(self._needed(name), self._at(name))

    def number(self, name: str) -> float:
        """Returns a number."""
        return number(self._needed(name), self._at(name))

    def maybe(self, name: str, read: Callable[[object, str], Found]) -> Found | None:
        """Returns what `read` makes of a value and its place; None if it is absent or null."""
        value = self._value.get(name)
        return None if value is None else read(value, self._at(name))

    def items(self, name: str, read: Callable[[object, str], Found]) -> tuple[Found, ...]:
        """Returns what `read` makes of each item of a list."""
        return items(self._needed(name), self._at(name), read)

    def named(self, name: str, read: Callable[[object, str], Found]) -> dict[str, Found]:
        """Returns what `read` makes of each value of an object."""
        return named(self._needed(name), self._at(name), read)

    def _needed(self, name: str) -> object:
        if name not in self._value:
            raise UnreadableError(f"{self._at(name)} is missing")
        return self._value[name]

    def _at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name


def load(path: Path) -> object:
    """Returns what a file of JSON holds; raises UnreadableError if it holds none."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{path} cannot be read: {error}") from error


def text(value: object, place: str) -> str:
    """Returns a string."""
    if not isinstance(value, str):
        raise UnreadableError(f"{place} must be a string, is {_kind(value)}")
    return value


def number(value: object, place: str) -> float:
    """Returns a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnreadableError(f"{place} must be a number, is {_kind(value)}")
    return value


def truth(value: object, place: str) -> bool:
    """Returns true or false."""
    if not isinstance(value, bool):
        raise UnreadableError(f"{place} must be true or false, is {_kind(value)}")
    return value


def items(value: object, place: str, read: Callable[[object, str], Found]) -> tuple[Found, ...]:
    """Returns what `read` makes of each item of a list."""
    if not isinstance(value, list):
        raise UnreadableError(f"{place} must be a list, is {_kind(value)}")
    return tuple(read(item, f"{place}[{at}]") for at, item in enumerate(value))


def named(value: object, place: str, read: Callable[[object, str], Found]) -> dict[str, Found]:
    """Returns what `read` makes of each value of an object."""
    if not isinstance(value, Mapping):
        raise UnreadableError(f"{place} must be an object, is {_kind(value)}")
    return {name: read(item, f'{place}["{name}"]') for name, item in value.items()}


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
