"""The proof behind the kill is one: it misses a lost record, a changed one, and a double."""

import io

import pytest
from rich.console import Console

from demo.crash import Aftermath, prove
from demo.figures import FiguresDifferError
from demo.flights import Flight
from demo.screen import Screen
from logbroker import Client
from logbroker.testing.running_broker import running_broker

TOPIC = "flights"
FLIGHTS = [Flight(key=b"N%d" % (n % 3), value=b"%d" % n, month=1) for n in range(20)]


async def proof_of(flights, *, published=FLIGHTS, doubled=()):
    output = io.StringIO()
    async with running_broker() as (address, _), Client(address) as client:
        await client.admin.create_topic(TOPIC, partition_count=2)
        async with client.producer(TOPIC) as producer:
            receipts = [await producer.publish(one.value, key=one.key) for one in published]
            for one in doubled:
                await producer.publish(one.value, key=one.key)
        places = frozenset((one.partition, one.offset) for one in receipts[:5])
        after = Aftermath(receipts, len(places), places)
        await prove(client, TOPIC, flights, after, Screen(Console(file=output)))
    return output.getvalue()


async def test_what_was_acknowledged_and_is_there_once_is_proved():
    assert "DIFFERS" not in await proof_of(FLIGHTS)


async def test_a_record_with_other_bytes_is_noticed():
    changed = [FLIGHTS[0]._replace(value=b"other"), *FLIGHTS[1:]]
    with pytest.raises(FiguresDifferError, match=r"before the kill: .*: 4, but it should be 5"):
        await proof_of(changed)


async def test_a_record_that_is_there_twice_is_noticed():
    with pytest.raises(FiguresDifferError, match="none of them twice: 21, but it should be 20"):
        await proof_of(FLIGHTS, doubled=FLIGHTS[:1])
