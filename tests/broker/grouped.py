"""Members of groups without a server, and what tests of them say again and again."""

from contextlib import asynccontextmanager

from logbroker.broker.membership import MemberSpec
from logbroker.broker.settle import Settlement

from .brokers import next_delivery


async def delivered(broker, member):
    """Returns token, first offset and end of the next delivery."""
    found = await next_delivery(broker, member)
    return found.token, found.runs[0].first, found.runs[-1].end


async def settle(broker, member, cause, token, first, end, **fields):
    """Settles and returns the results."""
    settlements = [Settlement(token, first, end, cause, **fields)]
    return await broker.settle(member.group, settlements)


@asynccontextmanager
async def member_on(broker, group="g", topics=("a",), **spec):
    """Yields a member, which leaves in order."""
    member = await broker.join(MemberSpec(group=group, topics=topics, **spec))
    yield member
    await broker.leave(member, has_vanished=False)
