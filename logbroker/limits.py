"""Hard limits, and the relations between them. Settings may lower these and never raise them."""

NAME_CHARS = 200
"""The longest name of a topic or group."""

PARTITIONS_PER_TOPIC = 10_000
PARTITIONS = 20_000
"""Of all topics of a broker together."""

BATCH_BYTES_CEILING = 64 << 20
"""What `batch_bytes` and `record_bytes` can be raised to."""

LENGTH_BYTES_CEILING = 1 << 28
"""A length in a stored batch is a varint of 4 bytes: 28 bits."""

REQUEST_OVERHEAD_BYTES = 1 << 20
"""What a request may hold besides its batch."""

RESPONSE_BYTES = 4 << 20
"""gRPC's default for the largest message a client takes."""

RESPONSE_FIELDS_BYTES = 1_024
"""The room in a FetchResponse for everything but its batches."""

FETCH_BYTES = 1 << 20
"""How many bytes of batches one response carries unless the request says otherwise."""

PAGE_SIZE = 1_000
"""The most rows of a page."""

DEFAULT_PAGE_SIZE = 100
"""How many rows a page has unless the request says otherwise."""

SEQUENCE_WINDOW = 64
"""How many batches of a producer a partition remembers: what may be under way at once."""

GROUPS = 10_000
GROUPS_IN_STATS = 1_000
"""So many are told of one by one; lists have pages for more."""
"""Of a broker."""

UNSETTLED_RECORDS = 1_000_000
"""What `max_unsettled` of a group can be raised to."""

REASON_BYTES = 1_024
"""A failure's reason is cut at this length."""

LAST_FAILURES_BYTES = 4 << 20
"""What is kept, of one partition's dead letters that failed again, of their last failures."""

REDRIVE_RUNS = 10_000
"""How many runs of equal redrive counts a partition keeps for the sake of resolved dead letters."""

RECORDS_PER_BATCH = 1 << 20
"""Bounds what one batch costs to check, however small its records."""

assert BATCH_BYTES_CEILING + 81 < LENGTH_BYTES_CEILING, "a batch's length fits its varint"
assert GROUPS_IN_STATS <= PAGE_SIZE, "they are one page of a list"
assert FETCH_BYTES + RESPONSE_FIELDS_BYTES <= RESPONSE_BYTES, "a response fits gRPC's default"
