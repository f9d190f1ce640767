"""Where a group is put, other than by what its members settle. Pure."""

from logbroker.errors import InvalidError
from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import Committed, LedgerEvent, Reset
from logbroker.group.start_position import out_of_range


def decide_commit(
    ledger: Ledger, offset: int, high_watermark: int, *, is_automatic: bool = False
) -> list[LedgerEvent]:
    """Returns what settles all below `offset`, or goes back to it if it lies behind.

    An automatic commit never goes back. InvalidError (INVALID_OFFSET) below 0 and beyond
    the high watermark, which itself is fine.
    """
    check_commit(offset, high_watermark)
    committed = ledger.state.committed
    if offset >= committed:
        return [Committed(offset)]
    return [] if is_automatic else [Reset(committed, offset, "commit")]


def check_commit(offset: int, high_watermark: int) -> None:
    """Raises InvalidError (INVALID_OFFSET) for an offset that no group could commit."""
    if not 0 <= offset <= high_watermark:
        message = f"an offset to commit is 0 to {high_watermark}, not {offset}"
        details = {"offset": offset, "high_watermark": high_watermark}
        raise InvalidError("INVALID_OFFSET", message, **details)


def decide_lost_tail(
    ledger: Ledger, log_start_offset: int, high_watermark: int
) -> list[LedgerEvent]:
    """Returns where the group goes on whose log ends before what it knows: the tail is lost.

    Offsets from the end on are given out again. What is known of them, and what waits
    before them, is forgotten: at its place where that is left, else as out of range.
    OffsetOutOfRangeError by the group's policy.
    """
    state = ledger.state
    if max(state.committed, state.delivered_end) <= high_watermark:
        return []
    bounds = {"log_start_offset": log_start_offset, "high_watermark": high_watermark}
    moved = out_of_range(ledger.settings.out_of_range, state.committed, **bounds)
    return ledger.decide_reset(moved.offset if moved else state.committed, "lost_tail")
