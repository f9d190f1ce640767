"""A ledger to try things on, with a clock and a journal of its own."""

from random import Random

from logbroker.group.ledger import Ledger
from logbroker.group.ledger_events import KEEPING, Delivered, Keeping, Leased, Moment
from logbroker.group.record_state import Cause
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import GroupSettings

ACK, RETRY, RELEASE, REJECT = Cause.ACKNOWLEDGE, Cause.RETRY, Cause.RELEASE, Cause.REJECT


class Bench:
    """A ledger, a clock and a log of events."""

    def __init__(self, high_watermark=10, keys=None, **values):
        retry = values.pop("retry", RetryPolicy(max_failures=3))
        self.ledger = Ledger(GroupSettings(retry=retry, **values))
        self.high_watermark = high_watermark
        self.now = Moment(1_000, 1_700_000_000_000)
        self.random = Random(1)
        self.token = 0
        self.log = []
        if keys is not None:
            self.high_watermark = len(keys)
            self.ledger.learn_keys(0, [key.encode() for key in keys])

    @property
    def state(self):
        return self.ledger.state

    def apply(self, events):
        for event in events:
            self.log.append((self.now, event))
            self.ledger.apply(event, self.now)
        return events

    def lease(self, member="a", max_count=100, **values):
        self.token += 1
        decided = self.ledger.decide_lease(
            member,
            self.token,
            self.now,
            high_watermark=self.high_watermark,
            max_count=max_count,
            **values,
        )
        self.apply(decided)
        return decided[0].ranges if decided else ()

    def settle(self, first, end, cause=ACK, token=None, **values):
        token = self.token if token is None else token
        return self.apply(
            self.ledger.decide_settle(token, [(first, end)], cause, self.now, self.random, **values)
        )

    def pass_ms(self, ms):
        self.now = Moment(self.now.mono_ms + ms, self.now.wall_ms + ms)
        self.apply(self.ledger.decide_expire(self.now, self.random))
        return self.apply(self.ledger.decide_due(self.now))

    def vanish(self, member="a"):
        return self.apply(self.ledger.decide_vanish(member, self.now, self.random))

    def restarted(self, *, off_ms=0):
        """Replays what the journal kept on a broker whose monotonic clock begins anew."""
        other = Bench(self.high_watermark)
        other.ledger = Ledger(self.ledger.settings)
        other.now = Moment(5, self.now.wall_ms + off_ms)
        other.token = self.token
        for _, event in self.log:
            if KEEPING[type(event)] is not Keeping.NEVER:
                kept = Delivered(event.ranges) if isinstance(event, Leased) else event
                other.ledger.apply(kept, other.now)
        return other

    def states(self):
        return "".join(self.state.state_of(at).name[0] for at in range(self.high_watermark))
