"""The history of one group, by the time of the simulation."""

from history.events import Event, Noted

from .world import World


class SimulatedHistory:
    """Notes what happens as it happens; all of it goes into the world's digest."""

    def __init__(self, world: World, group: str) -> None:
        self.noted: list[Noted] = []
        self._world = world
        self._group = group

    def note(self, event: Event) -> None:
        """Takes an event that happens now."""
        self._world.tell(self._group, event)
        self.noted.append(Noted(self._world.clock.monotonic_ns(), event))

    def flush(self) -> None:
        """Does nothing: what is noted outlives a process here."""
