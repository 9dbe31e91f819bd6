"""Evolve, again: steps that are asked to run once more, gates that ask once more.

What a step did before is put aside, not forgotten: a late answer still finds it, and what it did is
undone like everything else, should it come to that.
"""

from heapq import heappush

from pawlflow.kernel import units as status
from pawlflow.kernel.counters import enqueue, line_up, move, set_until, stand, unheld
from pawlflow.kernel.state import Instance, has_keys, make_key
from pawlflow.kernel.units import Asking, Unit
from pawlflow.model import reviews as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, TimeMs


def on_reopened(state: Instance, event: ev.StepReopened) -> None:
    reopen(state, event.step, event.failure)


def on_voided(state: Instance, event: ev.GateVoided) -> None:
    reopen(state, event.step, None)


def reopen(state: Instance, step: int, better: Failure | None) -> None:
    """Let a step run again once its dependencies are done: at once, if they are."""
    old = state.unit(step)
    settled = old.status in (status.SUCCEEDED, status.SKIPPED)
    for dependent, requires_success in state.plan.steps[step].leads_to if settled else ():
        state.remaining[dependent] += 1
        if requires_success and old.status == status.SKIPPED:
            state.doomed[dependent] -= 1
    fan = state.fans.get(step)
    for item in range(fan.cursor) if fan else ():
        put_aside(state, state.at(step, item))
    if fan is not None:
        fan.items = None
    put_aside(state, old)
    state.values.clear()
    unit = state.units[step] = renewed(old, step)
    know_keys(state, unit)
    if better is not None:
        unit.failure = unit.refused = better
        unit.mode, unit.retries, unit.corrections = "correction", old.retries, old.corrections
    if state.remaining[step]:
        return
    if better is not None and unit.params is not None:
        line_up(state, unit, status.CORRECTING)
    else:
        heappush(state.fresh, step)


def put_aside(state: Instance, unit: Unit) -> None:
    """Close the book on a run. That of a step leaves its place to the next one."""
    place, was = unit.place, unit.status
    move(state, unit, status.PENDING)
    state.open.pop(place, None)
    state.do_keys.pop(place, None)
    unit.status, unit.over, unit.until = was, True, None
    if unit.item != NO_ITEM:
        state.counts[status.PENDING] -= 1
        state.done.pop(place, None)
        unit.items = state.fans[unit.step].items
    elif unit.attempt or unit.undo:
        unit.place, state.places = state.places, state.places + 1
    else:
        return  # a gate, a sleep: nobody will ever ask for it
    if unit.undo == status.UNDO_PENDING:
        state.undo_list[state.undo_list.index(place)] = unit.place
    state.items[unit.place] = unit
    state.earlier.setdefault((unit.step, unit.item), []).append(unit.place)


def renewed(unit: Unit, place: int) -> Unit:
    """What the next run of a step or item begins with: another round, and the count goes on."""
    again = Unit(unit.step, unit.item, attempt=unit.attempt, round=unit.round + 1, place=place)
    again.feedback, again.role, again.params = unit.feedback, unit.role, unit.params
    again.result, again.guarded = unit.result, unit.guarded
    return again


def know_keys(state: Instance, unit: Unit) -> None:
    """Let receipts of every round of a run that was called, or asked about, find their unit."""
    if (unit.attempt or unit.round > 1) and has_keys(state, unit):
        for round_ in range(1, unit.round + 1):
            make_key(state, unit, "do", round_)
    if unit.asking is not None:
        for round_ in range(1, unit.round + 1):
            make_key(state, unit, "ask", round_)


def next_item(state: Instance, step: int, item: int, place: int) -> Unit:
    """An item that is looked at for the first time in this run."""
    whole, earlier = state.unit(step), state.earlier.get((step, item))
    unit = renewed(state.unit(earlier[-1]), place) if earlier else Unit(step, item)
    unit.place, unit.params, unit.role = place, None, unit.role or whole.role
    unit.mode, unit.refused = whole.mode, whole.refused
    return unit


def on_fixed(state: Instance, event: ev.FanFixed) -> None:
    state.fans[event.step].items = event.items


def on_barred(state: Instance, event: ev.StepBarred) -> None:
    leave_line(state, state.at(event.step, event.item))


def leave_line(state: Instance, unit: Unit) -> None:
    """Wait outside of the line, and outside of what the budget holds."""
    unit.order = 0  # nobody with this number stands in line
    if unit.held:
        unheld(state, unit)


def let_go(state: Instance, gate: int) -> None:
    """A gate is settled: what it barred lines up again. What asks the policies was not barred."""
    guards = state.plan.steps[gate].guards
    for unit in map(state.unit, sorted(state.open.keys() - state.asking.keys()) if guards else ()):
        ready = unit.status in (status.READY, status.CORRECTING) and not unit.order
        if unit.step in guards and ready:
            enqueue(state, unit)


def on_bound(state: Instance, event: ev.GateBound) -> None:
    state.unit(event.step).approved = event.digests


def on_raised(state: Instance, event: ev.StepRaised) -> None:
    unit = state.at(event.step, event.item)
    unit.claimed_by = None
    state.asked.append(unit.place)
    climb(state, unit, event.level)


def climb(state: Instance, unit: Unit, level: int) -> None:
    """Ask a rung of the ladder, for as long as it has; nobody comes after the last."""
    ladder = state.plan.ladder
    unit.level = level
    span = ladder[level - 1].timeout_ms if level < len(ladder) else None
    set_until(state, unit, None if span is None else TimeMs(state.now + span))


def on_asked(state: Instance, event: ev.PolicyAsked) -> None:
    unit = state.at(event.step, event.item)
    granted = unit.asking.granted if unit.asking is not None else b""
    state.order += 1
    unit.asking = Asking(event.number, event.request, unit.order, None, None, granted, state.order)
    leave_line(state, unit)
    state.asking[unit.place] = None
    know_keys(state, unit)


def on_decided(state: Instance, event: ev.PolicyDecided) -> None:
    unit = state.at(event.step, event.item)
    assert unit.asking is not None, "only what was asked is answered"
    del state.asking[unit.place]
    unit.asking.decided = event
    if event.clears:
        unit.asking.cleared, unit.order, unit.wait = state.now, unit.asking.order, None
        stand(state, unit)
