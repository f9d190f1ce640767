"""Histories and outcomes in few words, to tell the checker."""

from logbroker.broker.groups import TOKENS_RESERVED_AT_ONCE
from logbroker.group.retry_policy import RetryPolicy
from logbroker.group.settings import Order

from .checker import Checker
from .events import (
    Answer,
    Answered,
    Begun,
    Confirmed,
    Letter,
    Noted,
    Outcome,
    Place,
    Received,
    RedriveAsked,
    Refused,
    Stored,
    TakenBack,
)

ACK, RETRY, RELEASE, REJECT = Answer
SECOND = 1_000_000_000
LATER_LIFE = TOKENS_RESERVED_AT_ONCE + 1
"""A token of a broker that has been started again."""


def at(offset, topic="t"):
    return Place(topic, 0, offset)


def stored(*offsets, keys=b"kkk"):
    return [Stored(at(offset), keys[offset : offset + 1], b"%d" % offset) for offset in offsets]


def received(offset, token=1, number=1, failures=0, redrives=0, member="a", topic="t"):
    return Received(member, token, at(offset, topic), number, failures, redrives)


def answered(offset, token=1, answer=ACK, member="a", topic="t"):
    place = at(offset, topic)
    return [Begun(member, token, place), Answered(member, token, place, answer)]


def handled(offset, token=1, answer=ACK, member="a", topic="t"):
    done = Confirmed(member, token, at(offset, topic), answer)
    return [*answered(offset, token, answer, member, topic), done]


def back(offset, token=1, member="a"):
    return TakenBack(member, token, at(offset))


def late(offset, token=1, member="a", **told):
    return Refused(member, token, at(offset), **told)


def outcome(count, keys=b"kkk", letters=(), redriven=0, first=0, lost=0, **states):
    places = range(first, count)
    log = {at(offset): (keys[offset : offset + 1], b"%d" % offset) for offset in places}
    found = {at(offset): states.get(f"s{offset}", "settled") for offset in places}
    return Outcome(log, found, list(letters), redriven, lost)


def letter(offset=0, source=0, state="parked", value=b"0", failures=0, redrives=0):
    return Letter(at(offset, "dlq"), at(source), state, failures, redrives, b"k", value)


def check(events, end, order=Order.PARTITION, *, apart_ns=SECOND, **leases):
    noted = [Noted(index * apart_ns, event) for index, event in enumerate(events)]
    policy = RetryPolicy(max_failures=3)
    Checker(noted, end, order=order, policy=policy, **leases).check()


REDRIVEN = [
    *(received(0), *handled(0, answer=REJECT), RedriveAsked()),
    *(received(0, 2, 1, 0, 1, topic="dlq"), *handled(0, 2, topic="dlq")),
]
TWICE = [
    *(received(0), *handled(0, answer=RETRY), received(0, 2, 2, 1)),
    *(*handled(0, 2, RETRY), received(0, 3, 3, 2), *handled(0, 3, RETRY)),
]
