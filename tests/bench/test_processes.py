"""What a process takes of the machine, as the bench sees it."""

import os
from time import process_time

import pytest

from bench.child import Child
from bench.processes import cpu_seconds, rss_bytes

MIB = 1 << 20


def test_time_that_a_process_works_is_counted() -> None:
    used, begun = cpu_seconds(os.getpid()), process_time()
    while process_time() < begun + 0.05:
        pass
    assert cpu_seconds(os.getpid()) - used >= 0.04


def test_memory_that_a_process_touches_is_counted() -> None:
    before = rss_bytes(os.getpid())
    touched = bytearray(b"x" * 64 * MIB)
    assert rss_bytes(os.getpid()) - before >= 32 * MIB
    assert touched


@pytest.mark.slow
def test_a_child_that_ends_too_soon_is_an_error_and_no_endless_wait() -> None:
    child = Child("bench.rows")
    with pytest.raises(RuntimeError, match=r"bench.rows ended with 0"):
        child.read()
    child.end()
