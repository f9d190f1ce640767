"""How a group begins to read a topic: created if need be, and started in every partition."""

from collections.abc import Sequence

from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.groups import Groups
from logbroker.errors import InvalidError, NotFoundError, PreconditionError
from logbroker.group.events import Event, InLedger, LedgerId
from logbroker.group.group import Group, TopicRead
from logbroker.group.settings import GroupSettings, Start
from logbroker.group.start_position import start_offset
from logbroker.topic.names import check_name
from logbroker.topic.topic import Topic


class Beginning:
    """Makes ledgers."""

    def __init__(self, groups: Groups, dead_letters: DeadLetters) -> None:
        self._groups = groups
        self._dead_letters = dead_letters

    async def create(self, name: str, settings: GroupSettings) -> Group:
        """Creates a group. AlreadyExistsError, InvalidError, ExhaustedError."""
        check_name(name)
        catalog = self._groups.state.catalog
        now_ms = self._groups.clock.now_ms()
        await self._groups.commit(catalog.decide_create(name, settings, now_ms=now_ms))
        return catalog.get(name)

    async def begin(
        self, name: str, topics: Sequence[str], settings: GroupSettings | None = None
    ) -> tuple[Group, list[Topic]]:
        """Returns the group, made if need be, and the topics it has begun to read.

        `settings` are for a group that is made now. NotFoundError for a topic there is not;
        InvalidError for one of the group's own dead letters.
        """
        check_name(name)
        if not topics:
            raise InvalidError("INVALID_ARGUMENT", "name at least one topic")
        found = [self._groups.topics.get(topic) for topic in dict.fromkeys(topics)]
        for topic in found:
            self._check(name, topic)
        catalog = self._groups.state.catalog
        if catalog.find(name) is None:
            now_ms = self._groups.clock.now_ms()
            made = catalog.decide_create(name, settings or GroupSettings(), now_ms=now_ms)
            await self._groups.commit(made)
        for topic in found:
            await self.start(name, topic)
        for topic in found:
            if self._groups.topics.find(topic.topic_id) is None:
                message = f"topic {topic.topic!r} was deleted meanwhile"
                raise NotFoundError("TOPIC_NOT_FOUND", message, topic=topic.topic)
        return catalog.get(name), found

    async def start(self, name: str, topic: Topic) -> None:
        """Starts the group in each partition of the topic where it has not begun."""
        groups = self._groups
        group = groups.state.catalog.get(name)
        is_known = group.topic(topic.topic_id) is not None
        missing = [
            partition
            for partition in topic.partitions()
            if groups.state.get(LedgerId(name, topic.topic_id, partition.partition)) is None
        ]
        if is_known and not missing:
            return
        found: dict[int, int | None] = {}
        if group.settings.start is Start.TIME and not is_known:
            for partition in missing:
                log = groups.partitions.get(partition).log
                found[partition.partition] = await log.find(group.settings.start_time_ms)
        catalog = groups.state.catalog
        group = catalog.get(name)
        attached: list[Event] = []
        if group.topic(topic.topic_id) is None:
            read = TopicRead(
                topic=topic.topic,
                topic_id=topic.topic_id,
                parks_exhausted=topic.is_dead_letter_topic,
            )
            attached += catalog.decide_attach(name, read)
        waits = [groups.commit(attached)]
        started: list[Event] = []
        for partition in missing:
            ledger_id = LedgerId(name, topic.topic_id, partition.partition)
            if groups.state.get(ledger_id) is not None:
                continue
            bounds = groups.partitions.get(partition).log.bounds()
            offset = start_offset(
                group.settings,
                log_start_offset=bounds.log_start_offset,
                high_watermark=bounds.high_watermark,
                found=found.get(partition.partition),
                is_new_partition=is_known,
            )
            ledger = groups.state.new_ledger(ledger_id)
            started += [InLedger(ledger_id, event) for event in ledger.decide_start(offset)]
        waits.append(groups.commit(started))
        if live := groups.live.get(name):
            live.refresh()
        for wait in waits:
            await wait
        if attached and not topic.is_dead_letter_topic:
            await self._dead_letters.topics.link_if_there(name, topic)

    def _check(self, group: str, topic: Topic) -> None:
        if topic.is_dead_letter_topic:
            if topic.source_group == group:
                message = f"{topic.topic!r} holds what {group!r} failed at; redrive it instead"
                raise InvalidError("INVALID_ARGUMENT", message, topic=topic.topic)
            return
        self._dead_letters.topics.check_name(group, topic)
        known = self._groups.state.catalog.find(group)
        if known is None or known.topic(topic.topic_id) is None:
            self._dead_letters.topics.check_apart(group, topic)


def check_order(group: Group, settings: GroupSettings | None) -> None:
    """Raises PreconditionError where a member wants another order than the group has."""
    if settings and settings.order is not group.settings.order:
        has, wants = group.settings.order, settings.order
        message = f"group {group.group!r} has the order {has}; this member wants {wants}"
        details = {"group": group.group, "order": has, "wanted": wants}
        raise PreconditionError("GROUP_IN_USE", message, **details)
