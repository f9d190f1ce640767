"""Groups as an operator sees them: listed, changed, deleted, forgotten when unused."""

import asyncio

import structlog

from logbroker.broker.groups import Groups
from logbroker.broker.membership import Membership
from logbroker.broker.offsets import Offsets
from logbroker.broker.progress_view import ProgressView
from logbroker.broker.stats import GroupStats
from logbroker.errors import InvalidError, LogbrokerError, NotFoundError
from logbroker.group.group import Group
from logbroker.group.group_events import GroupDeleted
from logbroker.group.settings import GroupSettings
from logbroker.limits import DEFAULT_PAGE_SIZE, GROUPS_IN_STATS, PAGE_SIZE

log = structlog.get_logger()


class GroupAdmin:
    """What becomes of groups besides reading."""

    def __init__(
        self, groups: Groups, membership: Membership, offsets: Offsets, view: ProgressView
    ) -> None:
        self._groups = groups
        self._membership = membership
        self._offsets = offsets
        self._view = view

    async def list_page(
        self, page_size: int, page_token: str
    ) -> tuple[list[tuple[Group, GroupStats]], str]:
        """Returns groups by name, those behind `page_token`, and the token of the next page."""
        if page_size < 0:
            message = f"page_size must be at least 0, not {page_size}"
            raise InvalidError("INVALID_ARGUMENT", message, page_size=page_size)
        size = min(page_size or DEFAULT_PAGE_SIZE, PAGE_SIZE)
        found = [one for one in self._groups.state.catalog.groups() if one.group > page_token]
        listed = []
        for group in found[:size]:
            try:
                listed.append((group, await self._view.stats(group.group)))
            except NotFoundError:  # deleted meanwhile
                continue
            await asyncio.sleep(0)  # others have a turn
        return listed, found[size - 1].group if len(found) > size else ""

    async def stats(self) -> list[GroupStats]:
        """Returns how groups are, by name: the first GROUPS_IN_STATS of them."""
        listed, _ = await self.list_page(GROUPS_IN_STATS, "")
        return [stats for _, stats in listed]

    async def update(self, name: str, settings: GroupSettings) -> Group:
        """Changes settings. PreconditionError where the order of a group in use would change."""
        catalog = self._groups.state.catalog
        in_use = self._offsets.is_in_use(name)
        done = self._groups.commit(catalog.decide_update(name, settings, is_in_use=in_use))
        if live := self._groups.live.get(name):
            live.refresh()
            for ledger_id in self._groups.state.of(name):
                live.look_into(ledger_id)
        await done
        return catalog.get(name)

    async def delete(self, name: str, *, is_forced: bool = False) -> None:
        """Deletes a group with its progress; its members are fenced. Its dead letters stay."""
        catalog = self._groups.state.catalog
        in_use = self._offsets.is_in_use(name)
        decided = catalog.decide_delete(name, is_in_use=in_use, is_forced=is_forced)
        while untried := self._groups.letters.untried(name):  # else they would be lost
            await asyncio.wait(untried)
            decided = catalog.decide_delete(name, is_in_use=in_use, is_forced=is_forced)
        done = self._groups.commit(decided)
        self._forget(name)
        await done

    async def keep_house(self) -> None:
        """Notes which groups are in use, and forgets those that long were not."""
        groups = self._groups
        if groups.journal.failure:
            return
        catalog, now_ms = groups.state.catalog, groups.clock.now_ms()
        in_use = set(self._membership.groups_in_use()) | groups.letters.groups()
        in_use |= {
            ledger_id.group
            for ledger_id, ledger in groups.state.all().items()
            if ledger.state.leases.count
        }
        try:
            await groups.forget_lost_topics()
            groups.commit(catalog.decide_seen(in_use, now_ms))
            unused = catalog.decide_forget_unused(in_use, now_ms)
            for event in unused:
                assert isinstance(event, GroupDeleted)
                log.info("unused group forgotten", group=event.group)
            done = groups.commit(unused)
            for event in unused:
                assert isinstance(event, GroupDeleted)
                self._forget(event.group)
            await done
        except LogbrokerError as error:
            log.warning("groups not tidied", reason=error.reason, error=str(error))

    def _forget(self, name: str) -> None:
        message = f"group {name!r} is deleted"
        self._membership.fence(name, NotFoundError("GROUP_NOT_FOUND", message, group=name))
        self._groups.live.pop(name, None)
