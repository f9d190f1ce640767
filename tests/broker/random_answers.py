"""What members of a random run answer, and what the models make of it."""

import asyncio
from typing import Any

from logbroker.broker.settle import Settlement
from logbroker.group.record_state import Cause

CAUSES = [Cause.ACKNOWLEDGE] * 4 + [Cause.RETRY] * 2 + [Cause.REJECT, Cause.RELEASE]


class RandomAnswers:
    """Of the members, and of calls that lease, in one run."""

    def __init__(self, run: Any) -> None:
        self._run = run

    async def settle_some(self) -> None:
        """Answers for some leases."""
        leases = self._run.shadows.leases
        for token in self._run.random.sample(sorted(leases), min(len(leases), 3)):
            await self.answer(token)

    async def give_up(self) -> None:
        """Rejects something that is held."""
        held = [
            (token, at)
            for token, (place, *_) in self._run.shadows.leases.items()
            for at in self._run.shadows[place].model.held_by(token)
        ]
        if held:
            await self.settle(*self._run.random.choice(held), Cause.REJECT)

    async def answer(self, token: int) -> None:
        """Answers for a record of a lease or, late, for one that it does not hold."""
        self._run.look()
        place, *_ = self._run.shadows.leases[token]
        model = self._run.shadows[place].model
        if held := model.held_by(token):
            await self.settle(token, self._run.random.choice(held), self._run.random.choice(CAUSES))
            return
        at = self._run.random.randrange(len(model.entries))
        late = Settlement(token, at, at + 1, Cause.RETRY)
        [result] = await self._run.driven.drive(self._run.broker.settle("g", [late]))
        if not self._run.driven.is_crashing:
            assert result.error, "an answer under a lease that is over is good"
            assert result.error.reason == "LEASE_LOST"
        self._run.shadows.done["late"] += 1

    async def settle(self, token: int, at: int, cause: Cause) -> None:
        """Answers for one record that is held."""
        place, name, _ = self._run.shadows.leases[token]
        shadow = self._run.shadows[place]
        delay_ms = self._run.random.choice([None, None, 700]) if cause is Cause.RETRY else None
        self._run.tell(cause.value, name, place, at, delay_ms)
        self._run.shadows.done[cause.value] += 1
        one = Settlement(token, at, at + 1, cause, delay_ms, "drawn")
        settling = asyncio.ensure_future(self._run.broker.settle("g", [one]))
        await asyncio.sleep(0)  # it is decided now, and will be durable
        match cause:
            case Cause.ACKNOWLEDGE:
                shadow.settle([at], "acknowledged")
            case Cause.RELEASE:
                shadow.model.free(at)
            case Cause.RETRY:
                self._run.shadows.fail(place, at, self._run.now_ms, delay_ms=delay_ms)
            case Cause.REJECT:
                self._run.shadows.fail(place, at, self._run.now_ms, counts=False)
        if cause is not Cause.ACKNOWLEDGE:
            shadow.take_back_behind([at])
        self._run.shadows.note()
        [result] = await self._run.driven.drive(settling)
        if result.error and self._run.driven.is_crashing:
            raise result.error
        assert not result.error, result
        if cause is not Cause.RELEASE:
            self._run.shadows.note_durable()
        await self._run.read_letters()
