"""Heads: what may be asked about a cell without reading its turns, computed from its state.

The store keeps these beside the journal, in the transaction of the turn they follow from. They can
always be computed again.
"""

from typing import Any, Final, Literal

import msgspec

from pawlflow.kernel.draft import calls_open
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.ladder import rung_of
from pawlflow.kernel.state import Instance, next_deadline
from pawlflow.kernel.step import State
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import ESCALATED, WAITING, Unit
from pawlflow.model.ids import StepName, TimeMs
from pawlflow.model.payload import Payload

LATE: Final = "/late"  # behind the name of a step: the review of what it did too late
SHOWN_BYTES_MAX: Final = 64 * 1024  # of what a gate showed, that its escalation shows again


class Facts(msgspec.Struct, frozen=True, gc=False):
    """The head of a cell, without its place in a store: the last fields of that, in its order."""

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
    kind: Literal["approval", "escalation", "budget", "effect.orphaned", "quarantine"]
    role: str | None
    since: TimeMs
    due_at: TimeMs | None = None
    show: Payload | None = None
    claimed_by: str | None = None


def facts_of(state: State) -> Facts:
    """The head of a cell."""
    if not isinstance(state, Instance):
        return Facts(b"", 0, "system", "none", TimeMs(0), None, None, state.due, 0)
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


def found_by(state: Instance) -> dict[str, Any]:
    """What an instance may be found by: as its definition says, and a child by its `parent`."""
    found: dict[str, Any] = {} if state.search is None else state.search.value
    return found if state.parent is None else {"parent": state.parent.key, **found}


def questions_changed(state: Instance) -> list[tuple[StepName, Question | None]]:
    """The decisions that this turn asked for, or no longer asks for, by step."""
    found: list[tuple[StepName, Question | None]] = []
    for unit in map(state.unit, dict.fromkeys(state.asked)):
        undone = state.closing is not None and state.closing.compensate
        if unit.late is not None and (orphan := orphan_of(state, unit, state.now)):
            found.append((orphan.step, None if undone else orphan))
        if not unit.over:
            found.append((state.name_of(unit), question_of(state, unit)))
    return found


def orphan_of(state: Instance, unit: Unit, since: TimeMs) -> Question | None:
    """What a human is asked about an effect that nobody waits for; of what only reads, nothing."""
    plan = state.plan.steps[unit.step]
    if not plan.mutates:
        return None
    shown = {"effect": plan.target, "undo": plan.undo.target if plan.undo else None}
    show = Payload.of(shown, state.cell.tenant)
    name = StepName(f"{state.name_of(unit)}{LATE}")
    return Question(name, "effect.orphaned", None, since, show=show)


def question_of(state: Instance, unit: Unit) -> Question | None:
    """What a human is asked about this step now."""
    gate, escalated = gate_of(state, unit), unit.status == ESCALATED
    if not escalated and not unit.held and (unit.status != WAITING or gate is None):
        return None
    assert unit.asked_at is not None, "a review begins when a human is asked"
    rung = rung_of(state, unit)
    own = None if gate is None else role_of(unit, gate)
    return Question(
        state.name_of(unit),
        "escalation" if escalated else "budget" if unit.held else "approval",
        own if rung is None else rung.role,
        unit.asked_at,
        unit.until,
        failure_shown(state, unit) if escalated else unit.shown,
        unit.claimed_by,
    )


def failure_shown(state: Instance, unit: Unit) -> Payload:
    """What a human needs to know of an escalated step: why, after how much, and who is asked."""
    assert unit.failure is not None, "a step escalates by a failure"
    shown = {
        "class": unit.failure.kind,
        "code": unit.failure.code,
        "message": unit.failure.message,
        "attempts": unit.attempt,
    }
    rung = rung_of(state, unit)
    if rung is not None:
        shown |= {"level": unit.level, "channel": rung.channel}
    if unit.asking is not None and unit.asking.decided and unit.asking.decided.answer.data:
        shown["policy"] = unit.asking.decided.answer.value
    if unit.shown is not None and len(unit.shown.data or b"") <= SHOWN_BYTES_MAX:
        shown["shown"] = unit.shown.value
    return Payload.of(shown, state.cell.tenant)
