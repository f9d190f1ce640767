"""What all parts of the load share: a client, sizes, chance, the account, and when to end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from logbroker.client import Client
from logbroker.errors import LogbrokerError, OutcomeUnknownError

from .account import Account
from .sizes import Sizes

EXPECTED = {
    "TOPIC_NOT_FOUND", "GROUP_NOT_FOUND", "PARTITION_NOT_FOUND", "REDRIVE_RUNNING",
    "GROUP_IN_USE", "DEAD_LETTER_NOT_FOUND", "MEMBER_FENCED",
}  # fmt: skip
"""What may well be the answer where others reset, delete and redrive at the same time."""


class Setting:
    """Of one loading process."""

    def __init__(self, client: Client, address: str, sizes: Sizes, seed: int) -> None:
        self.client = client
        self.address = address
        self.sizes = sizes
        self.chance = Random(seed)
        self.account = Account()
        self.is_over = asyncio.Event()
        """Set when nothing new shall begin."""

    async def pause(self, longest_s: float) -> bool:
        """Waits for half of that time up to all of it; returns whether to go on."""
        seconds = longest_s * self.chance.uniform(0.5, 1)
        try:
            async with asyncio.timeout(seconds):
                await self.is_over.wait()
        except TimeoutError:
            return True
        return False

    @asynccontextmanager
    async def doing(self, what: str) -> AsyncIterator[None]:
        """Counts what is done, and errors by their reason; those that are expected apart."""
        try:
            yield
        except OutcomeUnknownError:
            self.account.unknown_count += what.startswith("produce")
            self.account.errors[f"{what}: OUTCOME_UNKNOWN"] += 1
        except LogbrokerError as error:
            kind = "done" if error.reason in EXPECTED else "errors"
            getattr(self.account, kind)[f"{what}: {error.reason}"] += 1
        else:
            self.account.done[what] += 1
