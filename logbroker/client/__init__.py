"""gRPC out: the Python client."""

from logbroker.client import forks as _forks  # noqa: F401  # before gRPC
from logbroker.client.admin import Admin, BrokerInfo, GrownTopic, TopicDescription
from logbroker.client.audience import TopicPartition
from logbroker.client.client import Client
from logbroker.client.consumer import Consumer
from logbroker.client.consumer_settings import ConsumerSettings, Settle
from logbroker.client.consumer_stats import ConsumerStats, LostRecords
from logbroker.client.dead_letter_admin import (
    DeadLetterFilter,
    DeadLetterInfo,
    DeadLetterRecord,
    RedriveInfo,
)
from logbroker.client.delivered import Delivered, DeliveredBatch, StableId
from logbroker.client.group_status import (
    Commit,
    DeadLetterProgress,
    GroupDescription,
    GroupInfo,
    GroupSummary,
    MemberInfo,
    OffsetReset,
    PartitionProgress,
    RecordExplanation,
    Shift,
)
from logbroker.client.handler import Handler, Reject, Retry
from logbroker.client.partition_stream import Reset, Timestamp
from logbroker.client.producer import Producer
from logbroker.client.producer_settings import ProducerSettings
from logbroker.client.reader import Reader, ReaderSettings
from logbroker.client.receipts import PendingReceipt, PendingReceipts
from logbroker.client.record_batch import RecordBatch
from logbroker.client.settlements import PendingSettlement
from logbroker.client.worker import Worker
from logbroker.client.worker_stats import WorkerStats

__all__ = [
    "Admin",
    "BrokerInfo",
    "Client",
    "Commit",
    "Consumer",
    "ConsumerSettings",
    "ConsumerStats",
    "DeadLetterFilter",
    "DeadLetterInfo",
    "DeadLetterProgress",
    "DeadLetterRecord",
    "Delivered",
    "DeliveredBatch",
    "GroupDescription",
    "GroupInfo",
    "GroupSummary",
    "GrownTopic",
    "Handler",
    "LostRecords",
    "MemberInfo",
    "OffsetReset",
    "PartitionProgress",
    "PendingReceipt",
    "PendingReceipts",
    "PendingSettlement",
    "Producer",
    "ProducerSettings",
    "Reader",
    "ReaderSettings",
    "RecordBatch",
    "RecordExplanation",
    "RedriveInfo",
    "Reject",
    "Reset",
    "Retry",
    "Settle",
    "Shift",
    "StableId",
    "Timestamp",
    "TopicDescription",
    "TopicPartition",
    "Worker",
    "WorkerStats",
]
