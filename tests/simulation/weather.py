"""What goes wrong with disk and network, for a while each time."""

import asyncio
import errno

from .disk import Fault
from .machine import Machine
from .world import World

EPISODE_S = 0.1, 3.0
NOTED_S = 3.0
"""After this the broker has noted what it could not note on a full disk."""


class Weather:
    """Bad for moments, and good for ever at the end."""

    def __init__(self, world: World, machine: Machine) -> None:
        self._world = world
        self._machine = machine
        self._full_until_s = -NOTED_S

    @property
    def was_full_lately(self) -> bool:
        """Whether the disk has had no room just now."""
        return self._world.loop.time() < self._full_until_s + NOTED_S

    def clear(self) -> None:
        """From now on nothing fails by itself."""
        network = self._world.network
        network.late_chance, network.is_parted = 0.0, False
        self._machine.disk.chances.clear()
        self._machine.disk.is_full = False
        self._machine.threads.slow_chance = 0.0

    async def network_episode(self) -> None:
        """Lets the network misbehave, once."""
        world, random = self._world, self._world.random
        network = world.network
        match random.choice(["drop", "drop", "silence", "late", "part"]):
            case "drop":
                for link in random.sample(network.links, min(2, len(network.links))):
                    network.cut(link, is_loud=True)
            case "silence":
                for link in random.sample(network.links, min(2, len(network.links))):
                    network.cut(link, is_loud=False)
            case "late":
                network.late_chance = random.choice([0.05, 0.5])
                await self._while()
                network.late_chance = 0.0
            case _:
                world.counts["networks parted"] += 1
                network.is_parted = True
                for link in list(network.links):
                    network.cut(link, is_loud=random.random() < 0.5)
                await self._while()
                network.is_parted = False

    async def disk_episode(self) -> None:
        """Lets the disk misbehave, for a while."""
        random, machine = self._world.random, self._machine
        what = random.choice(["full", "write", "write", "read", "sync", "slow", "names"])
        self._world.tell("disk", what)
        chance = random.choice([0.05, 0.3, 1.0])
        match what:
            case "full":
                machine.disk.is_full = True
                self._full_until_s = self._world.loop.time() + EPISODE_S[1]
            case "write":
                code = random.choice([errno.EIO, errno.ENOSPC])
                self._full_until_s = self._world.loop.time() + EPISODE_S[1]
                machine.disk.chances["write"] = Fault(code, chance)
            case "read":
                for call in ("read", "read_cached", "map", "read_file"):
                    machine.disk.chances[call] = Fault(errno.EIO, chance / 2)
            case "sync":
                machine.disk.chances["sync"] = Fault(errno.EIO, chance / 5)
            case "names":
                for call in ("rename", "unlink", "sync_directory", "truncate", "open"):
                    machine.disk.chances[call] = Fault(errno.EIO, chance / 5)
            case _:
                machine.threads.slow_chance = chance
                self._world.counts["slow spells of the disk"] += 1
        await self._while()
        machine.disk.chances.clear()
        machine.disk.is_full = False
        machine.threads.slow_chance = 0.0

    async def _while(self) -> None:
        await asyncio.sleep(self._world.random.uniform(*EPISODE_S))
