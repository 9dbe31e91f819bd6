"""The end of an instance as invariants see it: told by its journal, with what was truly done."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import SUCCEEDED, Unit
from pawlflow.model.events import GateGranted, StepSucceeded, UndoDone
from pawlflow.projections.plain import failure_told
from pawlflow.projections.publish import published
from pawlflow.projections.units import error_of, named_units, status_of, undo_of
from pawlflow.testing.runner import ITEM, called
from pawlflow.testing.usersim.hands import Effect
from pawlflow.testing.usersim.lives import Life, waits_for

UNDO = "undo/"


class StepEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A step, or an item of one, at the end of its instance."""

    state: str
    attempts: int
    result: Any
    undo: str
    error: dict[str, Any] | None
    executed: int  # how often it was truly carried out
    undone: int


class Telling(msgspec.Struct, frozen=True):
    """What only the whole journal tells, in order."""

    order: list[str]  # attempts as they began: charge#1, undo/charge#1
    done: list[str]  # steps as they succeeded
    undone: list[str]  # steps as they were undone
    events: list[str]  # the names that are published


class Run:
    """One instance at the end of a simulated run."""

    def __init__(self, life: Life, effects: Sequence[Effect], payloads: dict[bytes, bytes]) -> None:
        self.life = life
        self.effects = effects
        self.payloads = payloads
        self.all: list[Run] = [self]  # every instance of the same world

    @property
    def instance(self) -> Instance:
        """The state its journal tells."""
        return self.life.state

    @property
    def id(self) -> str:
        """Its id: i1, i2..."""
        return self.life.cell.key

    @property
    def state(self) -> str:
        """As in `pawl show`: completed, failed, cancelled..."""
        return instance_state(self.instance)

    @property
    def rollback(self) -> str:
        """None, full or partial, in lower case."""
        return self.instance.rollback

    @property
    def input(self) -> Any:
        """What it was started with."""
        return self.instance.input.value

    @property
    def output(self) -> Any:
        """What it gave, if it completed."""
        return None if self.instance.output is None else self.instance.output.value

    @property
    def error(self) -> dict[str, Any] | None:
        """What decided its failure: step, class, code, message, attempts."""
        return error_of(self.instance)

    @property
    def elapsed_ms(self) -> int:
        """Journal time from its start to its end."""
        state = self.instance
        end = state.now if state.closed is None else state.closed
        return end - (state.now if state.started is None else state.started)

    @property
    def waiting(self) -> list[dict[str, str]]:
        """What it still waits for: step and kind."""
        return [{"step": step, "kind": kind} for step, kind in waits_for(self.instance)]

    @cached_property
    def steps(self) -> dict[str, StepEnd]:
        """Every step and item by name."""
        return {name: self.step_end(name, unit) for name, unit in named_units(self.instance)}

    def step_end(self, name: str, unit: Unit) -> StepEnd:
        """One of them."""
        state = self.instance
        return StepEnd(
            state=status_of(state, unit),
            attempts=unit.attempt,
            result=state.result_of(unit.step)
            if name == state.plan.steps[unit.step].name
            else None
            if unit.result is None
            else unit.result.value,
            undo=undo_of(state, unit),
            error=None if unit.failure is None else failure_told(unit.failure),
            executed=self.executed(name),
            undone=self.undone(name),
        )

    # What was truly done

    def executed(self, step: str) -> int:
        """How often a step was carried out; all items of it, unless one is named."""
        return len(self.done_to(step))

    def undone(self, step: str) -> int:
        """How often the undo of a step was carried out."""
        return len(self.done_to(f"{UNDO}{step}"))

    def doubled(self, step: str) -> int:
        """How often it was carried out again under a key under which it had been."""
        found = self.done_to(step)
        return len(found) - len({effect.key for effect in found})

    def done_to(self, name: str) -> list[Effect]:
        """The effects of a name, with or without its items."""
        return [each for each in self.effects if name in (each.name, ITEM.sub("", each.name))]

    # What the whole journal tells

    @cached_property
    def told(self) -> Telling:
        """The journal once more, from its beginning."""
        state, telling = Instance(self.life.cell, self.life.plan), Telling([], [], [], [])
        for data, _ in self.life.turns:
            for event in apply_turn(state, read_turn(data, self.payloads)):
                telling.events.extend(published(state, event))
                telling.order.extend(called(state, event))
                if isinstance(event, StepSucceeded | GateGranted) and has_succeeded(state, event):
                    telling.done.append(self.life.title(event.step, event.item))
                if isinstance(event, UndoDone):
                    telling.undone.append(self.life.title(event.step, event.item))
        return telling

    @property
    def order(self) -> list[str]:
        """Attempts as they began."""
        return self.told.order

    @property
    def done_order(self) -> list[str]:
        """Steps as they succeeded."""
        return self.told.done

    @property
    def undo_order(self) -> list[str]:
        """Steps as they were undone."""
        return self.told.undone

    @property
    def events(self) -> list[str]:
        """The names of the events that are published."""
        return self.told.events

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.state}, rollback {self.rollback}>"


def has_succeeded(state: Instance, event: StepSucceeded | GateGranted) -> bool:
    """Is the step done? Where a policy asked, a grant only lets it begin."""
    return state.at(event.step, event.item).status == SUCCEEDED
