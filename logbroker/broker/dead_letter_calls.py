"""What an operator does with dead letters: looks at them, settles, copies, redrives them."""

from logbroker.broker.dead_letter_view import DeadLetterFilter, DeadLetterView
from logbroker.broker.groups import Groups
from logbroker.broker.parked_records import FoundLetter
from logbroker.broker.redrive import RedriveJobs, RedriveProgress


class DeadLetterCalls:
    """A facade: UnavailableError once the journal of groups has failed, else it delegates."""

    def __init__(self, groups: Groups, view: DeadLetterView, redrives: RedriveJobs) -> None:
        self._groups = groups
        self._view = view
        self._redrives = redrives

    async def list_page(
        self, wanted: DeadLetterFilter, *, with_resolved: bool, page_size: int, page_token: str
    ) -> tuple[list[FoundLetter], str]:
        """Lists dead letters in pages; see `DeadLetterView.list_page`."""
        self._groups.check()
        return await self._view.list_page(
            wanted, with_resolved=with_resolved, page_size=page_size, page_token=page_token
        )

    async def get(self, wanted: DeadLetterFilter, partition: int, offset: int) -> FoundLetter:
        """Returns one dead letter. NotFoundError."""
        self._groups.check()
        return await self._view.get(wanted, partition, offset)

    async def resolve(
        self, wanted: DeadLetterFilter, *, is_discard: bool = False, is_dry_run: bool = False
    ) -> int:
        """Settles dead letters; see `DeadLetterView.resolve`."""
        self._groups.check()
        return await self._view.resolve(wanted, is_discard=is_discard, is_dry_run=is_dry_run)

    async def copy(
        self, wanted: DeadLetterFilter, to_topic: str, *, is_dry_run: bool = False
    ) -> int:
        """Copies dead letters to a topic; see `DeadLetterView.copy`."""
        self._groups.check()
        return await self._view.copy(wanted, to_topic, is_dry_run=is_dry_run)

    async def start_redrive(
        self, wanted: DeadLetterFilter, rate: float = 0, *, is_dry_run: bool = False
    ) -> RedriveProgress:
        """Starts a redrive; see `RedriveJobs.start`."""
        self._groups.check()
        return await self._redrives.start(wanted, rate, is_dry_run=is_dry_run)

    def get_redrive(self, redrive_id: str) -> RedriveProgress:
        """Returns a redrive. NotFoundError."""
        self._groups.check()
        return self._redrives.get(redrive_id)

    def list_redrives(self, group: str) -> list[RedriveProgress]:
        """Returns the redrives of a group, the newest first."""
        self._groups.check()
        return self._redrives.list_of(group)

    async def cancel_redrive(self, redrive_id: str) -> RedriveProgress:
        """Ends a redrive; see `RedriveJobs.cancel`."""
        self._groups.check()
        return await self._redrives.cancel(redrive_id)
