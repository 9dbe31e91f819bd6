"""Stand-ins: children that nobody has defined, each stubbed like a step of its parent."""

from collections.abc import Callable, Sequence
from typing import Final

from pawlflow.definition.shape import Step, Workflow
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import CANCELLED, SUCCEEDED, WAITING
from pawlflow.model.ids import CellId, InstanceId, StepName, WorkflowName
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.kin import Parent

STAND_IN: Final = "scenario/stands-in"  # the effect of a child that is stubbed like a step


def stand_ins(workflows: Sequence[Workflow]) -> list[Workflow]:
    """Children that nobody has defined: each answers as the stub of its step says."""
    known = {workflow.name for workflow in workflows}
    children = (step for workflow in workflows for step in workflow.steps)
    named = {step.target: None for step in children if step.kind == "workflow"}
    answer = Step(name=StepName("answer"), kind="run", target=STAND_IN)
    return [
        Workflow(name=WorkflowName(name), steps=(answer,), output="${ steps.answer }")
        for name in named
        if name not in known
    ]


def late_answer(
    call: Call, receipt: Receipt, state_of: Callable[[str], Instance | None]
) -> tuple[CellId, Receipt] | None:
    """Whom the answer of a stopped stand-in still reaches: the parent, if its attempt timed out.

    The child is cancelled then, and reports nothing more; but the stub of a timed-out attempt
    answers at its time, as that of any step does.
    """
    child = state_of(call.cell.key) if call.target == STAND_IN else None
    parent = None if child is None else child.parent
    above = None if parent is None else state_of(parent.key)
    if parent is None or above is None or not is_timed_out(above, parent):
        return None
    cell = CellId(call.cell.tenant, WorkflowName(parent.workflow), InstanceId(parent.key))
    said = (receipt.outcome, receipt.result, receipt.failure)
    return cell, Receipt(parent.step_key, parent.attempt, *said)


def is_timed_out(above: Instance, parent: Parent) -> bool:
    """Did the attempt that asked for a child time out? If it was cancelled, nobody is to hear."""
    key = above.keys[parent.step_key]
    unit = above.of_round(key.step, key.item, key.round)
    if unit.attempt > parent.attempt:  # another one has begun since
        return True
    if unit.failure is None or unit.status in (WAITING, SUCCEEDED, CANCELLED):
        return False
    return unit.failure.kind == "timeout"
