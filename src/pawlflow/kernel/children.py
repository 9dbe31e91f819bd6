"""Children: a workflow as a step of another. It is an instance of its own, tied by a step key.

The parent asks the registry to start the child, which answers with a receipt when it closes, by the
same rules as any executor: once, late or twice, it never changes an outcome.
"""

from pawlflow.kernel.draft import ENGINE, Draft
from pawlflow.kernel.state import Instance, key_of
from pawlflow.kernel.units import RUNNING, Unit
from pawlflow.model.codec import hash_of
from pawlflow.model.events import StepWaiting, StopReason
from pawlflow.model.failure import Failure, failure_of
from pawlflow.model.ids import InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import Receipt
from pawlflow.model.kin import Parent
from pawlflow.model.system import REGISTRY, StartChild, StopChild


def open_child(draft: Draft, unit: Unit, until: TimeMs | None) -> None:
    """Ask for a child, and wait for its receipt."""
    state = draft.state
    assert unit.params is not None, "a child without input was not made ready"
    draft.emit(StepWaiting(unit.step, unit.item, "child", until))
    key, called = key_of(state, unit, "do"), state.name_of(unit)
    above = 0 if state.parent is None else state.parent.generation
    parent = Parent(state.cell.workflow, state.cell.key, key, unit.attempt, called, above + 1)
    name, child = WorkflowName(state.plan.steps[unit.step].target), child_id(state, unit)
    draft.send(REGISTRY, REGISTRY, StartChild(name, child, unit.params, state.by, parent))


def child_id(state: Instance, unit: Unit) -> InstanceId:
    """The id of the child of the present attempt. It follows from its key, so nobody else has it.

    Not the key itself: everybody sees ids, and whoever has the key can answer for the child.
    """
    name = state.plan.steps[unit.step].name
    digest = hash_of("pawl.child.1", key_of(state, unit, "do"))[:16].hex()
    return InstanceId(f"{name}.{digest}.{unit.attempt}")


def stop_attempt(draft: Draft, unit: Unit, reason: StopReason) -> None:
    """Say that the present attempt is no longer wanted."""
    if unit.status == RUNNING:
        draft.stop(unit, "do", reason)
    elif unit.is_attempted():
        name = WorkflowName(draft.state.plan.steps[unit.step].target)
        by = draft.state.closing.by if draft.state.closing else ENGINE
        draft.send(REGISTRY, REGISTRY, StopChild(name, child_id(draft.state, unit), by))


def leave_attempt(draft: Draft, unit: Unit, reason: StopReason) -> None:
    """Go on without the present attempt. It may still be at work: then the close waits for it."""
    if draft.state.closing is None or unit.status == RUNNING:  # else a child, which was told
        stop_attempt(draft, unit, reason)
    if unit.is_attempted():
        draft.leave(unit, "do", reason)


def report(draft: Draft, parent: Parent) -> None:
    """A child has closed: its outcome is the receipt of the attempt that asked for it."""
    state = draft.state
    if state.outcome == "completed":
        made = Receipt(parent.step_key, parent.attempt, "ok", state.output)
    else:
        failure = failure_of_child(state)
        made = Receipt(parent.step_key, parent.attempt, "failed", failure=failure)
    draft.send(parent.workflow, parent.key, made)


def failure_of_child(state: Instance) -> Failure:
    """What the parent is told of a child that did not complete."""
    closing, tenant = state.closing, state.cell.tenant
    if closing is not None and closing.failure is not None:
        return closing.failure
    said = f"{state.cell.workflow} {state.cell.key} was cancelled"
    return failure_of("terminal", "child.cancelled", said, tenant=tenant)
