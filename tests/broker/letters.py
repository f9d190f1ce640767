"""Dead letters of a broker without a server, and what tests of them say again and again."""

from contextlib import asynccontextmanager

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.errors import UnavailableError
from logbroker.group.record_state import Cause
from logbroker.storage.memory import MemoryEngine

from .brokers import broker_on
from .grouped import delivered, settle

DEAD = "a.g.dlq"
LETTERS = DeadLetterFilter(group="g", topic="a")


class StubbornEngine(MemoryEngine):
    """Refuses to append to the topics in `refused`, whatever incarnation they are."""

    def __init__(self, clock):
        super().__init__(clock)
        self.refused = set()

    async def open(self, partition, config):
        log = await super().open(partition, config)
        append = type(log).append

        def append_unless_refused(batch, **fields):
            if partition.topic in self.refused:
                raise UnavailableError("STORAGE_FAILED", "the disk is gone")
            return append(log, batch, **fields)

        log.append = append_unless_refused
        return log

    def reopened(self):
        engine = super().reopened()
        made = StubbornEngine(self._clock)
        made._logs, made.refused = engine._logs, self.refused
        return made


@asynccontextmanager
async def restarted(engine, clock):
    """Yields a broker on what a crash left, once it has had the time to finish what was begun."""
    async with broker_on(engine.reopened(), clock) as broker:
        await clock.advance(0)
        yield broker


async def reject(broker, member, first, end, reason="bad"):
    """Lets the member reject records it has been given or is given now."""
    token, *_ = await delivered(broker, member)
    [result] = await settle(broker, member, Cause.REJECT, token, first, end, reason=reason)
    return result


async def reject_all(broker, member):
    """Lets the member reject all it is given next."""
    token, first, end = await delivered(broker, member)
    await settle(broker, member, Cause.REJECT, token, first, end)


async def letters(broker):
    """Returns the places in the source of the dead letters that are listed."""
    found, _ = await broker.dead_letters.list_page(
        LETTERS, with_resolved=True, page_size=0, page_token=""
    )
    return [(one.letter.offset, one.state) for one in found]
