"""Forward: from dependencies met to done. Readiness, starting, success, completion."""

from heapq import heappop

from pawlflow.kernel import budget, fans, guards, mend, policies, waits
from pawlflow.kernel.counters import first_in
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import PENDING, RUNNING, Unit
from pawlflow.kernel.values import evaluate_payload
from pawlflow.model.events import InstanceCompleted, StepSkipped, StepStarted
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM


def advance(draft: Draft) -> None:
    """Let everything follow that follows by itself: become ready, start, complete."""
    state = draft.state
    while state.closing is None:
        if state.fresh and state.fresh[0] in state.filling:
            fans.fill(draft, state.fans[heappop(state.fresh)])
        elif state.fresh:
            unblock(draft, heappop(state.fresh))
        elif (place := next_in_line(state)) is not None:
            begin(draft, state.unit(place))
        else:
            break
    if state.closing is None and not (state.open or state.left) and state.counts[PENDING] == 0:
        complete(draft)


def unblock(draft: Draft, step: int) -> None:
    """The dependencies of a step are met: look at it, unless one that it requires was skipped."""
    state = draft.state
    if state.doomed.get(step):
        draft.emit(StepSkipped(step, NO_ITEM, "upstream"))
    else:
        fans.look_at(draft, state.plan.steps[step], NO_ITEM)


def next_in_line(state: Instance) -> int | None:
    """The step that became ready first; attempts wait for a free place, openings do not.

    What the budget held stands among them again once something was given back.
    """
    if state.paused:
        return None
    limit = state.plan.max_parallel
    free = limit is None or state.counts[RUNNING] < limit
    first = first_in(state, state.openings) if state.openings else None
    attempt = first_in(state, state.attempts) if free and state.attempts else None
    if attempt is not None and (first is None or attempt < first):
        first = attempt
    held = budget.first_that_fits(state) if free and state.loosened else None
    if held is not None and (first is None or held < first):
        first = held
    return None if first is None else first[2]


def begin(draft: Draft, unit: Unit) -> None:
    """Dispatch the next attempt, or open the wait; what the budget does not allow is held."""
    limited, plan = draft.state.plan.budget, draft.state.plan.steps[unit.step]
    if plan.for_each is not None and unit.item == NO_ITEM:  # a human let it go on
        fans.open_fan(draft, plan)
        return
    if draft.state.plan.guarded_by and guards.is_barred(draft, unit):
        return
    if plan.policy is not None and policies.hold_back(draft, unit, plan.policy):
        return
    if not plan.attempted:
        waits.open_wait(draft, unit)
        return
    if limited and not budget.admits(draft, unit):
        return
    draft.emit(StepStarted(unit.step, unit.item, unit.attempt + 1, unit.round, unit.mode))
    draft.call(unit, "do")
    if limited:
        budget.warn(draft)


def complete(draft: Draft) -> None:
    """All steps are done: evaluate the output and close."""
    output = evaluate_payload(draft, draft.state.plan.output, default=None)
    if isinstance(output, Failure):
        mend.fail_instance(draft, output)
    else:
        draft.emit(InstanceCompleted(output))
