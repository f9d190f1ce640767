"""What is killed is what the row says: a topic that keeps its answers as its level does."""

from types import SimpleNamespace
from typing import Any

import pytest

from bench.peers.client import Subject
from bench.peers.scale import SCALES
from bench.peers.system import Level, System
from bench.peers.systems import SYSTEMS
from bench.peers.workloads.kill import OLD, Kill


class Client:
    """Obeys nothing, and remembers at which level a topic was made or written to."""

    def __init__(self) -> None:
        self.levels: dict[str, set[Level]] = {}

    async def ask(self, _: str, subject: Subject, *, topic: str, **__: object) -> float:
        self.levels.setdefault(topic, set()).add(subject.level)
        return 0.0

    async def publish(self, subject: Subject, topic: str, *_: object, **__: object) -> None:
        await self.ask("publish", subject, topic=topic)


class Lab:
    """One system, with servers that do nothing."""

    scale = SCALES["tiny"]

    def __init__(self, system: System) -> None:
        self.system, self.client = system, Client()
        self.clients = SimpleNamespace(one=self._one)

    async def _one(self) -> Client:
        return self.client

    def subjects(self, level: Level) -> list[Subject]:
        return [Subject(self.system, level, "")] if level in self.system.answers else []

    def new_server(self, *_: object) -> Any:
        return SimpleNamespace(start=lambda: None, stop=lambda: None, address="")

    async def measure(self, _: str, __: Subject, action: Any) -> None:
        await action()


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
async def test_the_topic_of_a_kill_has_the_level_of_its_row(system: System) -> None:
    for level in system.answers:
        lab = Lab(system)
        lab.subjects = lambda asked, only=level, lab=lab: (  # type: ignore[method-assign]
            [Subject(lab.system, only, "")] if asked is only else []
        )
        await Kill(lab).prepare()  # type: ignore[arg-type]  # as much of a lab as it asks for
        assert lab.client.levels.pop(OLD) == {system.fastest}
        assert lab.client.levels
        assert all(levels == {level} for levels in lab.client.levels.values())
