"""What happens by itself: leases expire, back-offs end."""

from collections.abc import Sequence

import structlog

from logbroker.broker.dead_letters import DeadLetters
from logbroker.broker.groups import Groups
from logbroker.broker.ownership import Ownership
from logbroker.errors import LogbrokerError
from logbroker.group.events import InLedger, LedgerId
from logbroker.group.ledger_events import Failed, GivenUp
from logbroker.group.record_state import Cause

AGAIN_MS = 5_000
"""When to try again what could not be done, as where no dead-letter topic can be made."""

log = structlog.get_logger()


class Expiry:
    """Does what is due in one ledger."""

    def __init__(self, groups: Groups, dead_letters: DeadLetters, ownership: Ownership) -> None:
        self._groups = groups
        self._dead_letters = dead_letters
        self._ownership = ownership

    def ring(self, ledger_id: LedgerId) -> None:
        """Does what is due, at once or, where a topic must be made for it, soon."""
        self._groups.spawn(self._do(ledger_id))

    async def _do(self, ledger_id: LedgerId) -> None:
        groups = self._groups
        if groups.journal.failure or groups.state.get(ledger_id) is None:
            return
        groups.live_group(ledger_id.group)

        def decide() -> list[InLedger]:
            ledger = groups.state.get(ledger_id)
            if ledger is None:
                return []
            now = groups.moment()
            events = [*ledger.decide_due(now), *ledger.decide_expire(now, groups.random)]
            return [InLedger(ledger_id, event) for event in events]

        try:
            decided = await self._dead_letters.decided(decide)
            holders = self._holders(decided)
            groups.commit(decided)
            for name in holders:
                self._ownership.lease_expired(ledger_id, name)
            if ledger := groups.state.get(ledger_id):
                groups.timer.arm(ledger_id, ledger.next_deadline_ms())
        except LogbrokerError as error:
            log.error("leases not expired", ledger=ledger_id, reason=error.reason, error=str(error))
            groups.timer.arm(ledger_id, groups.clock.monotonic_ms() + AGAIN_MS)

    def _holders(self, decided: Sequence[InLedger]) -> set[str]:
        """Returns who holds the leases that expire."""
        holders = set()
        for ledger_id, event in decided:
            if isinstance(event, Failed | GivenUp) and event.cause is Cause.EXPIRE:
                lease = self._groups.ledger(ledger_id).state.leases.get(event.token)
                holders.update([lease.member] if lease else [])
        return holders
