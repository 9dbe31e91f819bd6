"""Checkpoints as people see them: what a loop has kept, when, by which attempt, and how much."""

from itertools import islice
from typing import Any, Final

from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import RUNNING, Unit
from pawlflow.model.checkpoints import CheckpointKept, loop_key
from pawlflow.model.ids import InstanceId
from pawlflow.model.intents import StepKeyParts, step_key
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.reading import UnknownInstanceError, beside_of, story_of
from pawlflow.projections.story import Story
from pawlflow.store.port import Store

TURNS_ALL: Final = (1 << 63) - 1  # after so many there is nothing but the head


def checkpoints(
    store: Store, state: Instance, name: str, *, then: bool = False
) -> list[dict[str, Any]]:
    """All that the loop of a step or item has kept, in all its rounds, in order of time.

    With `then`, what it had kept when the instance was in this state, and not since.
    """
    unit = state.named(name)
    found: list[dict[str, Any]] = []
    if unit is None:
        return found
    for round_ in range(1, unit.round + 1):
        try:
            story = story_of(store, state.cell.tenant, key_in(state, unit, round_))
        except UnknownInstanceError:
            continue
        found += kept_in(story, round_, state.now if then else None)
    return found


def kept_in(story: Story, round_: int, until: int | None) -> list[dict[str, Any]]:
    """What the turns of one loop have kept, up to a time or at all."""
    found: list[dict[str, Any]] = []
    for data, _ in story.turns:
        turn = read_turn(data, story.payloads)
        found += [
            told(event, turn.stamps.now, round_)
            for event in turn.events
            if isinstance(event, CheckpointKept) and (until is None or turn.stamps.now <= until)
        ]
    return found


def told(event: CheckpointKept, at: int, round_: int) -> dict[str, Any]:
    """One checkpoint."""
    return {
        "name": event.name,
        "at": time_told(at),
        "round": round_,
        "attempt": event.attempt,
        "bytes": None if event.result.data is None else len(event.result.data),
        "result": value_of(event.result),
    }


def running_loops(store: Store, state: Instance, most: int) -> dict[str, dict[str, Any] | None]:
    """The last checkpoint of each step or item that runs; None where none was kept yet."""
    units = (state.unit(place) for place in state.open)
    running = islice((unit for unit in units if unit.status == RUNNING), most)
    return {state.name_of(unit): last_checkpoint(store, state, unit) for unit in running}


def last_checkpoint(store: Store, state: Instance, unit: Unit) -> dict[str, Any] | None:
    """The last one of a step's present round, and how many there are: as quick for any number."""
    key = key_in(state, unit, unit.round)
    head = store.story((state.cell.tenant, key), TURNS_ALL)
    image = None if head is None else store.story((state.cell.tenant, key), head.head.turn - 1)
    if image is None:
        return None
    payloads = image.blobs | beside_of(image.entries, state.cell.tenant)
    turns = [read_turn(entry.data, payloads) for entry in image.entries]
    kept = [(turn, e) for turn in turns for e in turn.events if isinstance(e, CheckpointKept)]
    if not kept:
        return None
    turn, event = kept[-1]
    at = time_told(turn.stamps.now)
    return {"name": event.name, "at": at, "count": turn.number, "loop": key}


def key_in(state: Instance, unit: Unit, round_: int) -> InstanceId:
    """The cell of a round's loop, should the step be one."""
    name = state.plan.steps[unit.step].name
    parts = StepKeyParts(state.cell.tenant, state.nonce, "do", name, unit.item, round_)
    return loop_key(step_key(parts))
