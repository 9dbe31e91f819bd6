"""The bus: messages that are lost, doubled, delayed and overtaken on their way."""

from collections.abc import Callable
from typing import Final

from pawlflow.testing.sim.world import World

QUICK_MS: Final = (1, 60)
LATE_MS: Final = (1_000, 90_000)


class Bus:
    """Brings messages, as well as it can."""

    def __init__(self, world: World) -> None:
        self.world = world

    def send(self, key: str, deliver: Callable[[], None]) -> None:
        """A message sets out. `key` says what it is about, so that its fate is its own."""
        faults = self.world.faults
        copies = 0 if faults.fires("bus.drop", key, "a message is lost") else 1
        if copies and faults.fires("bus.double", key, "a message comes twice"):
            copies = 2
        for _ in range(copies):
            low, high = QUICK_MS
            if faults.fires("bus.delay", key, "a message is late"):
                low, high = LATE_MS
            self.world.after(self.world.dice.between(f"way:{key}", low, high), deliver)
