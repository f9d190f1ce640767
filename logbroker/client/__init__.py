"""gRPC out: the Python client."""

from logbroker.client import forks as _forks  # noqa: F401  # before gRPC
from logbroker.client.admin import Admin, BrokerInfo, GrownTopic, TopicDescription
from logbroker.client.client import Client
from logbroker.client.partition_stream import Reset, Timestamp
from logbroker.client.producer import Producer
from logbroker.client.producer_settings import ProducerSettings
from logbroker.client.reader import Reader, ReaderSettings
from logbroker.client.receipts import PendingReceipt, PendingReceipts
from logbroker.client.record_batch import RecordBatch

__all__ = [
    "Admin",
    "BrokerInfo",
    "Client",
    "GrownTopic",
    "PendingReceipt",
    "PendingReceipts",
    "Producer",
    "ProducerSettings",
    "Reader",
    "ReaderSettings",
    "RecordBatch",
    "Reset",
    "Timestamp",
    "TopicDescription",
]
