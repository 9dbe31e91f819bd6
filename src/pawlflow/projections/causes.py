"""Causes: which earlier event an input answers. A receipt its call, a tick what set the clock."""

import msgspec

from pawlflow.kernel.state import (
    RANK_INSTANCE,
    RANK_STEP,
    RANK_UNDO,
    RUNNING,
    Instance,
    key_of,
    next_deadline,
)
from pawlflow.model.events import (
    Event,
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


class Place(msgspec.Struct, frozen=True):
    """An event of the journal: the number of its turn, and its index there."""

    turn: int
    index: int


class Causes(msgspec.Struct):
    """What has been asked for so far, and which clocks were set, each with its place."""

    calls: dict[tuple[StepKey, int], Place] = {}
    clocks: dict[tuple[int, int], Place] = {}  # (rank, step), as in the deadline heap

    def of(self, before: Instance, incoming: Input) -> Place | None:
        """Where the cause of an input lies, asked before its turn is applied. None: outside."""
        if isinstance(incoming, Receipt):
            return self.calls.get((incoming.key, incoming.attempt))
        due = next_deadline(before) if isinstance(incoming, Tick) else None
        return None if due is None else self.clocks.get(due[1:])

    def see(self, state: Instance, event: Event, place: Place) -> None:
        """Remember what an event, which the state has just seen, may cause later."""
        match event:
            case StepStarted(step=step, attempt=attempt):
                self.calls[key_of(state, state.unit(step), "do"), attempt] = place
                self.clocks[RANK_STEP, step] = place
            case UndoStarted(step=step, attempt=attempt):
                self.calls[key_of(state, state.unit(step), "undo"), attempt] = place
                self.clocks[RANK_UNDO, step] = place
            case StepWaiting(step=step) | StepBackedOff(step=step):
                self.clocks[RANK_STEP, step] = place
            case UndoBackedOff(step=step):
                self.clocks[RANK_UNDO, step] = place
            case InstanceStarted():
                self.clocks[RANK_INSTANCE, -1] = place
            case InstanceStopping():  # the grace of what still runs
                running = (step for step in state.open if state.unit(step).status == RUNNING)
                self.clocks |= {(RANK_STEP, step): place for step in running}
            case _:
                pass
