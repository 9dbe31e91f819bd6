"""Revise: a human asks for changes. What led to a gate is done again, and the gate asks again."""

from pawlflow.definition.plan import Plan
from pawlflow.kernel.draft import Draft
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import FANNED, SKIPPED, SUCCEEDED, Unit
from pawlflow.kernel.values import evaluate_items
from pawlflow.model.inputs import Reject
from pawlflow.model.reviews import FanFixed, StepReopened


def send_back(draft: Draft, gate: Unit, incoming: Reject) -> None:
    """Correct what the gate may send back, and run again all that lies between."""
    state = draft.state
    said = None if incoming.comment is None else incoming.comment.value
    words = str(said) if said else f"{incoming.by} asked for changes"
    wanted = draft.failure("validation", "approval.changes", words)
    named = state.plan.steps[gate.step].revise
    fix_fans(draft)
    for step in led_to(state.plan, gate.step, named):
        draft.emit(StepReopened(step, wanted if step in named else None))


def is_under_way(state: Instance, gate: Unit) -> str | None:
    """What leads to the gate and is being done again already, for another gate."""
    plan = state.plan
    steps = led_to(plan, gate.step, plan.steps[gate.step].revise)
    open_ = (step for step in steps if state.status(step) not in (SUCCEEDED, SKIPPED))
    return next((plan.steps[step].name for step in open_ if step != gate.step), None)


def fix_fans(draft: Draft) -> None:
    """Remember what lists stand for whose items are not all done, or may have to be undone."""
    state = draft.state
    for fan in list(state.fans.values()):
        plan = state.plan.steps[fan.step]
        wanted = plan.undo is not None or state.status(fan.step) == FANNED
        if plan.needs and fan.items is None and wanted:
            draft.emit(FanFixed(fan.step, draft.payload(evaluate_items(draft, plan))))


def led_to(plan: Plan, gate: int, named: tuple[int, ...]) -> list[int]:
    """The named steps, all that follows from them up to the gate, and the gate: in this order."""
    found: dict[int, bool] = {}
    rest = [gate]
    while rest:
        step = rest[-1]
        needs = plan.steps[step].needs
        unseen = [need for need in needs if need not in found]
        rest += unseen
        if not unseen:
            rest.pop()
            found[step] = step in named or step == gate or any(found[need] for need in needs)
    return [step for step, again in found.items() if again]
