"""How much is done: bounded in `make test`, in full with LOGBROKER_TEST_FULL=1."""

import os
from typing import TypeVar

T = TypeVar("T")

IS_FULL = os.environ.get("LOGBROKER_TEST_FULL") == "1"


def effort(bounded: T, full: T) -> T:
    """Returns the one that is asked for."""
    return full if IS_FULL else bounded
