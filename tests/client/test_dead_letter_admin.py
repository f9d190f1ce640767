"""The verbs of dead letters: what is asked, and what is made of the answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from logbroker.client import Client, DeadLetterFilter
from logbroker.record.record import Header
from logbroker.v1 import dead_letter_service_pb2 as pb
from logbroker.v1 import records_pb2
from logbroker.v1.dead_letter_service_pb2_grpc import (
    DeadLetterServiceServicer,
    add_DeadLetterServiceServicer_to_server,
)

WHICH = DeadLetterFilter(group="g", topic="t", first_offset=0, key=b"", limit=3)
JOB = pb.Redrive(redrive_id="r1", filter=WHICH.to_proto(), state="running", selected_count=3)


class Fake(DeadLetterServiceServicer):
    """Answers by the book, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def ListDeadLetters(self, request, context):
        self.asked.append(request)
        first = int(request.page_token or 0)
        letters = [pb.DeadLetter(offset=at, state="parked") for at in range(first, first + 2)]
        return pb.ListDeadLettersResponse(dead_letters=letters, next_page_token=str(first + 2))

    async def GetDeadLetter(self, request, context):
        self.asked.append(request)
        letter = pb.DeadLetter(offset=request.offset, reason="no", key=b"k")
        headers = [records_pb2.Header(name="h")]
        return pb.GetDeadLetterResponse(dead_letter=letter, headers=headers)

    async def ResolveDeadLetters(self, request, context):
        self.asked.append(request)
        return pb.ResolveDeadLettersResponse(count=5)

    async def CopyDeadLetters(self, request, context):
        self.asked.append(request)
        return pb.CopyDeadLettersResponse(count=6)

    async def StartRedrive(self, request, context):
        self.asked.append(request)
        return pb.StartRedriveResponse(redrive=JOB)

    async def GetRedrive(self, request, context):
        return pb.GetRedriveResponse(redrive=JOB)

    async def ListRedrives(self, request, context):
        return pb.ListRedrivesResponse(redrives=[JOB, JOB])

    async def CancelRedrive(self, request, context):
        return pb.CancelRedriveResponse(redrive=JOB)


@asynccontextmanager
async def fake() -> AsyncIterator[tuple[Fake, Client]]:
    service, server = Fake(), grpc.aio.server()
    add_DeadLetterServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with Client(f"127.0.0.1:{port}") as client:
            yield service, client
    finally:
        await server.stop(None)


async def test_dead_letters_are_listed_page_by_page_up_to_the_limit():
    async with fake() as (service, client):
        found = await client.admin.list_dead_letters(WHICH, with_resolved=True)
        assert [one.offset for one in found] == [0, 1, 2]
        assert [request.page_size for request in service.asked] == [3, 1]
        assert service.asked[0].with_resolved
        asked = service.asked[0].filter
        assert asked.HasField("first_offset")
        assert asked.HasField("key")
        assert not asked.HasField("end_offset")
        assert DeadLetterFilter.of(asked) == WHICH


async def test_a_dead_letter_comes_with_its_record():
    async with fake() as (_, client):
        found = await client.admin.get_dead_letter("g", "t", 0, 7)
        assert (found.dead_letter.offset, found.dead_letter.key) == (7, b"k")
        assert (found.value, found.headers) == (None, (Header("h", None),))


async def test_dead_letters_are_resolved_and_copied():
    async with fake() as (service, client):
        assert await client.admin.resolve_dead_letters(WHICH, discard=True) == 5
        assert await client.admin.copy_dead_letters(WHICH, "elsewhere", dry_run=True) == 6
        resolve, copy = service.asked
        assert (resolve.discard, resolve.dry_run) == (True, False)
        assert (copy.to_topic, copy.dry_run) == ("elsewhere", True)


async def test_redrives_are_started_watched_and_cancelled():
    async with fake() as (service, client):
        started = await client.admin.start_redrive(WHICH, records_per_second=0.5)
        assert (started.redrive_id, started.state, started.selected_count) == ("r1", "running", 3)
        assert started.filter == WHICH
        assert service.asked[0].records_per_second == 0.5
        assert await client.admin.get_redrive("r1") == started
        assert await client.admin.list_redrives("g") == [started, started]
        assert await client.admin.cancel_redrive("r1") == started
