"""Evolve, steps: what each event in the life of a step does to the state."""

from pawlflow.definition.rules import UNDOING_RULES
from pawlflow.kernel.counters import (
    line_up,
    list_for_undo,
    move,
    refill,
    reserve,
    set_until,
    settle,
    stand,
    unheld,
)
from pawlflow.kernel.evolve_again import climb, know_keys, let_go, next_item
from pawlflow.kernel.state import MICROS_MAX, RANK_LEFT, Instance, arm, has_keys, key_of, make_key
from pawlflow.kernel.units import (
    BACKOFF,
    CANCELLED,
    CORRECTING,
    ESCALATED,
    FAILED,
    FANNED,
    PENDING,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    WAITING,
    Fan,
    Unit,
    Vote,
)
from pawlflow.model import budgets
from pawlflow.model import events as ev
from pawlflow.model.ids import NO_ITEM, TimeMs


def on_fanned(state: Instance, event: ev.StepFanned) -> None:
    unit = state.unit(event.step)
    unit.since = state.now
    move(state, unit, FANNED)
    state.fans[event.step] = Fan(event.step, state.places, event.size)
    state.places += event.size
    refill(state, event.step)


def touched(state: Instance, step: int, item: int) -> Unit:
    """The unit of a step, or of the next item of it."""
    if item == NO_ITEM:
        return state.unit(step)
    fan = state.fans[step]
    if item < fan.cursor:
        return state.at(step, item)
    fan.cursor, fan.open = item + 1, fan.open + 1
    state.counts[PENDING] += 1
    unit = state.items[fan.base + item] = next_item(state, step, item, fan.base + item)
    know_keys(state, unit)
    return unit


def count_attempt(state: Instance, unit: Unit, *, corrects: bool) -> None:
    """Another attempt has begun; a step counts those of its items."""
    unit.attempt += 1
    unit.feedback += corrects
    if unit.item != NO_ITEM:
        count_attempt(state, state.unit(unit.step), corrects=corrects)


def on_ready(state: Instance, event: ev.StepReady) -> None:
    unit = touched(state, event.step, event.item)
    unit.params = event.params
    unit.since = state.now
    line_up(state, unit, READY)


def on_step_started(state: Instance, event: ev.StepStarted) -> None:
    unit = state.at(event.step, event.item)
    count_attempt(state, unit, corrects=event.mode == "correction")
    unit.mode = "plain"
    key_of(state, unit, "do")
    move(state, unit, RUNNING)
    state.order += 1
    unit.order = state.order  # what runs was begun in this order, and is offered again in it
    if state.plan.budget:
        reserve(state, unit, 1)
    span = state.plan.steps[unit.step].span_ms
    set_until(state, unit, None if span is None else TimeMs(state.now + span))


def on_waiting(state: Instance, event: ev.StepWaiting) -> None:
    unit = state.at(event.step, event.item)
    unit.wait = event.kind
    unit.shown, unit.guarded = event.shown, event.guarded
    unit.votes = ()
    if event.kind == "approval":
        begin_review(state, unit)
    elif event.kind == "child":
        count_attempt(state, unit, corrects=False)
        key_of(state, unit, "do")
    unit.order = state.order = state.order + 1  # of waits, the first that opened hears first
    move(state, unit, WAITING)
    set_until(state, unit, event.until)


def begin_review(state: Instance, unit: Unit) -> None:
    """A human is asked: a new question, whoever looked after the last one."""
    unit.asked_at = state.now
    unit.claimed_by = None
    state.asked.append(unit.place)


def on_held(state: Instance, event: budgets.StepHeld) -> None:
    unit = state.at(event.step, event.item)
    unit.shown = event.shown
    begin_review(state, unit)
    unit.held = True
    stand(state, unit)


def on_unheld(state: Instance, event: budgets.StepUnheld) -> None:
    unit = state.at(event.step, event.item)
    unheld(state, unit)
    stand(state, unit)


def on_budget_raised(state: Instance, event: budgets.BudgetRaised) -> None:
    unit = state.at(event.step, event.item)
    unheld(state, unit)
    unit.order = -1  # first in line: for its sake the limit was raised
    stand(state, unit)
    state.loosened = True
    state.limits.update((limit.unit, limit.micros) for limit in event.limits)


def on_budget_spent(state: Instance, event: budgets.BudgetSpent) -> None:
    spend(state, {}, event.usage)


def on_budget_warned(state: Instance, event: budgets.BudgetWarned) -> None:
    state.warned[event.unit] = None


def spend(state: Instance, cost: dict[str, int], usage: tuple[budgets.Amount, ...]) -> None:
    """What an attempt cost: as it says, or else what was set aside for it."""
    said = cost | {amount.unit: amount.micros for amount in usage}
    for name in state.plan.budget:
        state.spent[name] = min(state.spent.get(name, 0) + said.get(name, 0), MICROS_MAX)


def on_succeeded(state: Instance, event: ev.StepSucceeded) -> None:
    unit = state.at(event.step, event.item)
    if state.plan.budget and event.attempt:
        spend(state, state.plan.steps[unit.step].cost, event.usage)
    unit.result = event.result
    unit.warnings = event.warnings
    recall_round(unit, event.round)
    settle(state, unit, SUCCEEDED)
    if state.plan.steps[unit.step].undo is not None and has_keys(state, unit):
        list_for_undo(state, unit)


def on_granted(state: Instance, event: ev.GateGranted) -> None:
    unit = state.at(event.step, event.item)
    unit.votes = (*unit.votes, Vote(event.by, event.role))
    if unit.asking is not None:  # by a policy: now it may be asked again
        unit.asking.granted = event.digest
        line_up(state, unit, READY)
        return
    unit.result = event.result
    settle(state, unit, SUCCEEDED)
    if state.plan.steps[unit.step].undo is not None and state.rules >= UNDOING_RULES:
        list_for_undo(state, unit)
    let_go(state, unit.step)


def recall_round(unit: Unit, round_: int) -> None:
    """An earlier round succeeded after all: what it was asked is what may have to be undone."""
    back = unit.round - round_
    if round_ and 0 < back <= len(unit.past):
        unit.params = unit.past[-back]


def on_skipped(state: Instance, event: ev.StepSkipped) -> None:
    unit = touched(state, event.step, event.item)
    unit.failure, unit.result = event.failure, None
    settle(state, unit, SKIPPED)
    list_unknown(state, unit, event.attempt)
    if unit.item == NO_ITEM:
        let_go(state, unit.step)


def on_step_failed(state: Instance, event: ev.StepFailed) -> None:
    unit = touched(state, event.step, event.item)
    unit.failure = event.failure
    settle(state, unit, FAILED)
    list_unknown(state, unit, event.attempt)


def list_unknown(state: Instance, unit: Unit, attempt: int) -> None:
    """An attempt failed, but may have done its work: some steps ask to be undone even then.

    So may those who did not answer a wait or a gate, once it was open.
    """
    plan, failure = state.plan.steps[unit.step], unit.failure
    unknown = failure and (plan.undo_on_failure or failure.kind == "unknown_outcome")
    opened = plan.opened and unit.wait is not None and state.rules >= UNDOING_RULES
    if plan.undo is not None and unknown and (attempt or opened):
        list_for_undo(state, unit)


def on_rejected(state: Instance, event: ev.GateRejected) -> None:
    if event.settles:
        unit = state.at(event.step, event.item)
        unit.failure = event.failure
        settle(state, unit, FAILED)
        list_unknown(state, unit, 0)  # 0: by this no attempt ended


def on_voted(state: Instance, event: ev.GateVoted) -> None:
    unit = state.at(event.step, event.item)
    unit.votes = (*unit.votes, Vote(event.by, event.role))
    if unit.claimed_by == event.by:  # their part is done: somebody else may look after the rest
        unit.claimed_by = None
        state.asked.append(unit.place)


def on_claimed(state: Instance, event: ev.ReviewClaimed) -> None:
    unit = state.at(event.step, event.item)
    unit.claimed_by = event.by
    state.asked.append(unit.place)


def on_step_cancelled(state: Instance, event: ev.StepCancelled) -> None:
    unit = state.at(event.step, event.item)
    tried = failed_attempts(state, unit)
    if (tried or unit.status in (BACKOFF, ESCALATED)) and state.rules >= UNDOING_RULES:
        list_unknown(state, unit, tried)
    settle(state, unit, CANCELLED)


def failed_attempts(state: Instance, unit: Unit) -> int:
    """How many attempts of this run have failed; earlier runs and what is at work do not count."""
    earlier = state.earlier.get((unit.step, unit.item))
    before = state.unit(earlier[-1]).attempt if earlier else 0
    return unit.attempt - before - unit.is_attempted() if has_keys(state, unit) else 0


def on_backed_off(state: Instance, event: ev.StepBackedOff) -> None:
    unit = state.at(event.step, event.item)
    unit.failure = event.failure
    unit.retries += 1
    move(state, unit, BACKOFF)
    set_until(state, unit, event.retry_at)


def on_requeued(state: Instance, event: ev.StepRequeued) -> None:
    unit = state.at(event.step, event.item)
    line_up(state, unit, READY)


def on_correcting(state: Instance, event: ev.StepCorrecting) -> None:
    unit = state.at(event.step, event.item)
    unit.failure = unit.refused = event.failure
    unit.corrections += 1
    unit.mode = "correction"
    new_round(state, unit)
    line_up(state, unit, CORRECTING)


def on_escalated(state: Instance, event: ev.StepEscalated) -> None:
    unit = touched(state, event.step, event.item)
    unit.failure = event.failure
    begin_review(state, unit)
    move(state, unit, ESCALATED)
    climb(state, unit, 1)


def on_resumed(state: Instance, event: ev.StepResumed) -> None:
    unit = state.at(event.step, event.item)
    unit.retries = 0
    unit.corrections = 0
    unit.claimed_by = None
    if event.role is not None:
        unit.role = event.role
        unit.mode = "reassigned"
    if event.params is not None:
        if unit.params is not None:
            unit.refused = None
            new_round(state, unit)
        unit.params = event.params
    line_up(state, unit, READY)


def new_round(state: Instance, unit: Unit) -> None:
    """Another round, another step key. What an earlier round was asked may still be answered."""
    assert unit.params is not None
    unit.past = (*unit.past, unit.params)
    make_key(state, unit, "do", unit.round)  # of a round that was never called, too
    unit.round += 1
    state.do_keys[unit.place] = make_key(state, unit, "do", unit.round)
    if unit.asking is not None:
        make_key(state, unit, "ask", unit.round)


def on_left(state: Instance, event: ev.AttemptLeft) -> None:
    left = (event.step, event.item, event.attempt, event.undo, event.round)
    state.left[left] = event
    if event.until is not None:
        state.stopping += 1
        arm(state, event.until, RANK_LEFT, left)


def on_ended(state: Instance, event: ev.AttemptEnded) -> None:
    left = state.left.pop((event.step, event.item, event.attempt, event.undo, event.round))
    state.stopping -= left.until is not None


def on_late_success(state: Instance, event: ev.LateSuccess) -> None:
    unit = state.of_round(event.step, event.item, event.round)
    unit.late = event.result
    recall_round(unit, event.round)
    if event.undo:
        list_for_undo(state, unit)
    if not event.undo or state.closing is None:
        state.asked.append(unit.place)
