"""Patience: attempts that nobody could carry out get their time again.

A timeout counts from the dispatch, and a deadline is a time in the journal. But while no engine
ran, or nobody had the function, nobody could work: an attempt that was open when another engine
took over is offered again, and has its whole span from then; one without an executor has it from
the moment there is one. Timers may fire late; this one does on purpose, and what is overdue
behind it in the same instance waits with it. The workflow's own timeout counts everything.
"""

from collections.abc import Mapping
from typing import Any

from pawlflow.kernel.state import RANK_STEP, RANK_UNDO, Instance, State, key_of, next_deadline
from pawlflow.kernel.units import RUNNING, UNDO_RUNNING
from pawlflow.model.ids import StepKey, TimeMs


def held_until(
    state: State, since: TimeMs, begun: Mapping[StepKey, TimeMs], now: TimeMs
) -> TimeMs | None:
    """Until when the deadline of this cell that comes next is held back; None if it is not.

    Attempts older than `since` get their time again; those in `begun` began later than they say.
    """
    due = next_deadline(state)
    found = attempt_of(state, due) if isinstance(state, Instance) and due else None
    if due is None or found is None:
        return None
    span, key = found
    since = max(since, min(now, begun.get(key, since)))
    return None if due[0] - span >= since else min([TimeMs(since + span), *own_timeout(state)])


def attempt_of(state: Instance, due: tuple[TimeMs, int, Any]) -> tuple[int, StepKey] | None:
    """The timeout and the key of the running attempt, or undo, whose deadline this is."""
    _, rank, place = due
    if rank not in (RANK_STEP, RANK_UNDO):
        return None
    unit = state.unit(place)
    plan = state.plan.steps[unit.step]
    if rank == RANK_STEP:
        if unit.status != RUNNING or state.closing is not None or plan.span_ms is None:
            return None
        return plan.span_ms, key_of(state, unit, "do")
    if unit.undo != UNDO_RUNNING or plan.undo is None or plan.undo.span_ms is None:
        return None
    return plan.undo.span_ms, key_of(state, unit, "undo")


def own_timeout(state: State) -> list[TimeMs]:
    """When the workflow's own timeout ends it, if it has one and nothing else has."""
    if not isinstance(state, Instance) or state.closing is not None or state.started is None:
        return []
    timeout = state.plan.timeout_ms
    return [] if timeout is None else [TimeMs(state.started + timeout)]
