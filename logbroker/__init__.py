"""logbroker: a log-structured streaming broker that is also a dependable work queue.

The names here are the Python client's. Errors are in `logbroker.errors`, and the broker's
are the ones a client raises.
"""

from logbroker.client import (
    Admin,
    Client,
    PendingReceipt,
    PendingReceipts,
    Producer,
    Reader,
    RecordBatch,
    Timestamp,
)
from logbroker.client.blocking import BlockingClient
from logbroker.config import Durability
from logbroker.errors import LogbrokerError
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header, Record
from logbroker.topic.topic import Topic, TopicSettings

__all__ = [
    "Admin",
    "BlockingClient",
    "Client",
    "Durability",
    "Header",
    "LogbrokerError",
    "PendingReceipt",
    "PendingReceipts",
    "Producer",
    "Reader",
    "Receipt",
    "Record",
    "RecordBatch",
    "Timestamp",
    "Topic",
    "TopicSettings",
]
