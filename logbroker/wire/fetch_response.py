"""A FetchResponse: some fields, then the bytes of a file."""

from logbroker.v1.fetch_service_pb2 import FetchResponse


def fetch_response(
    batches: bytes,
    *,
    high_watermark: int,
    log_start_offset: int,
    next_offset: int,
    start_offset: int,
) -> bytes:
    """Returns a serialized FetchResponse.

    The fields first, then the batches as they are: concatenated protobuf messages merge,
    and a run of file bytes is the `batches` field.
    """
    fields = FetchResponse(
        high_watermark=high_watermark,
        log_start_offset=log_start_offset,
        next_offset=next_offset,
        start_offset=start_offset,
    )
    return fields.SerializeToString() + batches
