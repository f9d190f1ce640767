"""What an operator does in a random run, and what the models make of it."""

import asyncio
from typing import Any

from logbroker.broker.dead_letter_view import DeadLetterFilter
from logbroker.broker.offsets import Commit
from logbroker.group.record_state import State
from logbroker.group.redrive import RedriveState, Selection
from logbroker.group.settings import Start
from logbroker.group.start_position import Position


class RandomOperator:
    """Redrives, resets and commits, whoever holds what."""

    def __init__(self, run: Any, source: str, partitions: range) -> None:
        self._run = run
        self._source = source
        self._partitions = partitions

    async def redrive(self) -> None:
        """Makes some of what is parked available again."""
        limit = self._run.random.choice([0, 1, 3])
        parked = [
            (place, at)
            for place, shadow in sorted(self._run.shadows.by_place.items())
            for at, entry in enumerate(shadow.model.entries)
            if entry.state is State.PARKED
        ]
        chosen = parked[: limit or None]
        for place, at in chosen:
            self._run.shadows[place].note_possible(at, redrives=1)
        which = DeadLetterFilter(group="g", topic=self._source, selection=Selection(limit=limit))
        started = await self._run.driven.drive(self._run.broker.dead_letters.start_redrive(which))
        assert started.redrive.selected == len(chosen)
        await self._run.driven.drive(self._until_redriven(started.redrive.redrive_id))
        for place, at in chosen:
            self._run.shadows[place].model.redrive(at)
        self._run.shadows.note_durable()
        self._run.shadows.done["redriven"] += len(chosen)
        self._run.tell("redrives", len(chosen))

    async def _until_redriven(self, redrive_id: str) -> None:
        while (
            self._run.broker.dead_letters.get_redrive(redrive_id).redrive.state
            is RedriveState.RUNNING
        ):
            await self._run.driven.clock.advance(0)

    async def reset(self) -> None:
        """Moves the group in a partition, whoever holds what."""
        number = self._run.random.choice(self._partitions)
        shadow = self._run.shadows[self._source, number]
        self._run.look()
        offset = self._run.random.randint(0, len(shadow.model.entries))
        to = Position(Start.OFFSET, offset)
        resetting = asyncio.ensure_future(
            self._run.broker.groups.reset_offsets("g", self._source, [number], to, is_forced=True)
        )
        await asyncio.sleep(0)
        shadow.reset(offset)
        self._run.shadows.note()
        await self._run.driven.drive(resetting)
        self._run.shadows.note_durable()
        self._run.tell("resets", number, offset)

    async def commit(self) -> None:
        """Settles all below an offset, whoever holds it."""
        number = self._run.random.choice(self._partitions)
        shadow = self._run.shadows[self._source, number]
        self._run.look()
        offset = self._run.random.randint(shadow.model.committed(), len(shadow.model.entries))
        committing = asyncio.ensure_future(
            self._run.broker.groups.commit_offsets(
                "g", [Commit(self._source, "", number, offset, False)]
            )
        )
        await asyncio.sleep(0)
        shadow.commit(offset)
        self._run.shadows.note()
        [result] = await self._run.driven.drive(committing)
        assert not result.error, result
        self._run.shadows.note_durable()
        self._run.tell("commits", number, offset)
