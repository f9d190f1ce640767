"""Asks the broker how everything has ended for a group."""

from logbroker.client import Client, DeadLetterFilter
from logbroker.group.dead_letter import dead_letter_of

from .events import Letter, Outcome, Place


async def outcome_of(
    client: Client, group: str, topic: str, *, skip_damage: bool = False
) -> Outcome:
    """Returns the log, and what the group's ledgers and dead-letter topic say."""
    log: dict[Place, tuple[bytes | None, bytes]] = {}
    async with client.reader(topic, skip_damage=skip_damage) as reader:
        async for batch in reader.batches():
            for record in batch.records():
                place = Place(topic, record.partition, record.offset)
                log[place] = record.key, record.value or b""
    progress = await client.admin.get_offsets(group, topic)
    committed = {one.partition: one.committed_offset or 0 for one in progress}
    states = {}
    for place in log:
        if place.offset < committed.get(place.partition, 0):
            states[place] = "settled"
        else:
            why = await client.admin.explain(group, *place)
            states[place] = "settled" if why.state == "settled" else "pending"
    redrives = await client.admin.list_redrives(group)
    return Outcome(
        log,
        states,
        await _letters_of(client, group, topic),
        redriven=sum(one.redriven_count for one in redrives),
        expired_unsettled=sum(one.expired_unsettled_count for one in progress),
    )


async def _letters_of(client: Client, group: str, topic: str) -> list[Letter]:
    """Returns what lies in the dead-letter topic, with what the broker lists of it."""
    which = DeadLetterFilter(group=group, topic=topic)
    found = await client.admin.list_dead_letters(which, with_resolved=True)
    listed = {(one.partition, one.offset): one for one in found}
    if not listed:
        return []
    letters = []
    async with client.reader(found[0].dead_letter_topic) as reader:
        async for record in reader:
            told = dead_letter_of(record.headers)
            info = listed.get((record.partition, record.offset))
            letters.append(
                Letter(
                    Place(found[0].dead_letter_topic, record.partition, record.offset),
                    Place(told.topic, told.partition, told.offset),
                    info.state if info else "not listed",
                    told.failures,
                    # what is resolved need not be remembered
                    info.redrives if info and info.state != "resolved" else 0,
                    record.key,
                    record.value or b"",
                )
            )
    return sorted(letters)


def differences(before: Outcome, after: Outcome) -> dict[str, list[object]]:
    """Returns what of two outcomes is not the same, the first few of each kind."""
    found: dict[str, list[object]] = {}
    for field in Outcome._fields:
        old, new = getattr(before, field), getattr(after, field)
        if old == new:
            continue
        if isinstance(old, dict):
            old, new = old.items(), new.items()
        elif not isinstance(old, list):
            old, new = [old], [new]
        gone = [one for one in old if one not in new]
        came = [one for one in new if one not in old]
        found[field] = [*gone[:5], "became", *came[:5]]
    return found
