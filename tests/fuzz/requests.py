"""Requests to every method of every service: as they should be, and as bytes come.

A method is known by its descriptor alone, so one that is added is tried too. Fields get
values that mean something to the broker they are sent to, or that are on the edge.
"""

from collections.abc import Sequence
from importlib import import_module
from random import Random
from typing import Any, NamedTuple

from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from fuzz.mutations import mutated
from fuzz.samples import produce_requests
from logbroker.server.server import SERVICES

TOPICS = ("a", "b", "a.g.dlq", "a", "new", "", "__topics", "-", "x" * 201, "\u00e9")
GROUPS = ("g", "h", "g", "", "__g", "x" * 201)
NUMBERS = (0, 1, 2, 3, 5, 100, -1, (1 << 31) - 1, -(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 62)
SHORT_NUMBERS = {"wait_ms": (0, 1, 20, -1), "partition_count": (0, 1, 2, 3, -1, 10_001)}
"""Or a test would wait, or make thousands of partitions again and again."""
FLOATS = (0.0, 1.0, -1.0, 1e300, float("inf"), float("nan"))
MOST_REPEATED, MOST_DEEP = 3, 4
MUTATED_SHARE = 0.5
BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}


class Method(NamedTuple):
    """A method of a service."""

    path: str
    request: type[Message]
    response: type[Message]
    is_stream_in: bool
    is_stream_out: bool


def methods() -> list[Method]:
    """Returns all methods of our services."""
    return [_method(method) for service in SERVICES for method in _service(service).methods]


def _service(name: str) -> Any:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    module = import_module(f"logbroker.v1.{snake[1:]}_pb2")
    return module.DESCRIPTOR.services_by_name[name]


def _method(method: MethodDescriptor) -> Method:
    return Method(
        f"/{method.containing_service.full_name}/{method.name}",
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        method.client_streaming,
        method.server_streaming,
    )


def requests(random: Random, method: Method, count: int) -> list[bytes]:
    """Returns serialized requests, some of them mutated."""
    made = [_request(random, method) for _ in range(count)]
    return [
        mutated(random, data, made) if random.random() < MUTATED_SHARE else data for data in made
    ]


def _request(random: Random, method: Method) -> bytes:
    if method.path.endswith("/Produce") and random.random() < 0.5:
        return random.choice(produce_requests()).replace(b"orders", b"a").replace(b"6f1c", b"")
    message = method.request()
    fill(random, message)
    return message.SerializeToString()


def fill(random: Random, message: Message, depth: int = 0) -> None:
    """Sets about two of three fields."""
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.35 or depth > MOST_DEEP:
            continue
        if field.message_type is not None:
            if field.message_type.GetOptions().map_entry:
                continue
            for _ in range(random.randint(1, MOST_REPEATED) if field.is_repeated else 1):
                part = getattr(message, field.name)
                part = part.add() if field.is_repeated else part
                part.SetInParent()
                fill(random, part, depth + 1)
        elif field.is_repeated:
            values = [_value(random, field) for _ in range(random.randint(1, MOST_REPEATED))]
            getattr(message, field.name).extend(values)
        else:
            setattr(message, field.name, _value(random, field))


def _value(random: Random, field: FieldDescriptor) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return random.choice((b"", b"k", b"k0", random.randbytes(50), bytes(2_000)))
        case FieldDescriptor.CPPTYPE_STRING:
            return random.choice(_texts(field.name))
        case FieldDescriptor.CPPTYPE_BOOL:
            return random.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            return random.choice((0, 1, 2, 3, 99))
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return random.choice(FLOATS)
        case kind:
            low, high = BOUNDS[kind]
            numbers = SHORT_NUMBERS.get(field.name, NUMBERS)
            return min(max(random.choice(numbers), low), high)


def _texts(name: str) -> Sequence[str]:
    if "topic" in name and "id" not in name:
        return TOPICS
    return GROUPS if name == "group" else ("", "", "0:1", "a", "x" * 1_000, "\u00e9\x00")
