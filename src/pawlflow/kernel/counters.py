"""Counters, queues and deadlines: what follows from the facts, kept by small steps.

Each function here costs O(1) (a heap push aside), so that no question about an instance ever needs
a look at all of its steps.
"""

from bisect import insort
from heapq import heappop, heappush

from pawlflow.kernel.state import RANK_STEP, RANK_UNDO, Instance, Line, arm
from pawlflow.kernel.units import (
    CORRECTING,
    ESCALATED,
    PENDING,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    UNDO_PENDING,
    WAITING,
    Done,
    Unit,
)
from pawlflow.model.ids import NO_ITEM, TimeMs


def move(state: Instance, unit: Unit, status: int) -> None:
    """Change a status, and every counter that follows from it."""
    before = unit.status
    if unit.held:
        unheld(state, unit)
    elif before == WAITING:
        stop_listening(state, unit)
    elif before == ESCALATED:
        state.asked.append(unit.place)
    unit.status = status
    state.counts[before] -= 1
    state.counts[status] += 1
    if status == WAITING:
        listen(state, unit)
    if before == RUNNING and state.plan.budget:
        reserve(state, unit, -1)
    if before == PENDING:
        state.open[unit.place] = None


def settle(state: Instance, unit: Unit, status: int) -> None:
    """Move to a terminal status, and let those know that waited for it."""
    move(state, unit, status)
    unit.ended = state.now
    unit.until = None
    state.open.pop(unit.place, None)
    if unit.item != NO_ITEM:
        leave_fan(state, unit)
    elif status in (SUCCEEDED, SKIPPED):
        release(state, unit)


def release(state: Instance, unit: Unit) -> None:
    """A dependency less for what the step leads to; whatever requires a success may be doomed."""
    for step, requires_success in state.plan.steps[unit.step].leads_to:
        if requires_success and unit.status == SKIPPED:
            state.doomed[step] = state.doomed.get(step, 0) + 1
        left = state.remaining[step] = state.remaining[step] - 1
        if left == 0 and state.closing is None and state.status(step) == PENDING:
            heappush(state.fresh, step)


def leave_fan(state: Instance, unit: Unit) -> None:
    """An item less: another may begin. Of most that succeeded, little need be kept."""
    state.fans[unit.step].open -= 1
    refill(state, unit.step)
    state.do_keys.pop(unit.place, None)
    if unit.status != SUCCEEDED:
        return
    if state.plan.steps[unit.step].undo is None:
        unit.params = None
    told = unit.failure is not None or unit.role is not None or unit.warnings or unit.asking
    if unit.result is not None and unit.attempt == unit.round == 1 and not told:
        what = (unit.since, unit.ended, unit.result, unit.params)
        state.done[unit.place] = Done(unit.step, unit.place, *what)
        del state.items[unit.place]


def refill(state: Instance, step: int) -> None:
    """A fan may go on, or be done: look at it, in the order of the file."""
    if state.closing is None and step not in state.filling:
        state.filling.add(step)
        heappush(state.fresh, step)


def listen(state: Instance, unit: Unit) -> None:
    """Count an open wait, and let signals find it."""
    kind = unit.wait or "event"
    state.waits[kind] = state.waits.get(kind, 0) + 1
    if kind == "event":
        event = state.plan.steps[unit.step].event
        state.listening.setdefault(event, {})[unit.step] = None
        state.listened.setdefault(unit.step, False)


def stop_listening(state: Instance, unit: Unit) -> None:
    """The reverse of listen."""
    kind = unit.wait or "event"
    state.waits[kind] -= 1
    if kind == "event":
        del state.listening[state.plan.steps[unit.step].event][unit.step]
        state.listened.setdefault(unit.step, True)
    elif kind == "approval":
        state.asked.append(unit.place)


def line_up(state: Instance, unit: Unit, status: int) -> None:
    """Move to a status in which it waits for its start."""
    move(state, unit, status)
    unit.until = None
    enqueue(state, unit)


def enqueue(state: Instance, unit: Unit) -> None:
    """Take the last place in line, behind those that became ready before."""
    state.order += 1
    unit.order = state.order
    stand(state, unit)


def stand(state: Instance, unit: Unit) -> None:
    """Take the place in line that priority and order give: for an executor, or to be opened."""
    plan = state.plan.steps[unit.step]
    line = state.attempts if plan.attempted else state.openings
    line = state.held if unit.held else line
    heappush(line, (-plan.priority, unit.order, unit.place))


def first_in(state: Instance, line: Line) -> tuple[int, int, int] | None:
    """Who is next in line. Nobody leaves a line; who need not stand there is dropped here."""
    while line and not stands(state, line[0], held=line is state.held):
        heappop(line)
    return line[0] if line else None


def stands(state: Instance, entry: tuple[int, int, int], *, held: bool = False) -> bool:
    """Does this entry still stand for a unit that waits for its start, or for the budget?"""
    unit = state.unit(entry[2])
    ready = unit.status in (READY, CORRECTING) and unit.held == held
    return ready and unit.order == entry[1]


def unheld(state: Instance, unit: Unit) -> None:
    """The budget no longer holds it."""
    unit.held = False
    state.asked.append(unit.place)


def reserve(state: Instance, unit: Unit, sign: int) -> None:
    """Set aside what an attempt may cost, or give it back."""
    state.loosened = state.loosened or sign < 0
    for name, cost in state.plan.steps[unit.step].cost.items():
        state.reserved[name] = state.reserved.get(name, 0) + sign * cost


def list_for_undo(state: Instance, unit: Unit) -> None:
    """Remember that this is to be undone, should it come to that."""
    unit.undo = UNDO_PENDING
    if state.plan.parallel_undo:  # by depth: what lies equally deep does not depend on each other
        insort(state.undo_list, unit.place, key=lambda place: depth_of(state, place))
    else:
        state.undo_list.append(unit.place)


def depth_of(state: Instance, place: int) -> int:
    """How many steps lie before the step of a unit, on the longest way."""
    return state.plan.steps[state.unit(place).step].depth


def set_until(state: Instance, unit: Unit, due: TimeMs | None) -> None:
    """When the present status ends by itself."""
    unit.until = due
    if due is not None:
        arm(state, due, RANK_STEP, unit.place)


def set_undo_until(state: Instance, unit: Unit, due: TimeMs | None) -> None:
    """When the present undo attempt or its back-off ends by itself."""
    unit.undo_until = due
    if due is not None:
        arm(state, due, RANK_UNDO, unit.place)
