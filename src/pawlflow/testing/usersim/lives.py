"""Lives: every instance of a run as its journal tells it, and what must hold of each.

These promises are the engine's own. They are held against the events alone: a kernel that breaks
one breaks it in its replay too.
"""

from collections.abc import Callable
from typing import Any, Final

from pawlflow.definition.plan import Plan
from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.kernel.replay import apply_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import ESCALATED, WAITING, Unit
from pawlflow.model import events as ev
from pawlflow.model.events import Event
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, CellId, Digest
from pawlflow.model.journal import Turn
from pawlflow.model.reviews import StepReopened
from pawlflow.projections.verify import verify

PROMISES: Final = {
    "lost": "nothing that was acknowledged is lost",
    "one-result": "no step key has two results",
    "undone-once-done": "what is undone had been done, or may have been",
    "undo-order": "undo runs in the reverse order of completion",
    "absorbing": "nothing follows the end of an instance",
    "replay": "a replay of the journal decides the same",
    "ends": "every instance ends, or waits for somebody",
    "hangs": "a step that never answers has a timeout",
    "raised": "the engine raises no exception",
}
Bad = Callable[[str, CellId | None, str], None]
CLOSED: Final = (ev.InstanceCompleted, ev.InstanceFailed, ev.InstanceCancelled)
Place = tuple[int, int]


class Life:
    """One instance, from its first turn on."""

    def __init__(self, cell: CellId, plan: Plan, bad: Bad) -> None:
        self.cell = cell
        self.plan = plan
        self.bad = bad
        self.state = Instance(cell, plan)
        self.turns: list[tuple[bytes, Digest]] = []
        self.results: dict[tuple[int, int, int], Event] = {}
        self.owed: list[Place] = []  # what was done and has an undo, in order
        self.undoing: list[Place] = []
        self.failed: dict[Place, Failure] = {}  # what failed in this run, and is not given up

    @property
    def name(self) -> str:
        """What it is called in the story."""
        return self.cell.key

    def advance(self, turn: Turn, data: bytes, sealed: Digest) -> list[Event]:
        """One more turn is durable."""
        if self.state.closed is not None:
            self.break_("absorbing", f"turn {turn.number} follows its end")
        self.turns.append((data, sealed))
        events: list[Event] = []
        for event in apply_turn(self.state, turn):
            events.append(event)
            check = CHECKS.get(type(event))
            if check is not None:
                check(self, event)
        return events

    def break_(self, promise: str, why: str) -> None:
        """A promise of the engine does not hold."""
        self.bad(promise, self.cell, why)

    def title(self, step: int, item: int) -> str:
        """What people call a step or an item of it."""
        name = self.plan.steps[step].name
        return name if item == NO_ITEM else f"{name}[{item}]"

    def settle(self, event: ev.StepSucceeded | ev.LateSuccess) -> None:
        """A result under a key: the only one."""
        key = (event.step, event.item, event.round)
        if event.round and key in self.results:
            title = self.title(event.step, event.item)
            self.break_("one-result", f"{title} has a second result under one key")
        self.results[key] = event

    def owe(self, step: int, item: int) -> None:
        """It was done, or may have been: should it come to that, it is to be undone."""
        plan = self.plan.steps[step]
        whole = item == NO_ITEM and plan.for_each is not None
        if plan.undo is not None and not whole:
            self.owed.append((step, item))

    def begin_undo(self, place: Place) -> None:
        """It is undone: the last that was done, unless all are undone at once."""
        title = self.title(*place)
        if place not in self.owed:
            self.break_("undone-once-done", f"{title} is undone, and was not done")
        if not self.plan.parallel_undo and (self.owed[-1] != place or self.undoing):
            last = self.title(*self.owed[-1])
            self.break_("undo-order", f"{title} is undone before {last}, which was done later")
        last_at = len(self.owed) - 1 - self.owed[::-1].index(place)
        del self.owed[last_at]
        self.undoing.append(place)

    def end_undo(self, place: Place) -> None:
        """Done, or given up."""
        if place in self.undoing:
            self.undoing.remove(place)

    def check_replay(self, payloads: dict[bytes, bytes]) -> None:
        """Decide everything again."""
        found = verify(self.cell, self.plan, self.turns, payloads)
        if found is not None:
            why = f"turn {found.turn}, {found.where}: {found.recorded} is now {found.derived}"
            self.break_("replay", why)


def on_done(life: Life, event: ev.StepSucceeded) -> None:
    """A success."""
    life.settle(event)
    life.owe(event.step, event.item)


def on_granted(life: Life, event: ev.GateGranted) -> None:
    """A gate is a step; what people let happen at a policy's gate is not done yet."""
    if life.plan.steps[event.step].gate is not None:
        life.owe(event.step, event.item)


def on_rejected(life: Life, event: ev.GateRejected) -> None:
    """A gate that cancels the instance has failed by that."""
    plan = life.plan.steps[event.step]
    if event.settles and plan.gate is not None and plan.undo_on_failure:
        life.owe(event.step, event.item)


def on_late(life: Life, event: ev.LateSuccess) -> None:
    """A success that came after its step was given up."""
    life.settle(event)
    if event.undo:
        life.owe(event.step, event.item)


def on_given_up(life: Life, event: ev.StepFailed | ev.StepSkipped) -> None:
    """A failure after which nobody knows, or that asks to be undone all the same."""
    failure, plan = event.failure, life.plan.steps[event.step]
    unknown = failure is not None and failure.kind == "unknown_outcome"
    opened = plan.opened and life.state.at(event.step, event.item).wait is not None
    begun = event.attempt or opened
    if begun and failure is not None and (plan.undo_on_failure or unknown):
        life.owe(event.step, event.item)


def on_failing(life: Life, event: ev.StepBackedOff | ev.StepCorrecting | ev.StepEscalated) -> None:
    """An attempt failed, or nobody answered: what it did until then, nobody knows."""
    opened = life.plan.steps[event.step].opened
    if event.attempt or (opened and life.state.at(event.step, event.item).wait is not None):
        life.failed[event.step, event.item] = event.failure


def on_asked_again(life: Life, event: ev.StepResumed | ev.StepRequeued) -> None:
    """What waits for somebody asks again, as if it were the first time."""
    if life.plan.steps[event.step].opened:
        life.failed.pop((event.step, event.item), None)


def on_reopened(life: Life, event: StepReopened) -> None:
    """Another run."""
    life.failed = {place: why for place, why in life.failed.items() if place[0] != event.step}


def on_cancelled(life: Life, event: ev.StepCancelled) -> None:
    """It is given up with its instance."""
    failure, plan = life.failed.get((event.step, event.item)), life.plan.steps[event.step]
    if failure is None or life.state.rules < UNDOING_RULES:
        return
    if plan.undo_on_failure or failure.kind == "unknown_outcome":
        life.owe(event.step, event.item)


def on_undo_started(life: Life, event: ev.UndoStarted) -> None:
    """The first attempt begins it."""
    if event.attempt == 1:
        life.begin_undo((event.step, event.item))


def on_undo_done(life: Life, event: ev.UndoDone) -> None:
    """It is undone."""
    life.end_undo((event.step, event.item))


def on_undo_failed(life: Life, event: ev.UndoFailed) -> None:
    """It stays done; perhaps it could not even be begun."""
    if event.attempt == 0:
        life.begin_undo((event.step, event.item))
    life.end_undo((event.step, event.item))


CHECKS: Final[dict[type, Callable[[Life, Any], None]]] = {
    ev.StepSucceeded: on_done,
    ev.GateGranted: on_granted,
    ev.GateRejected: on_rejected,
    ev.LateSuccess: on_late,
    ev.StepFailed: on_given_up,
    ev.StepSkipped: on_given_up,
    ev.StepBackedOff: on_failing,
    ev.StepCorrecting: on_failing,
    ev.StepEscalated: on_failing,
    ev.StepResumed: on_asked_again,
    ev.StepRequeued: on_asked_again,
    StepReopened: on_reopened,
    ev.StepCancelled: on_cancelled,
    ev.UndoStarted: on_undo_started,
    ev.UndoDone: on_undo_done,
    ev.UndoFailed: on_undo_failed,
}


def asks(unit: Unit) -> str:
    """What a step waits for that only somebody outside can give: its kind, or nothing."""
    if unit.status == ESCALATED:
        return "escalation"
    if unit.held:
        return "budget"
    if unit.status == WAITING and unit.wait in ("approval", "event"):
        return str(unit.wait)
    return ""


def waits_for(state: Instance) -> list[tuple[str, str]]:
    """Everything of an open instance that waits for somebody outside: step and kind."""
    if state.closed is not None:
        return []
    units = (state.unit(place) for place in sorted(state.open))
    found = [(str(state.name_of(unit)), asks(unit)) for unit in units if asks(unit)]
    return [*found, ("", "paused")] if state.paused else found
