"""Causes: which earlier event an input answers. A receipt its call, a tick what set the clock."""

import msgspec

from pawlflow.kernel.evolve import undone
from pawlflow.kernel.state import (
    RANK_INSTANCE,
    RANK_LEFT,
    RANK_STEP,
    RANK_UNDO,
    Instance,
    Left,
    key_of,
    next_deadline,
)
from pawlflow.kernel.units import RUNNING, Unit
from pawlflow.model.events import (
    AttemptLeft,
    Event,
    InstanceCreated,
    InstanceStarted,
    InstanceStopping,
    StepBackedOff,
    StepStarted,
    StepWaiting,
    UndoBackedOff,
    UndoStarted,
)
from pawlflow.model.ids import StepKey
from pawlflow.model.inputs import Input, Receipt, Tick
from pawlflow.model.intents import Direction
from pawlflow.model.reviews import PolicyAsked


class Place(msgspec.Struct, frozen=True):
    """An event of the journal: the number of its turn, and its index there."""

    turn: int
    index: int


class Causes(msgspec.Struct):
    """What has been asked for so far, and which clocks were set, each with its place."""

    calls: dict[tuple[StepKey, int], Place] = {}  # of executors and children
    clocks: dict[tuple[int, int | Left], Place] = {}  # (rank, whose), as in the deadline heap

    def of(self, before: Instance, incoming: Input) -> Place | None:
        """Where the cause of an input lies, asked before its turn is applied. None: outside."""
        if isinstance(incoming, Receipt):
            return self.calls.get((incoming.key, incoming.attempt))
        due = next_deadline(before) if isinstance(incoming, Tick) else None
        return None if due is None else self.clocks.get(due[1:])

    def see(self, state: Instance, event: Event, place: Place) -> None:
        """Remember what an event, which the state has just seen, may cause later."""
        match event:
            case StepStarted(step=step, item=item):
                self.ask(state, state.at(step, item), "do", place)
            case PolicyAsked(step=step, item=item, number=number):
                self.calls[key_of(state, state.at(step, item), "ask"), number] = place
            case UndoStarted():
                self.ask(state, undone(state, event), "undo", place)
            case StepWaiting(step=step, item=item, kind="child"):
                self.ask(state, state.at(step, item), "do", place)
            case StepWaiting(step=step, item=item) | StepBackedOff(step=step, item=item):
                self.clocks[RANK_STEP, state.at(step, item).place] = place
            case UndoBackedOff():
                self.clocks[RANK_UNDO, undone(state, event).place] = place
            case AttemptLeft():
                left = (event.step, event.item, event.attempt, event.undo, event.round)
                self.clocks[RANK_LEFT, left] = place
            case InstanceCreated() | InstanceStarted():
                self.clocks[RANK_INSTANCE, -1] = place
            case InstanceStopping():  # the grace of what still runs
                running = (at for at in state.open if state.unit(at).status == RUNNING)
                self.clocks |= {(RANK_STEP, at): place for at in running}
            case _:
                pass

    def ask(self, state: Instance, unit: Unit, direction: Direction, place: Place) -> None:
        """An attempt was asked for: its receipt answers it, or its clock runs out."""
        attempt = unit.attempt if direction == "do" else unit.undo_attempt
        self.calls[key_of(state, unit, direction), attempt] = place
        self.clocks[RANK_STEP if direction == "do" else RANK_UNDO, unit.place] = place
