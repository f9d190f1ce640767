"""gRPC out: the Python client."""

from logbroker.client import forks as _forks  # noqa: F401  # before gRPC
from logbroker.client.admin import Admin, BrokerInfo, GrownTopic, TopicDescription
from logbroker.client.client import Client
from logbroker.client.consumer import Consumer, ConsumerStats, LostRecords
from logbroker.client.consumer_settings import ConsumerSettings, Settle
from logbroker.client.delivered import Delivered, DeliveredBatch, StableId
from logbroker.client.handler import Handler, Reject, Retry
from logbroker.client.membership import TopicPartition
from logbroker.client.partition_stream import Reset, Timestamp
from logbroker.client.producer import Producer
from logbroker.client.producer_settings import ProducerSettings
from logbroker.client.reader import Reader, ReaderSettings
from logbroker.client.receipts import PendingReceipt, PendingReceipts
from logbroker.client.record_batch import RecordBatch
from logbroker.client.settlements import PendingSettlement
from logbroker.client.worker import Worker, WorkerStats

__all__ = [
    "Admin",
    "BrokerInfo",
    "Client",
    "Consumer",
    "ConsumerSettings",
    "ConsumerStats",
    "Delivered",
    "DeliveredBatch",
    "GrownTopic",
    "Handler",
    "LostRecords",
    "PendingReceipt",
    "PendingReceipts",
    "PendingSettlement",
    "Producer",
    "ProducerSettings",
    "Reader",
    "ReaderSettings",
    "RecordBatch",
    "Reject",
    "Reset",
    "Retry",
    "Settle",
    "StableId",
    "Timestamp",
    "TopicDescription",
    "TopicPartition",
    "Worker",
    "WorkerStats",
]
