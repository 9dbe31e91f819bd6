"""Show: one instance as it is, or as it was after any turn. The object of `show --json`."""

from collections.abc import Iterator
from typing import Any

from pawlflow.kernel.state import (
    BACKOFF,
    CANCELLED,
    ESCALATED,
    PENDING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Unit,
)
from pawlflow.kernel.summary import instance_state, lens, step_status, step_undo
from pawlflow.model.payload import Payload
from pawlflow.projections.outlook import hints_for
from pawlflow.projections.plain import error_told, failure_told, is_erased, time_told, value_of
from pawlflow.projections.story import NoSuchTurnError, Story, Told, tell

__all__ = ["NoSuchTurnError", "show"]


def show(story: Story, at: int | None = None) -> dict[str, Any]:
    """The instance after turn `at`, or after the last. Raises NoSuchTurnError."""
    told = tell(story, at)
    state, plan = told.state, told.state.plan
    return {
        "id": state.cell.key,
        "tenant": state.cell.tenant,
        "workflow": plan.workflow,
        "version": plan.version,
        "definition_hash": plan.definition.hex(),
        "state": instance_state(state),
        "rollback": state.rollback,
        "lens": lens(state),
        "input": value_of(state.input),
        "output": value_of(state.output),
        "error": error_told(state),
        "started_at": time_told(state.started),
        "closed_at": time_told(state.closed),
        "turns": state.turn,
        "steps": {step.name: show_step(told, step.index) for step in plan.steps},
        "waiting": [
            show_waiting(told, state.unit(step))
            for step in sorted(state.open)
            if state.unit(step).status in (WAITING, ESCALATED)
        ],
        "paused": state.paused,
        "by": state.by,
        "created_at": time_told(state.created),
        "updated_at": time_told(state.now) if state.turn else None,
        "progress": {
            "done": state.counts[SUCCEEDED] + state.counts[SKIPPED],
            "total": len(plan.steps),
        },
        "erased": erased_in(told),
    }


def show_step(told: Told, step: int) -> dict[str, Any]:
    """One step: how far it came, what it gave or why not, and what became of its effect."""
    state, plan = told.state, told.state.plan.steps[step]
    unit = state.units[step] or Unit(step)
    # A step that no event touched is cancelled by the close itself.
    never = unit.status == PENDING and state.status(step) == CANCELLED
    until = unit.until if unit.status in (RUNNING, BACKOFF, WAITING) else None
    return {
        "state": step_status(state, step),
        "attempts": unit.attempt,
        "undo": step_undo(state, step),
        "result": value_of(unit.result),
        "error": None if unit.status == SUCCEEDED else failure_told(unit.failure),
        "started_at": time_told(told.opened.get(step)),
        "ended_at": time_told(state.closed if never else unit.ended),
        "feedback": unit.feedback,
        "kind": plan.kind,
        "until": time_told(until),
        "warnings": unit.warnings,
        "undo_attempts": unit.undo_attempt,
        "undo_error": failure_told(unit.undo_failure),
        "undo_until": time_told(unit.undo_until),
    }


def show_waiting(told: Told, unit: Unit) -> dict[str, Any]:
    """What an open step waits for from outside."""
    state, plan = told.state, told.state.plan.steps[unit.step]
    escalated = unit.status == ESCALATED
    waiting: dict[str, Any] = {
        "step": plan.name,
        "kind": "escalation" if escalated else unit.wait,
        "since": time_told(told.since[unit.step]),
        "until": None if escalated else time_told(unit.until),
        "hint": hints_for(told, unit)[0],
    }
    if escalated:
        return waiting | {
            "review": f"{state.cell.key}/{plan.name}",
            "error": failure_told(unit.failure),
        }
    if unit.wait == "event":
        return waiting | {"event": plan.event}
    if plan.gate is None:
        return waiting
    return waiting | {
        "review": f"{state.cell.key}/{plan.name}",
        "role": unit.role or plan.gate.role,
        "quorum": plan.gate.quorum,
        "votes": [vote.by for vote in unit.votes],
        "not_by": state.by if plan.gate.not_by_requester else None,
        "show": value_of(unit.shown),
    }


def erased_in(told: Told) -> list[str]:
    """The paths of values that are null only because their bytes are gone."""
    return [path for path, payload in values_in(told) if is_erased(payload)]


def values_in(told: Told) -> Iterator[tuple[str, Payload | None]]:
    """Every value that is shown, with its path."""
    state = told.state
    if state.created is not None:
        yield "input", state.input
    yield "output", state.output
    for unit in filter(None, state.units):
        path = f"steps.{state.plan.steps[unit.step].name}"
        yield f"{path}.result", unit.result
        yield f"{path}.show", unit.shown
        if unit.failure is not None and unit.status != SUCCEEDED:
            yield f"{path}.error", unit.failure.detail
