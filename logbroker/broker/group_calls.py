"""What an operator does with groups: makes, looks at, changes, moves, deletes them."""

from collections.abc import Sequence

from logbroker.broker.beginning import Beginning
from logbroker.broker.explain import Explain, Explained
from logbroker.broker.group_admin import GroupAdmin
from logbroker.broker.groups import Groups
from logbroker.broker.member import Member
from logbroker.broker.membership import Membership
from logbroker.broker.offsets import Commit, CommitResult, OffsetReset, Offsets
from logbroker.broker.progress_view import DeadLetterProgress, PartitionProgress, ProgressView
from logbroker.broker.stats import GroupStats
from logbroker.group.group import Group
from logbroker.group.settings import GroupSettings
from logbroker.group.start_position import Position


class GroupCalls:
    """A facade: UnavailableError once the journal of groups has failed, else it delegates."""

    def __init__(
        self,
        groups: Groups,
        members: Membership,
        beginning: Beginning,
        admin: GroupAdmin,
        offsets: Offsets,
        view: ProgressView,
        explain: Explain,
    ) -> None:
        self._groups = groups
        self._members = members
        self._beginning = beginning
        self._admin = admin
        self._offsets = offsets
        self._view = view
        self._explain = explain

    async def create(self, name: str, settings: GroupSettings) -> Group:
        """Creates a group. AlreadyExistsError, InvalidError, ExhaustedError."""
        self._groups.check()
        return await self._beginning.create(name, settings)

    def get(self, name: str) -> Group:
        """Returns a group. NotFoundError."""
        self._groups.check()
        return self._groups.state.catalog.get(name)

    def members(self, name: str) -> list[tuple[Member, list[tuple[str, int]]]]:
        """Returns the members of a group, and what belongs to each in `partition` order."""
        self._groups.check()
        return [(one, self._members.ownership.owned_by(one)) for one in self._members.members(name)]

    async def progress(self, name: str, topic: str = "") -> list[PartitionProgress]:
        """Returns how far a group is; see `ProgressView.progress`."""
        self._groups.check()
        return await self._view.progress(name, topic)

    def dead_letters(self, name: str) -> list[DeadLetterProgress]:
        """Returns what is parked of a group; see `ProgressView.dead_letters`."""
        self._groups.check()
        return self._view.dead_letters(name)

    async def list_page(
        self, page_size: int, page_token: str
    ) -> tuple[list[tuple[Group, GroupStats]], str]:
        """Lists groups in pages; see `GroupAdmin.list_page`."""
        self._groups.check()
        return await self._admin.list_page(page_size, page_token)

    async def update(self, name: str, settings: GroupSettings) -> Group:
        """Changes settings; see `GroupAdmin.update`."""
        self._groups.check()
        return await self._admin.update(name, settings)

    async def delete(self, name: str, *, is_forced: bool = False) -> None:
        """Deletes a group; see `GroupAdmin.delete`."""
        self._groups.check()
        await self._admin.delete(name, is_forced=is_forced)

    async def commit_offsets(self, group: str, commits: Sequence[Commit]) -> list[CommitResult]:
        """Settles all below offsets; see `Offsets.commit`."""
        self._groups.check()
        return await self._offsets.commit(group, commits)

    async def reset_offsets(
        self,
        group: str,
        topic: str,
        partitions: Sequence[int],
        to: Position,
        *,
        is_forced: bool = False,
        is_dry_run: bool = False,
    ) -> list[OffsetReset]:
        """Moves a group; see `Offsets.reset`."""
        self._groups.check()
        return await self._offsets.reset(
            group, topic, partitions, to, is_forced=is_forced, is_dry_run=is_dry_run
        )

    async def explain(self, group: str, topic: str, partition: int, offset: int) -> Explained:
        """Says why a record is not delivered; see `Explain.explain`."""
        self._groups.check()
        return await self._explain.explain(group, topic, partition, offset)
