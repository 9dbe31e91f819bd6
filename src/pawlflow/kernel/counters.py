"""Counters, queues and deadlines: what follows from the facts, kept by small steps.

Each function here costs O(1) (a heap push aside), so that no question about an instance ever needs
a look at all of its steps.
"""

from collections import deque

from pawlflow.kernel.state import (
    CORRECTING,
    ESCALATED,
    PENDING,
    RANK_STEP,
    RANK_UNDO,
    READY,
    UNDO_PENDING,
    WAITING,
    Instance,
    Unit,
    arm,
)
from pawlflow.model.ids import TimeMs


def move(state: Instance, unit: Unit, status: int) -> None:
    """Change a status, and every counter that follows from it."""
    before = unit.status
    if before in (READY, CORRECTING):
        dequeue(state, unit)
    elif before == WAITING:
        stop_listening(state, unit)
    elif before == ESCALATED:
        state.asked.append(unit.step)
    unit.status = status
    state.counts[before] -= 1
    state.counts[status] += 1
    if status == WAITING:
        listen(state, unit)
    if before == PENDING:
        state.open[unit.step] = None


def settle(state: Instance, unit: Unit, status: int) -> None:
    """Move to a terminal status."""
    move(state, unit, status)
    unit.ended = state.now
    unit.until = None
    state.open.pop(unit.step, None)


def listen(state: Instance, unit: Unit) -> None:
    """Count an open wait, and let signals find it."""
    kind = unit.wait or "event"
    state.waits[kind] = state.waits.get(kind, 0) + 1
    if kind == "event":
        event = state.plan.steps[unit.step].event
        state.listening.setdefault(event, {})[unit.step] = None
        state.listened.setdefault(unit.step, False)
    elif kind == "approval":
        state.asked.append(unit.step)


def stop_listening(state: Instance, unit: Unit) -> None:
    """The reverse of listen."""
    kind = unit.wait or "event"
    state.waits[kind] -= 1
    if kind == "event":
        del state.listening[state.plan.steps[unit.step].event][unit.step]
        state.listened.setdefault(unit.step, True)
    elif kind == "approval":
        state.asked.append(unit.step)


def enqueue(state: Instance, unit: Unit) -> None:
    """Line up for a start, behind those that became ready before."""
    state.order += 1
    unit.order = state.order
    line_of(state, unit).append((unit.order, unit.step))


def dequeue(state: Instance, unit: Unit) -> None:
    """Leave the line. Starts come from the front; leaving from elsewhere is rare."""
    line = line_of(state, unit)
    if line[0][1] == unit.step:
        line.popleft()
    else:
        line.remove((unit.order, unit.step))


def line_of(state: Instance, unit: Unit) -> deque[tuple[int, int]]:
    """The line a unit stands in: for an executor, or just to be opened."""
    return state.attempts if state.plan.steps[unit.step].attempted else state.openings


def list_for_undo(state: Instance, unit: Unit) -> None:
    """Remember that this is to be undone, should it come to that."""
    unit.undo = UNDO_PENDING
    state.undo_list.append(unit.step)


def set_until(state: Instance, unit: Unit, due: TimeMs | None) -> None:
    """When the present status ends by itself."""
    unit.until = due
    if due is not None:
        arm(state, due, RANK_STEP, unit.step)


def set_undo_until(state: Instance, unit: Unit, due: TimeMs | None) -> None:
    """When the present undo attempt or its back-off ends by itself."""
    unit.undo_until = due
    if due is not None:
        arm(state, due, RANK_UNDO, unit.step)
