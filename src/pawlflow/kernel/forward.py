"""Forward: from dependencies met to done. Readiness, starting, success, completion."""

from heapq import heappop
from typing import Final

from pawlflow.kernel import mend, tell, waits
from pawlflow.kernel.draft import Draft, Rejected
from pawlflow.kernel.plan import StepPlan
from pawlflow.kernel.state import PENDING, RUNNING, Instance, Unit
from pawlflow.kernel.values import evaluate_payload, evaluate_truth
from pawlflow.model.events import (
    InstanceCompleted,
    InstanceCreated,
    InstanceQueued,
    InstanceStarted,
    StepReady,
    StepSkipped,
    StepStarted,
)
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.inputs import StartInstance
from pawlflow.model.payload import Payload
from pawlflow.model.system import GrantSlot, HoldInstance

NONCE_BYTES: Final = 16


def start(draft: Draft, incoming: StartInstance, rules: int) -> Rejected | None:
    """Create, queue and start the instance in one turn, unless it needs a slot."""
    state = draft.state
    if incoming.definition != state.plan.definition:
        return Rejected("definition.unknown", incoming.definition.hex())
    if len(draft.entropy) < NONCE_BYTES:
        return Rejected("entropy.short", f"{len(draft.entropy)} bytes, {NONCE_BYTES} needed")
    nonce = draft.entropy[:NONCE_BYTES]
    created = InstanceCreated(incoming.definition, rules, nonce, incoming.input, incoming.by)
    if state.plan.slot is not None:
        return tell.ask_for_slot(draft, created, state.plan.slot)
    draft.emit(created)
    draft.emit(InstanceQueued(held=False))
    draft.emit(InstanceStarted())
    return None


def receive_slot(draft: Draft, incoming: GrantSlot | HoldInstance) -> Rejected | None:
    """Begin with the slot that was granted, or wait for it."""
    state = draft.state
    held = isinstance(incoming, HoldInstance)
    if not state.slot or state.started is not None or (held and state.queued):
        return Rejected("slot.not_awaited", state.cell.key)
    if not state.queued:
        draft.emit(InstanceQueued(held=held))
    if not held:
        draft.emit(InstanceStarted())
    return None


def advance(draft: Draft) -> None:
    """Let everything follow that follows by itself: become ready, start, complete."""
    state = draft.state
    while state.closing is None:
        if state.fresh:
            unblock(draft, heappop(state.fresh))
        elif (step := next_in_line(state)) is not None:
            begin(draft, state.unit(step))
        else:
            break
    if state.closing is None and not state.open and state.counts[PENDING] == 0:
        complete(draft)


def unblock(draft: Draft, step: int) -> None:
    """The dependencies of a step are met: skip it, or make it ready."""
    state = draft.state
    plan = state.plan.steps[step]
    if step in state.doomed:
        draft.emit(StepSkipped(step, NO_ITEM, "upstream"))
        return
    wanted = plan.when is None or evaluate_truth(draft, plan.when, f"when of {plan.name}")
    if isinstance(wanted, Failure):
        mend.fail_before_start(draft, state.unit(step), wanted)
    elif wanted:
        make_ready(draft, plan)
    else:
        draft.emit(StepSkipped(step, NO_ITEM, "condition"))


def make_ready(draft: Draft, plan: StepPlan) -> None:
    """Fix the parameters of the first round."""
    params = params_of(draft, plan)
    if isinstance(params, Failure):
        draft.emit(StepReady(plan.index, NO_ITEM, None))
        mend.fail_before_start(draft, draft.state.unit(plan.index), params)
    else:
        draft.emit(StepReady(plan.index, NO_ITEM, params))


def params_of(draft: Draft, plan: StepPlan) -> Payload | Failure | None:
    """The value of `with`; waits and gates have none."""
    if not plan.takes_input:
        return None
    return evaluate_payload(draft, plan.params, default={})


def next_in_line(state: Instance) -> int | None:
    """The step that became ready first; attempts wait for a free place, openings do not."""
    if state.paused:
        return None
    limit = state.plan.max_parallel
    free = limit is None or state.counts[RUNNING] < limit
    attempts = state.attempts if free else ()
    openings = state.openings
    if attempts and (not openings or attempts[0] < openings[0]):
        return attempts[0][1]
    return openings[0][1] if openings else None


def begin(draft: Draft, unit: Unit) -> None:
    """Dispatch the next attempt, or open the wait."""
    if not draft.state.plan.steps[unit.step].attempted:
        waits.open_wait(draft, unit)
        return
    draft.emit(StepStarted(unit.step, unit.item, unit.attempt + 1, unit.round, unit.mode))
    draft.call(unit, "do")


def complete(draft: Draft) -> None:
    """All steps are done: evaluate the output and close."""
    output = evaluate_payload(draft, draft.state.plan.output, default=None)
    if isinstance(output, Failure):
        mend.fail_instance(draft, output)
    else:
        draft.emit(InstanceCompleted(output))
