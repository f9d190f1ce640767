"""Members of groups: they join, work, fail at some records, leave, and are killed."""

import asyncio
import os
import signal
import sys
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path

from logbroker.client import Client, Delivered, Reject, Retry
from logbroker.record.offset_ranges import OffsetRanges

from .account import REPLAY, WITNESS, WORK, WORKING_GROUPS
from .setting import Setting
from .sizes import PATIENCE_MS

ROOT = Path(__file__).parents[2]
FAIL_EVERY, REJECT_EVERY = 97, 1_009


async def fail_at_some(record: Delivered) -> None:
    """Fails once at about 1 of 100, and rejects 1 of 1,000 until it is redriven."""
    if record.offset % REJECT_EVERY == 0 and not record.redrives:
        raise Reject("not as it is")
    if record.offset % FAIL_EVERY == 0 and not record.failures and not record.redrives:
        raise Retry(delay_ms=50, reason="not yet")


async def come_and_go(setting: Setting, group: str) -> None:
    """One place in a group: a member takes it for some seconds, then another one."""
    while not setting.is_over.is_set():
        async with setting.doing("join and leave"), AsyncExitStack() as stack:
            client = setting.client
            if setting.chance.random() < 0.3:  # over a connection of its own
                client = await stack.enter_async_context(Client(setting.address))
            await stack.enter_async_context(client.worker(group, WORK, fail_at_some))
            if not await setting.pause(setting.sizes.member_life_s):
                return
        await setting.pause(0.2)


class Witness:
    """A member that stays, and notes all that it is given."""

    def __init__(self) -> None:
        self.seen: dict[int, OffsetRanges] = defaultdict(OffsetRanges)

    async def stay(self, setting: Setting) -> None:
        """Reads until the end."""

        async def see(record: Delivered) -> None:
            self.seen[record.partition].add(record.offset, record.offset + 1)

        async with setting.client.worker(WITNESS, WORK, see):
            await setting.is_over.wait()

    def unseen_count(self, partition: int, high_watermark: int) -> int:
        """Returns how many records it was not given."""
        return high_watermark - self.seen[partition].count_within(0, high_watermark)


async def stay_in_replay(setting: Setting) -> None:
    """Two members of the group that is reset: they lose their leases each time."""
    async with AsyncExitStack() as stack:
        for _ in range(2):
            worker = setting.client.worker(REPLAY, WORK, fail_at_some)
            await stack.enter_async_context(worker)
        await setting.is_over.wait()


async def be_killed(setting: Setting) -> None:
    """A member in a process of its own, killed in the midst of its work."""
    while await setting.pause(2 * setting.sizes.upset_every_s):
        group = setting.chance.choice(WORKING_GROUPS)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.soak.victim", setting.address, group,
            cwd=ROOT, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            assert process.stdout
            async with asyncio.timeout(PATIENCE_MS / 1_000):
                is_joined = await process.stdout.readline()
            setting.account.done["killed" if is_joined else "ended before it was killed"] += 1
            await setting.pause(1)
        except TimeoutError:
            setting.account.errors["a member to be killed was given nothing"] += 1
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
            await process.wait()
