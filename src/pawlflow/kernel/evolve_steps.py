"""Evolve, steps: what each event in the life of a step does to the state."""

from heapq import heappush

from pawlflow.kernel.counters import enqueue, list_for_undo, move, set_until, settle
from pawlflow.kernel.state import (
    BACKOFF,
    CANCELLED,
    CORRECTING,
    ESCALATED,
    FAILED,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Instance,
    Unit,
    Vote,
    key_of,
    make_key,
)
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs


def on_ready(state: Instance, event: ev.StepReady) -> None:
    unit = state.unit(event.step)
    unit.params = event.params
    unit.since = state.now
    move(state, unit, READY)
    enqueue(state, unit)


def on_step_started(state: Instance, event: ev.StepStarted) -> None:
    unit = state.unit(event.step)
    unit.attempt = event.attempt
    if event.mode == "correction":
        unit.feedback += 1
    unit.mode = "plain"
    key_of(state, unit, "do")
    move(state, unit, RUNNING)
    span = state.plan.steps[unit.step].span_ms
    set_until(state, unit, None if span is None else TimeMs(state.now + span))


def on_waiting(state: Instance, event: ev.StepWaiting) -> None:
    unit = state.unit(event.step)
    unit.wait = event.kind
    unit.shown = event.shown
    unit.votes = ()
    move(state, unit, WAITING)
    set_until(state, unit, event.until)


def on_succeeded(state: Instance, event: ev.StepSucceeded) -> None:
    unit = state.unit(event.step)
    unit.result = event.result
    unit.warnings = event.warnings
    recall_round(unit, event.round)
    succeed(state, unit)


def on_granted(state: Instance, event: ev.GateGranted) -> None:
    unit = state.unit(event.step)
    unit.votes = (*unit.votes, Vote(event.by, event.role))
    unit.result = event.result
    succeed(state, unit)


def recall_round(unit: Unit, round_: int) -> None:
    """An earlier round succeeded after all: what it was asked is what may have to be undone."""
    if 0 < round_ <= len(unit.past):
        unit.params = unit.past[round_ - 1]


def succeed(state: Instance, unit: Unit) -> None:
    """Settle as done, and count down what waited for it."""
    settle(state, unit, SUCCEEDED)
    plan = state.plan.steps[unit.step]
    if plan.undo is not None:
        list_for_undo(state, unit)
    for step, _ in plan.leads_to:
        count_down(state, step)


def on_skipped(state: Instance, event: ev.StepSkipped) -> None:
    unit = state.unit(event.step)
    unit.failure = event.failure
    settle(state, unit, SKIPPED)
    if event.failure is not None:
        list_unknown(state, unit, event.attempt, event.failure)
    for step, requires_success in state.plan.steps[unit.step].leads_to:
        if requires_success:
            state.doomed.add(step)
        count_down(state, step)


def count_down(state: Instance, step: int) -> None:
    """One dependency less."""
    left = state.remaining[step] = state.remaining[step] - 1
    if left == 0 and state.closing is None:
        heappush(state.fresh, step)


def on_step_failed(state: Instance, event: ev.StepFailed) -> None:
    unit = state.unit(event.step)
    unit.failure = event.failure
    settle(state, unit, FAILED)
    list_unknown(state, unit, event.attempt, event.failure)


def list_unknown(state: Instance, unit: Unit, attempt: int, failure: Failure) -> None:
    """An attempt failed, but may have done its work: some steps ask to be undone even then."""
    plan = state.plan.steps[unit.step]
    unknown = plan.undo_on_failure or failure.kind == "unknown_outcome"
    if plan.undo is not None and unknown and attempt:
        list_for_undo(state, unit)


def on_rejected(state: Instance, event: ev.GateRejected) -> None:
    if event.settles:
        unit = state.unit(event.step)
        unit.failure = event.failure
        settle(state, unit, FAILED)


def on_voted(state: Instance, event: ev.GateVoted) -> None:
    unit = state.unit(event.step)
    unit.votes = (*unit.votes, Vote(event.by, event.role))


def on_step_cancelled(state: Instance, event: ev.StepCancelled) -> None:
    settle(state, state.unit(event.step), CANCELLED)


def on_backed_off(state: Instance, event: ev.StepBackedOff) -> None:
    unit = state.unit(event.step)
    unit.failure = event.failure
    unit.retries += 1
    move(state, unit, BACKOFF)
    set_until(state, unit, event.retry_at)


def on_requeued(state: Instance, event: ev.StepRequeued) -> None:
    unit = state.unit(event.step)
    move(state, unit, READY)
    set_until(state, unit, None)
    enqueue(state, unit)


def on_correcting(state: Instance, event: ev.StepCorrecting) -> None:
    unit = state.unit(event.step)
    unit.failure = unit.refused = event.failure
    unit.corrections += 1
    unit.mode = "correction"
    new_round(state, unit)
    move(state, unit, CORRECTING)
    set_until(state, unit, None)
    enqueue(state, unit)


def on_escalated(state: Instance, event: ev.StepEscalated) -> None:
    unit = state.unit(event.step)
    unit.failure = event.failure
    move(state, unit, ESCALATED)
    state.asked.append(unit.step)
    set_until(state, unit, None)


def on_resumed(state: Instance, event: ev.StepResumed) -> None:
    unit = state.unit(event.step)
    unit.retries = 0
    unit.corrections = 0
    if event.role is not None:
        unit.role = event.role
        unit.mode = "reassigned"
    if event.params is not None:
        if unit.params is not None:
            unit.refused = None
            new_round(state, unit)
        unit.params = event.params
    move(state, unit, READY)
    enqueue(state, unit)


def new_round(state: Instance, unit: Unit) -> None:
    """Another round, another step key. What an earlier round was asked may still be answered."""
    assert unit.params is not None
    unit.past = (*unit.past, unit.params)
    unit.round += 1
    state.do_keys[unit.step] = make_key(state, unit, "do", unit.round)


def on_late_success(state: Instance, event: ev.LateSuccess) -> None:
    unit = state.unit(event.step)
    unit.late = event.result
    recall_round(unit, event.round)
    if event.undo:
        list_for_undo(state, unit)
