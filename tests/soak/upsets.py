"""What operators do: resets, redrives, trims, looks; topics and groups that come and go."""

from itertools import count

from logbroker.client.dead_letter_admin import DeadLetterFilter
from logbroker.client.group_status import Shift

from .account import GROUPS, REPLAY, WORK
from .setting import Setting


async def reset(setting: Setting) -> None:
    """Moves a group back under its members."""
    while await setting.pause(setting.sizes.upset_every_s):
        async with setting.doing("reset"):
            shift = Shift(-setting.chance.randint(1, 200))
            await setting.client.admin.reset_offsets(REPLAY, WORK, shift, force=True)


async def redrive(setting: Setting) -> None:
    """Gives all groups their dead letters back."""
    while await setting.pause(setting.sizes.upset_every_s):
        await redrive_all(setting)


async def redrive_all(setting: Setting) -> None:
    """Begins a redrive for each group."""
    for group in GROUPS:
        async with setting.doing("redrive"):
            await setting.client.admin.start_redrive(DeadLetterFilter(group=group, topic=WORK))


async def trim(setting: Setting) -> None:
    """Removes what all groups have settled."""
    while await setting.pause(setting.sizes.upset_every_s):
        async with setting.doing("trim"):
            committed: dict[int, list[int]] = {}
            for group in GROUPS:
                for one in await setting.client.admin.get_offsets(group, WORK):
                    committed.setdefault(one.partition, []).append(one.committed_offset or 0)
            for partition, offsets in committed.items():
                # a reset goes back by 200 records at most: leave it those
                offset = min(offsets) - 400
                if len(offsets) == len(GROUPS) and offset > 0:
                    await setting.client.admin.trim_topic(WORK, partition, offset)


async def look(setting: Setting) -> None:
    """Lists and describes, as a console does."""
    while await setting.pause(5):
        async with setting.doing("look"):
            await setting.client.admin.list_groups()
            await setting.client.admin.get_topic(WORK)
            await setting.client.admin.get_group(setting.chance.choice(GROUPS))


async def make_and_delete(setting: Setting) -> None:
    """A topic with a group: made, written to, read, deleted."""
    admin = setting.client.admin
    for number in count():
        if not await setting.pause(setting.sizes.upset_every_s / 3):
            return
        name = f"passing-{number}"
        async with setting.doing("make and delete"):
            await admin.create_topic(name, 4)
            async with setting.client.producer(name) as producer:
                for _ in range(50):
                    await producer.send(b"passing")
            async with setting.client.consumer(name, name, follow=False) as consumer:
                seen = sum([1 async for _ in consumer])
            if seen != 50:
                setting.account.errors[f"a passing topic gave {seen} of 50"] += 1
            if number % 2:
                await admin.delete_group(name)
                await admin.delete_topic(name)
            else:
                await admin.delete_topic(name)
                await admin.delete_group(name)
