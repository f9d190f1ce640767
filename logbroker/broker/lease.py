"""Leases for workers without a stream."""

from dataclasses import dataclass

from logbroker.broker.beginning import Beginning
from logbroker.broker.groups import Groups
from logbroker.broker.holding import Holding
from logbroker.broker.leasing import Delivery, Leasing, Limits
from logbroker.broker.membership import FIELDS_BYTES
from logbroker.broker.settle import EXTENSION_MS
from logbroker.errors import InvalidError
from logbroker.limits import RESPONSE_BYTES

WAIT_MS = 60_000
"""The longest a call may wait for a record."""
DEFAULT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSpec:
    """What to lease."""

    group: str
    topics: tuple[str, ...]
    max_records: int = 0
    """0: 1."""
    max_bytes: int = 0
    """0: DEFAULT_BYTES."""
    lease_ms: int = 0
    """0: the group's."""
    wait_ms: int = 0

    def __post_init__(self) -> None:
        bounds = {"max_records": 1 << 31, "max_bytes": 1 << 62}
        bounds |= {"lease_ms": EXTENSION_MS, "wait_ms": WAIT_MS}
        for name, most in bounds.items():
            value = getattr(self, name)
            if not 0 <= value <= most:
                message = f"{name} is 0 to {most}, not {value}"
                raise InvalidError("INVALID_ARGUMENT", message, **{name: value})


class LeaseCalls:
    """Each call looks for itself, and is gone when it has an answer; its lease stays."""

    def __init__(self, groups: Groups, beginning: Beginning, leasing: Leasing) -> None:
        self._groups = groups
        self._beginning = beginning
        self._leasing = leasing

    async def lease(self, spec: LeaseSpec) -> Delivery | None:
        """Returns records of one partition; None if there are none in time.

        NotFoundError where it waits and a topic, or the group, is deleted.
        """
        _, topics = await self._beginning.begin(spec.group, spec.topics)
        catalog, now_ms = self._groups.state.catalog, self._groups.clock.now_ms()
        self._groups.commit(catalog.decide_seen([spec.group], now_ms))
        live = self._groups.live_group(spec.group)
        topic_ids = frozenset(topic.topic_id for topic in topics)
        holding = Holding(f"call-{self._groups.new_token()}", topic_ids, is_stream=False)
        live.holdings[holding.name] = holding
        try:
            ledger_ids = live.ledgers_of(topic_ids)
            self._groups.random.shuffle(ledger_ids)  # else the first would keep others from theirs
            for ledger_id in ledger_ids:
                holding.look_into(ledger_id)
            if not spec.wait_ms:
                return await self._look(holding, spec)
            return await self._groups.clock.wait_for(self._find(holding, spec), spec.wait_ms)
        except TimeoutError:
            return None
        finally:
            live.holdings.pop(holding.name, None)

    async def _find(self, holding: Holding, spec: LeaseSpec) -> Delivery:
        while True:
            holding.has_news.clear()
            if holding.failure:
                raise holding.failure.again()
            if found := await self._look(holding, spec):
                return found
            await holding.has_news.wait()

    async def _look(self, holding: Holding, spec: LeaseSpec) -> Delivery | None:
        limits = Limits(
            spec.max_records or 1, spec.max_bytes or DEFAULT_BYTES, RESPONSE_BYTES - FIELDS_BYTES
        )
        suspects = self._groups.live_group(spec.group).suspects_for(holding)
        while suspects or holding.ledgers:
            ledger_id, suspects = suspects or next(iter(holding.ledgers)), None
            holding.forget(ledger_id)
            lease_ms = spec.lease_ms or None
            if found := await self._leasing.lease(ledger_id, holding, limits, lease_ms):
                return found
            self._groups.watch(ledger_id)
        return None
