"""A segment file and a fetch response are plain protobuf: any language reads them.

Nothing of ours reads here: Python with the generated classes, Node.js with protobufjs.
"""

import asyncio
import fcntl
import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from logbroker.broker.broker import open_broker
from logbroker.broker.fetch import FetchSpec
from logbroker.config import LimitsConfig, LogConfig, StorageConfig
from logbroker.record.columns import Columns, encode_batch
from logbroker.record.compression import Codec
from logbroker.record.record import Header
from logbroker.storage.file.engine import FileEngine
from logbroker.testing.clock import ManualClock
from logbroker.topic.topic import TopicSettings
from logbroker.v1.fetch_service_pb2 import FetchResponse
from logbroker.v1.records_pb2 import Records
from logbroker.v1.stored_batch_pb2 import Segment
from logbroker.wire.fetch_response import fetch_response

ROOT = Path(__file__).parent.parent.parent
NODE = Path(__file__).parent / "node"
MESSAGES = {"segment": Segment, "response": FetchResponse}

pytestmark = pytest.mark.slow

HEADERS = [("k", b"1"), ("k", b""), ("K", None), ("имя", b"\xff\0")]
BATCHES = [
    Columns([b"plain", b"", None]),
    Columns(
        [b"\xff\0", None, b"x" * 300],
        [b"", None, b"klucz"],
        [-5, 0, 1 << 50],
        [(0, [Header(*header) for header in HEADERS]), (2, [Header("", b"v")])],
    ),
    Columns([b"again"] * 1_000, [b"same"] * 1_000),
]
CODECS = [Codec.NONE, Codec.NONE, Codec.GZIP]


def expected():
    """Returns the records as they were given: what every reader has to find."""
    rows = []
    for columns in BATCHES:
        headers = dict(columns.headers)
        for index, value in enumerate(columns.values):
            key = columns.keys[index] if columns.keys else None
            timestamp_ms = columns.timestamps_ms[index] if columns.timestamps_ms else 7
            rows.append(row(len(rows), timestamp_ms, key, value, headers.get(index, ())))
    return rows


def row(offset, timestamp_ms, key, value, headers):
    return {
        "offset": str(offset),
        "timestamp_ms": str(timestamp_ms),
        "key": None if key is None else key.hex(),
        "value": None if value is None else value.hex(),
        "headers": [[name, None if value is None else value.hex()] for name, value in headers],
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Returns a .log file as the engine wrote it, and a response as the broker sends it."""
    return asyncio.run(written(tmp_path_factory.mktemp("interop")))


async def written(directory):
    clock = ManualClock()
    engine = await FileEngine.start(StorageConfig(data_dir=directory / "data"), clock)
    response = directory / "response"
    async with open_broker(engine, clock, defaults=LogConfig(), limits=LimitsConfig()) as broker:
        await broker.create_topic("a", 1, TopicSettings())
        for columns, codec in zip(BATCHES, CODECS, strict=True):
            await broker.produce("a", "", 0, encode_batch(columns, now_ms=7, codec=codec))
        [found] = [found async for found in broker.fetch(FetchSpec(topic="a"))]
        response.write_bytes(fetch_response(**found._asdict()))
    await engine.close()  # cuts the zeros behind the last batch
    [segment] = (directory / "data" / "topics" / "a").rglob("*.log")
    return {"segment": segment, "response": response}


@pytest.mark.parametrize("name", MESSAGES)
def test_python_reads_it_with_generated_classes_alone(files, name):
    message = MESSAGES[name].FromString(files[name].read_bytes())
    rows = []
    for batch in message.batches:
        data = gzip.decompress(batch.records) if batch.attributes & 7 == 1 else batch.records
        records = Records.FromString(data)
        headers = {line.record: line.headers for line in records.headers}
        times = records.timestamps_ms or [batch.max_timestamp_ms] * batch.record_count
        for index, value in enumerate(records.values):
            has_key = records.keys and index not in records.null_keys
            key = records.keys[index] if has_key else None
            value = None if index in records.null_values else value
            named = [
                (header.name, header.value if header.HasField("value") else None)
                for header in headers.get(index, ())
            ]
            rows.append(row(batch.base_offset + index, times[index], key, value, named))
    assert rows == expected()


@pytest.fixture(scope="module")
def node():
    """Returns the command; skips where there is no Node.js, but never in CI."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        reason = "Node.js and npm are not installed: what JavaScript reads is not tested"
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(reason)
        pytest.skip(reason)
    with (NODE / "package.json").open() as package:
        fcntl.flock(package, fcntl.LOCK_EX)  # another worker of this test run may install it too
        install(npm, json.load(package)["dependencies"]["protobufjs"])
    return node


def install(npm, version):
    installed = NODE / "node_modules" / "protobufjs" / "package.json"
    if not installed.exists() or json.loads(installed.read_text())["version"] != version:
        command = [npm, "install", "--no-package-lock", "--no-audit", "--no-fund"]
        command += ["--ignore-scripts"]
        done = subprocess.run(command, cwd=NODE, capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MESSAGES)
def test_javascript_reads_it_with_protobufjs_alone(node, files, name):
    command = [node, "read.js", str(ROOT / "proto"), MESSAGES[name].DESCRIPTOR.name, files[name]]
    done = subprocess.run(command, cwd=NODE, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["records"] == expected()
    assert name == "segment" or found["next_offset"] == str(len(expected()))
