"""logbroker: a log-structured streaming broker that is also a dependable work queue.

The names here are the Python client's. Errors are in `logbroker.errors`, and the broker's
are the ones a client raises.
"""

from logbroker.client import (
    Admin,
    Client,
    Commit,
    Consumer,
    DeadLetterFilter,
    Delivered,
    DeliveredBatch,
    PendingReceipt,
    PendingReceipts,
    PendingSettlement,
    Producer,
    Reader,
    RecordBatch,
    Reject,
    Retry,
    Shift,
    Timestamp,
    TopicPartition,
    Worker,
)
from logbroker.client.blocking import BlockingClient
from logbroker.config import Durability
from logbroker.errors import LogbrokerError
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import AfterDeadLetter, GroupSettings, Order
from logbroker.record.receipt import Receipt
from logbroker.record.record import Header, Record
from logbroker.topic.topic import Topic, TopicSettings

__all__ = [
    "Admin",
    "AfterDeadLetter",
    "BlockingClient",
    "Client",
    "Commit",
    "Consumer",
    "DeadLetterFilter",
    "Delivered",
    "DeliveredBatch",
    "Durability",
    "Exhausted",
    "GroupSettings",
    "Header",
    "LogbrokerError",
    "Order",
    "PendingReceipt",
    "PendingReceipts",
    "PendingSettlement",
    "Producer",
    "Reader",
    "Receipt",
    "Record",
    "RecordBatch",
    "Reject",
    "Retry",
    "RetryPolicy",
    "Shift",
    "Timestamp",
    "Topic",
    "TopicPartition",
    "TopicSettings",
    "Worker",
]
