"""Rules: the number that instances of a definition are decided by from their start on, for ever.

A definition gets a higher one only if it says something that used to be decided otherwise. All
others keep theirs, and so the bytes of their journals.
"""

from typing import Final

from pawlflow.definition.shape import ASKED_KINDS, CALLED_KINDS, Step, Workflow

RULES: Final = 2  # what most instances started by this version are decided by
ASKING_RULES: Final = 3  # those with a step that asks policies
# Those with a gate that is undone, or with a step that is although it failed, or may be skipped.
UNDOING_RULES: Final = 4
# Those with attempts that may time out: what follows waits until they are over.
SETTLING_RULES: Final = 5


def rules_of(workflow: Workflow) -> int:
    """The rules of instances that start now."""
    if any(may_time_out(step) for step in workflow.steps):
        return SETTLING_RULES
    if any(is_undone_by_them(workflow, step) for step in workflow.steps):
        return UNDOING_RULES
    asks = any(step.policy is not None and step.kind in ASKED_KINDS for step in workflow.steps)
    return ASKING_RULES if asks else RULES


def may_time_out(step: Step) -> bool:
    """Before these rules nobody waited for an attempt, or for an undo, that had timed out."""
    called = step.kind in CALLED_KINDS
    undone = step.undo is not None and step.undo.timeout_ms is not None
    limited = step.timeout_ms is not None or step.heartbeat_ms is not None
    return undone or (called and limited)


def is_undone_by_them(workflow: Workflow, step: Step) -> bool:
    """Before these rules nothing undid a gate, nor a wait that had failed.

    Nor what had failed and was stopped before it was given up, nor what was skipped and turned out
    to be done before compensation began.
    """
    if step.undo is None or not step.mutates:
        return False
    unsure = step.undo_on_failure and step.kind in (*CALLED_KINDS, "wait")
    skipped = (step.on_failure or workflow.failure_policy) == "skip" and step.kind in CALLED_KINDS
    return step.kind == "approval" or unsure or skipped
