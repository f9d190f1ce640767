"""Protobuf's length-delimited fields, for messages that are put together from serialized parts."""


def framed(tag: int, data: bytes) -> bytes:
    """Returns a field: its tag, of one byte, the length of `data`, and `data`."""
    size = len(data)
    if size < 128:
        return bytes((tag, size)) + data
    return bytes((tag,)) + varint(size) + data


def varint(value: int) -> bytes:
    """Returns a number of at least 0 in groups of 7 bits, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
