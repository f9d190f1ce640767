"""What an operator may be told of a group, and what only a broker that lost something says."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from history.events import Place, Received

from logbroker.config import LogConfig, StorageConfig
from logbroker.errors import NotFoundError
from logbroker.group.settings import Order

from .grouping import Grouping
from .machine import Ending, Machine
from .operator import Operator
from .plan import Plan
from .world import World

RECEIVED = Received("m", 1, Place("orders", 0, 0), 1, 0, 0)


def with_broker(
    asked: Callable[[Grouping, Operator], Awaitable[object]], *, has_group: bool = True
) -> object:
    """Returns what is said of a group of which a broker knows no member."""
    world = World(1)
    machine = Machine(world, StorageConfig(data_dir=Path("/data")), LogConfig())
    group = Grouping(world, "orders", Order.NONE, Plan.drawn(world.random))

    async def run() -> object:
        await machine.start()
        operator = Operator(world)
        await operator.client.admin.create_topic("orders")
        if has_group:
            await operator.client.admin.create_group(group.name, group.settings)
        try:
            return await asked(group, operator)
        finally:
            await machine.end(Ending.STOP)

    with world.entered():
        told = world.loop.run(run())
    assert world.broker_faults + world.loop.faults == []
    return told


def redrive(*, received: bool, has_group: bool = True) -> None:
    """Asks for a redrive."""

    async def ask(group: Grouping, operator: Operator) -> None:
        if received:
            group.history.note(RECEIVED)
        await group.redrive(operator, 0)

    with_broker(ask, has_group=has_group)


def test_a_group_of_which_nobody_has_reached_the_broker_yet_has_something_left_to_do():
    assert with_broker(Grouping.is_idle) is False


def test_a_redrive_before_the_first_member_is_no_fault():
    redrive(received=False)


def test_a_topic_that_a_group_was_given_records_of_and_does_not_read_is_a_fault():
    with pytest.raises(NotFoundError, match="does not read"):
        redrive(received=True)


@pytest.mark.parametrize("received", [False, True])
def test_a_group_that_was_made_and_is_not_there_is_a_fault(received):
    with pytest.raises(NotFoundError, match="there is no group"):
        redrive(received=received, has_group=False)
