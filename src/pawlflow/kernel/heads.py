"""Heads: what may be asked about a cell without reading its turns, computed from its state.

The store keeps these beside the journal, in the transaction of the turn they follow from. They can
always be computed again.
"""

from typing import Literal

import msgspec

from pawlflow.kernel.draft import calls_open
from pawlflow.kernel.state import ESCALATED, WAITING, Instance, next_deadline
from pawlflow.kernel.step import State
from pawlflow.kernel.summary import instance_state
from pawlflow.model.ids import StepName, TimeMs
from pawlflow.model.payload import Payload


class Facts(msgspec.Struct, frozen=True, gc=False):
    """The head of a cell, without its place in a store."""

    definition: bytes
    version: int
    state: str
    rollback: str
    created_at: TimeMs
    started_at: TimeMs | None
    closed_at: TimeMs | None
    due_at: TimeMs | None
    calls: int


class Question(msgspec.Struct, frozen=True, gc=False):
    """A decision that waits for a human."""

    step: StepName
    kind: Literal["approval", "escalation"]
    role: str | None
    since: TimeMs
    due_at: TimeMs | None
    show: Payload | None


def facts_of(state: State) -> Facts:
    """The head of a cell."""
    if not isinstance(state, Instance):
        return Facts(b"", 0, "system", "none", TimeMs(0), None, None, None, 0)
    due = next_deadline(state)
    plan = state.plan
    return Facts(
        plan.definition,
        plan.version,
        instance_state(state),
        state.rollback,
        state.created or TimeMs(0),
        state.started,
        state.closed,
        None if due is None else due[0],
        calls_open(state),
    )


def questions_changed(state: Instance) -> list[tuple[StepName, Question | None]]:
    """The decisions that this turn asked for, or no longer asks for, by step."""
    changed = dict.fromkeys(state.asked)
    return [(state.plan.steps[step].name, question_of(state, step)) for step in changed]


def question_of(state: Instance, step: int) -> Question | None:
    """What a human is asked about this step now."""
    unit = state.unit(step)
    plan = state.plan.steps[step]
    if unit.status == ESCALATED:
        role = plan.gate.role if plan.gate is not None else None
        shown = failure_shown(state, step)
        return Question(plan.name, "escalation", role, state.now, None, shown)
    if unit.status == WAITING and plan.gate is not None:
        return Question(plan.name, "approval", plan.gate.role, state.now, unit.until, unit.shown)
    return None


def failure_shown(state: Instance, step: int) -> Payload:
    """What a human needs to know of an escalated step: why, and after how many attempts."""
    unit = state.unit(step)
    assert unit.failure is not None, "a step escalates by a failure"
    shown = {
        "class": unit.failure.kind,
        "code": unit.failure.code,
        "message": unit.failure.message,
        "attempts": unit.attempt,
    }
    return Payload.of(shown, state.cell.tenant)
