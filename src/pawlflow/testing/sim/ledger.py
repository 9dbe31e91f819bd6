"""The ledger: what was truly done to the world, whoever asked for it and however often."""

from typing import Any

import msgspec

from pawlflow.model.ids import CellId, StepKey
from pawlflow.model.intents import Call


class Effect(msgspec.Struct, frozen=True):
    """Something that happened out there."""

    at: int
    cell: CellId
    what: str  # step, direction and round


class Ledger:
    """Effects by step key."""

    def __init__(self) -> None:
        self.effects: dict[StepKey, list[Effect]] = {}
        self.reported: dict[tuple[StepKey, int], dict[str, Any]] = {}  # costs, by attempt

    def record(self, call: Call, now: int) -> int:
        """An effect happens; returns how often it has now."""
        made = self.effects.setdefault(call.key, [])
        what = f"{call.step} {call.direction} round {call.round}"
        made.append(Effect(now, call.cell, what))
        return len(made)

    def count(self, key: StepKey) -> int:
        """How often it happened."""
        return len(self.effects.get(key, ()))
