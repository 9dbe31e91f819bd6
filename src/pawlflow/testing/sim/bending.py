"""Bending: what a run changes in the code it runs. Limits, a missing layer, programs that break."""

from contextlib import AbstractContextManager
from typing import Any

from pawlflow.engine import stepping, timers
from pawlflow.kernel.state import Instance
from pawlflow.testing.sim.faults import Faults
from pawlflow.testing.sim.patching import patched, real
from pawlflow.testing.sim.setup import PROFILES, Setup, limits_of


def bent(setup: Setup, faults: Faults) -> AbstractContextManager[None]:
    """The engine as this run has it."""
    changes = limits_of(setup.knobs)
    if "kernel.poison" in setup.rates:
        changes.append((stepping, "step", poisoned(faults)))
    if not PROFILES[setup.profile].reoffers:
        changes.append((timers.Reoffers, "place", lambda *_: None))
    return patched(changes)


def poisoned(faults: Faults) -> Any:
    """A kernel that breaks now and then, after it has changed the state."""
    step = real(stepping, "step")

    def broken(cell: Any, incoming: Any, stamps: Any) -> Any:
        made = step(cell, incoming, stamps)
        id_ = cell.state.cell
        name = f"{id_.tenant}/{id_.key}.{type(incoming).__name__}"
        if isinstance(cell.state, Instance) and faults.fires(
            "kernel.poison", name, "its program breaks"
        ):
            raise RuntimeError("poison")
        return made

    return broken
