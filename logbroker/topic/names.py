"""Which names are valid, and the names we make ourselves. Pure."""

import re

from logbroker.errors import InvalidError
from logbroker.limits import NAME_CHARS

VALID = re.compile(rf"(?!-|__|\.\.?\Z)[A-Za-z0-9._-]{{1,{NAME_CHARS}}}")
RULE = f"1 to {NAME_CHARS} of A-Z a-z 0-9 . _ -, not . or .., not starting with - or __"

CATALOG_TOPIC = "__topics"
"""The internal topic that topics are journaled to."""
PRODUCERS_TOPIC = "__producers"
"""The internal topic that producers are journaled to."""

GROUPS_TOPIC = "__groups"
"""The internal topic that groups and their ledgers are journaled to."""


def dead_letter_topic(topic: str, group: str) -> str:
    """Returns the name of the topic for what the group fails at; InvalidError if too long."""
    return check_name(f"{topic}.{group}.dlq")


def check_name(name: str) -> str:
    """Returns the name of a topic or group; raises InvalidError that says the rule."""
    if not VALID.fullmatch(name):
        shown = _shown(name)
        raise InvalidError("INVALID_NAME", f"a name is {RULE}; {shown} is not", name=shown)
    return name


def check_label(field: str, label: str) -> None:
    """Raises InvalidError that says the rule, unless people can tell a member by this text."""
    if len(label) > NAME_CHARS or not label.isprintable():
        shown = _shown(label)
        message = f"{field} is at most {NAME_CHARS} printable characters; {shown} is not"
        raise InvalidError("INVALID_NAME", message, name=shown)


def _shown(name: str) -> str:
    return repr(name if len(name) <= 2 * NAME_CHARS else f"{name[:NAME_CHARS]}...")
