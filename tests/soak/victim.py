"""A member that holds what it is given until it is killed.

    python -m tests.soak.victim ADDRESS GROUP

Says `has some` once it has been given a record, or has waited for one for 3 s.
"""

import asyncio
import sys
from contextlib import suppress

from logbroker.client import Client

from .account import WORK


async def main(address: str, group: str) -> None:
    """Holds on."""
    async with Client(address) as client, client.consumer(group, WORK) as consumer:
        with suppress(TimeoutError):
            async with asyncio.timeout(3):
                await anext(consumer)
        print("has some", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
