"""Events as bytes, and back; noise is refused."""

import json

import pytest

from logbroker.errors import DataLossError
from logbroker.group import events
from logbroker.group.group import Group, TopicRead
from logbroker.group.group_events import (
    GroupCreated,
    GroupDeleted,
    GroupSeen,
    GroupUpdated,
    InLedger,
    LedgerId,
    TokensReserved,
    TopicAttached,
    TopicDetached,
)
from logbroker.group.ledger_events import (
    KEEPING,
    Acknowledged,
    Committed,
    Delivered,
    Discarded,
    Failed,
    FailureRow,
    FailuresRestored,
    GivenUp,
    Keeping,
    KeyReleased,
    LastFailuresRestored,
    Leased,
    LedgerRestored,
    LetterPending,
    LettersWritten,
    Redriven,
    Reset,
    Skipped,
    Started,
    Suspected,
    Trimmed,
)
from logbroker.group.record_state import Cause
from logbroker.group.redrive import (
    Redrive,
    RedriveAdvanced,
    RedriveEnded,
    RedriveStarted,
    RedriveState,
    Selection,
    Walk,
)
from logbroker.group.retry_policy import Exhausted, RetryPolicy
from logbroker.group.settings import GroupSettings, Order, Start

ID = LedgerId("a group", "t1", 3)
RANGES = ((0, 10), (12, 13))
SETTINGS = GroupSettings(
    order=Order.KEY, start=Start.TIME, start_time_ms=5, retry=RetryPolicy(max_failures=9)
)
GROUP = Group(
    group="g", settings=SETTINGS, created_ms=4, topics=(TopicRead(topic="t", topic_id="i"),)
)
REDRIVE = Redrive(
    redrive_id="r",
    group="g",
    topic_id="i",
    selection=Selection(key=b"\xff", reason="no departure time", limit=3),
    created_ms=1,
    walks=(Walk(0, 2, 5),),
)
IN_LEDGER = [
    Started(7),
    Delivered(RANGES),
    Acknowledged(0, RANGES),
    Acknowledged(0, ((4, 5),)),
    Failed(0, RANGES, Cause.EXPIRE, 2, 10, 20, 500, 'say "é"', is_suspect=True),
    Failed(0, RANGES, Cause.RETRY, 1, 10, 10, 0, ""),
    GivenUp(0, ((1, 2),), Exhausted.DEAD_LETTER, Cause.REJECT, 0, 1, 1, "bad", True, b"\x00key"),
    GivenUp(0, RANGES, Exhausted.BLOCK, Cause.RETRY, 5, 1, 2, "bad"),
    LetterPending(3, GivenUp(0, RANGES, Exhausted.DEAD_LETTER, Cause.RETRY, 5, 1, 2, "bad")),
    LettersWritten(7),
    Suspected(0, RANGES),
    Committed(9),
    Reset(9, 2, "commit"),
    Trimmed(50, 3),
    Skipped(RANGES),
    Redriven(RANGES),
    Discarded(RANGES),
    KeyReleased(4),
    LedgerRestored(
        1,
        9,
        1,
        ((3, 4),),
        ((5, 6),),
        (),
        ((1, 9, 1),),
        ((5, 6, 2),),
        ((0, b"k"), (1, None)),
        (1, 2),
    ),
    FailuresRestored((FailureRow(1, 2, 3, 4, 5, 6, True, "why"),)),
    LastFailuresRestored((FailureRow(9, 10, 3, 4, 5, 0, False, "why"),)),
]
OTHERS = [
    GroupCreated(GROUP),
    GroupUpdated("g", SETTINGS),
    TopicAttached("g", TopicRead(topic="t", topic_id="i", dead_letter_topic="t.g.dlq")),
    TopicDetached("g", "i"),
    GroupSeen("g", 5),
    GroupDeleted("g"),
    TokensReserved(1 << 40),
    RedriveStarted(REDRIVE),
    RedriveAdvanced("r", 0, 4, 2),
    RedriveEnded("r", RedriveState.CANCELLED, 9),
]
ALL = [*(InLedger(ID, event) for event in IN_LEDGER), *OTHERS]


@pytest.mark.parametrize(
    "event", ALL, ids=lambda event: type(getattr(event, "event", event)).__name__
)
def test_an_event_comes_back_as_it_was_also_from_a_newer_broker(event):
    data = events.encode(event)
    assert events.decode(data) == event
    assert events.decode(json.dumps({**json.loads(data), "of tomorrow": [1]}).encode()) == event


def test_every_kind_that_is_kept_is_tried():
    kept = {kind for kind, keeping in KEEPING.items() if keeping is not Keeping.NEVER}
    assert kept - {Leased} == {type(event) for event in IN_LEDGER}


def test_of_a_lease_the_delivery_is_kept_and_tokens_are_not():
    leased = Leased(77, "somebody", RANGES, 1_000)
    assert events.decode(events.encode(InLedger(ID, leased))) == InLedger(ID, Delivered(RANGES))
    data = events.encode(InLedger(ID, Acknowledged(77, ((0, 10),))))
    assert data == b'{"e":"ack","g":"a group","t":"t1","p":3,"r":[0,10]}'


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b'{"e":"dance"}',
        b'{"e":"ack","g":"g","t":"t","p":0}',
        b'{"e":"ack","g":"g","t":"t","p":0,"r":[1]}',
        b'{"e":"ack","g":"g","t":"t","p":0,"r":[2,1]}',
        b'{"e":"fail","g":"g","t":"t","p":0,"r":[1,2],"c":"magic"}',
        b'{"e":"failures","g":"g","t":"t","p":0,"rows":[[1]]}',
        b'{"e":"GroupCreated","group":{"settings":{"retry":{}}}}',
    ],
)
def test_noise_is_no_event(data):
    with pytest.raises(DataLossError, match="not an event"):
        events.decode(data)
