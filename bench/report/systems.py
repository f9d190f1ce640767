"""The systems in a report: their order, what they are called, and how they are drawn.

The colours are Paul Tol's `bright`, which colour-blind readers can tell apart. In lines, each
system has a marker and a dash of its own as well; bars have the name beside them.
"""

from dataclasses import dataclass

OURS = "logbroker"
LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a system is called and drawn."""

    title: str
    """As the run calls it in what was skipped."""
    short: str
    colour: str
    marker: str = "o"
    dash: str = "-"


LOOKS = {
    OURS: Look(title="logbroker", short="logbroker", colour="#4477AA"),
    "kafka": Look(title="Apache Kafka", short="Kafka", colour="#EE6677", marker="s"),
    "nats": Look(title="NATS JetStream", short="NATS", colour="#228833", marker="^"),
    "redis": Look(title="Redis Streams", short="Redis", colour="#AA3377", marker="D"),
    "rabbitmq-stream": Look(
        title="RabbitMQ streams", short="RabbitMQ stream", colour="#CCBB44", marker="v"
    ),
    "rabbitmq-quorum": Look(
        title="RabbitMQ quorum queues", short="RabbitMQ quorum", colour="#66CCEE", marker="P"
    ),
    LIMIT: Look(title="bare limit", short="bare limit", colour="#555555", marker="", dash="--"),
}
UNKNOWN = "#999999"


def system_of(who: str) -> str:
    """Returns the system's name: `kafka` of `kafka Java load tool`."""
    return who.partition(" ")[0]


def is_ours(who: str) -> bool:
    """Tells whether it is a way to use logbroker."""
    return system_of(who) == OURS


def look_of(who: str) -> Look:
    """Returns the look of a system, or of one of its tools; grey for one that is not known."""
    name = system_of(who)
    return LOOKS.get(name) or Look(title=name, short=name, colour=UNKNOWN, marker="x")


def label_of(who: str) -> str:
    """Returns what a reader is told: `Kafka, Java load tool`."""
    way = who.partition(" ")[2]
    return look_of(who).short + (f", {way}" if way else "")


def rank_of(who: str) -> tuple[int, int, str]:
    """Returns the place in every order: logbroker, the others, their tools, the limit."""
    name = system_of(who)
    place = list(LOOKS).index(name) if name in LOOKS else len(LOOKS)
    is_way = name != who and name != OURS
    return (2 if name == LIMIT else int(is_way), place, who)
