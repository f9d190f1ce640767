"""The mixed load: a process beside the broker's.

    python -m tests.soak.load ADDRESS SIZES SEED LEAK

Says `ready` once topics and groups are there. After a line `end` nothing new begins, the
groups finish what there is, and the account is written as one line of JSON. LEAK is how many
connections a second are opened and never closed: 0, but in a test of the soak itself.
"""

import asyncio
import json
import os
import sys

from logbroker.client import Client

from . import members, producing, upsets
from .account import GROUPS, WITNESS, WORK, WORKING_GROUPS
from .setting import Setting
from .sizes import PATIENCE_MS, SIZES
from .topics import prepare


async def main(address: str, sizes: str, seed: str, leak: str) -> None:
    """Loads the broker until it is told to end."""
    async with Client(address, timeout_ms=PATIENCE_MS) as client:
        setting = Setting(client, address, SIZES[sizes], int(seed))
        await prepare(client, setting.sizes)
        print("ready", flush=True)
        witness = members.Witness()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_hear_the_end(setting))
            if int(leak):
                tasks.create_task(_leak(setting, int(leak)))
            for work in (
                producing.send_singly, producing.send_many, producing.send_widely,
                producing.visit, members.be_killed, members.stay_in_replay, witness.stay,
                upsets.reset, upsets.redrive, upsets.trim, upsets.look, upsets.make_and_delete,
            ):  # fmt: skip
                tasks.create_task(work(setting), name=work.__name__)
            for group in WORKING_GROUPS:
                for _ in range(setting.sizes.member_count):
                    tasks.create_task(members.come_and_go(setting, group))
        await _finish(setting, witness)
    print(json.dumps(setting.account.to_json()), flush=True)


async def _hear_the_end(setting: Setting) -> None:
    if not await asyncio.to_thread(sys.stdin.readline):
        os._exit(1)  # whoever started it is dead, and perhaps the broker, too
    setting.is_over.set()


async def _leak(setting: Setting, per_second: int) -> None:
    kept: list[Client] = []
    while await setting.pause(1):
        opened = [Client(setting.address, timeout_ms=PATIENCE_MS) for _ in range(per_second)]
        await asyncio.gather(*(client.admin.get_broker() for client in opened))
        kept += opened
    for client in kept:
        await client.close()


async def _finish(setting: Setting, witness: members.Witness) -> None:
    """Lets all groups settle what there is, dead letters included; then counts."""
    setting.is_over.clear()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(witness.stay(setting))
        for group in GROUPS:
            if group != WITNESS:
                tasks.create_task(_work_on(setting, group))
        try:
            async with asyncio.timeout(setting.sizes.drain_s):
                while not await _is_finished(setting):
                    await upsets.redrive_all(setting)
                    await asyncio.sleep(0.5)
        except TimeoutError:
            setting.account.errors[f"not finished within {setting.sizes.drain_s} s"] += 1
        setting.is_over.set()
    partitions = (await setting.client.admin.get_topic(WORK)).partitions
    setting.account.stored_count = sum(one.high_watermark for one in partitions)
    setting.account.unseen_count = sum(
        witness.unseen_count(one.partition, one.high_watermark) for one in partitions
    )


async def _work_on(setting: Setting, group: str) -> None:
    async with setting.client.worker(group, WORK, members.fail_at_some):
        await setting.is_over.wait()


async def _is_finished(setting: Setting) -> bool:
    account = setting.account
    for group in GROUPS:
        found = await setting.client.admin.get_group(group)
        account.unsettled[group] = found.lag
        account.parked[group] = sum(
            one.parked_count + one.redriven_count for one in found.dead_letters
        )
    return not any((*account.unsettled.values(), *account.parked.values()))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
