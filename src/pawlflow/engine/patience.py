"""Patience: an attempt that went down with its engine gets its time again.

A timeout counts from the dispatch, and a deadline is a time in the journal. But while no engine
ran, nobody could work: an attempt that was open when another engine took over is offered again, and
has its whole span from then. Timers may fire late; this one does on purpose, and what is overdue
behind it in the same instance waits with it. The workflow's own timeout counts everything.
"""

from pawlflow.kernel.state import RANK_INSTANCE, RANK_STEP, Instance, State, next_deadline
from pawlflow.kernel.units import RUNNING, UNDO_RUNNING
from pawlflow.model.ids import TimeMs


def held_until(state: State, took_over: TimeMs) -> TimeMs | None:
    """Until when the deadline of this cell that comes next is held back; None if it is not."""
    due = next_deadline(state)
    if due is None or not isinstance(state, Instance) or state.closing is not None:
        span = undo_span(state, due) if isinstance(state, Instance) else None
    else:
        span = attempt_span(state, due)
    if due is None or span is None or due[0] - span >= took_over:
        return None
    return min([TimeMs(took_over + span), *own_timeout(state)])


def attempt_span(state: Instance, due: tuple[TimeMs, int, int]) -> int | None:
    """The timeout of the running attempt whose deadline this is."""
    _, rank, place = due
    running = rank == RANK_STEP and state.unit(place).status == RUNNING
    return state.plan.steps[state.unit(place).step].span_ms if running else None


def undo_span(state: Instance, due: tuple[TimeMs, int, int] | None) -> int | None:
    """The timeout of the running undo whose deadline this is."""
    if due is None or due[1] in (RANK_INSTANCE, RANK_STEP):
        return None
    unit = state.unit(due[2])
    undo = state.plan.steps[unit.step].undo
    running = unit.undo == UNDO_RUNNING
    return undo.span_ms if running and undo is not None else None


def own_timeout(state: State) -> list[TimeMs]:
    """When the workflow's own timeout ends it, if it has one and nothing else has."""
    if not isinstance(state, Instance) or state.closing is not None or state.started is None:
        return []
    timeout = state.plan.timeout_ms
    return [] if timeout is None else [TimeMs(state.started + timeout)]
