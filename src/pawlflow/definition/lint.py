"""Warnings: definitions that work, and that someone will regret. `--strict` makes them errors."""

from typing import Any

from pawlflow.definition.draft import Draft, StepDraft
from pawlflow.definition.graph import parts
from pawlflow.definition.links import is_known
from pawlflow.definition.readers import compile_schema
from pawlflow.definition.report import Report, listing

# Spec 003, guideline 5: "Keep workflows under 10 steps".
STEPS_ADVISED = 10

UNDOABLE = ("run", "agent", "workflow")  # kinds of step that change something in the world

# Fields that do nothing on some kinds of step, and the kinds that they do something on.
USED_BY: dict[str, frozenset[str]] = {
    "action": frozenset({"agent"}),
    "skill": frozenset({"agent"}),
    "with": frozenset({"run", "agent", "workflow", "emit"}),
    "show": frozenset({"approval"}),
    "heartbeat": frozenset({"run", "agent"}),
    "timeout": frozenset({"run", "agent", "approval", "wait", "workflow"}),
    # a wait is opened again, and a child started anew
    "retryPolicy": frozenset({"run", "agent", "wait", "workflow"}),
    "maxCorrectionAttempts": frozenset({"run", "agent"}),
    "cost": frozenset({"run", "agent"}),
    "check": frozenset({"run", "agent", "workflow"}),  # receipts are judged: others have none
    "grace": frozenset({"run", "agent"}),  # a child takes the time it needs
    "onTimeout": frozenset({"run", "agent", "wait", "workflow"}),  # a gate has onExpire
    # only what somebody was asked for: a sleep ends by itself, and an emit is done at once
    "undoOnFailure": frozenset({"run", "agent", "approval", "wait", "workflow"}),
}
# What an undo takes over from its step, and what of its own comes before that.
UNDO_TAKES: dict[str, str | None] = {
    "timeout": "timeout_ms",
    "retryPolicy": "retry",
    "onTimeout": None,
    "grace": None,
}


def lint(draft: Draft, report: Report) -> None:
    """All warnings about a workflow."""
    lint_workflow(draft, report)
    compensates = can_compensate(draft)
    for i, step in enumerate(draft.steps):
        lint_timeout(step, report)
        lint_gate(step, report)
        lint_changes(i, draft, report)
        lint_unused(step, draft, report)
        if compensates:
            lint_undo(step, report)
    lint_irreversible(draft, report)
    if not report.errors:  # a dependency that was refused may be the one that is missing
        lint_parts(draft, report)


def lint_ladder(draft: Draft, report: Report) -> None:
    """A rung without a time of its own never gives way to the next."""
    rungs = iter(draft.fields.get("escalation", ()))
    nodes = draft.spec.value["escalation"].value if "escalation" in draft.fields else []
    read = [(node, next(rungs)) for node in nodes if isinstance(node.value, dict)]
    for node, rung in read:
        if rung.timeout_ms is None and node is not nodes[-1]:
            report.warning(
                node.place,
                "lint.escalation",
                f"{rung.role or 'this'} is asked for ever: those after it on the ladder never are",
                "add timeout to it, for example 1h",
            )


def lint_workflow(draft: Draft, report: Report) -> None:
    """What the workflow as a whole lacks."""
    lint_ladder(draft, report)
    if "timeout" not in draft.written:
        report.warning(
            draft.spec.place,
            "lint.timeout",
            "the workflow has no timeout, so an instance may stay open for ever",
            "add timeout to spec, for example 4h; waiting for humans counts",
        )
    trigger, schema = draft.fields.get("trigger"), draft.fields.get("input")
    if trigger and trigger.schedule and schema is not None and not accepts_nothing(schema):
        report.warning(
            draft.spec.at(("trigger", "schedule")).place,
            "lint.schedule_input",
            "the schedule starts the workflow with {}, which its input schema refuses",
            "let input accept {}, or use a document of kind Schedule, which has an input",
        )
    if len(draft.steps) > STEPS_ADVISED:
        report.warning(
            draft.spec.value["steps"].place,
            "lint.steps",
            f"{len(draft.steps):,} steps; more than {STEPS_ADVISED} are hard to oversee",
            "split it into child workflows (workflow: NAME)",
        )


def accepts_nothing(schema: Any) -> bool:
    """May the input be empty?"""
    return compile_schema(schema).is_valid({})


def can_compensate(draft: Draft) -> bool:
    """Can a failure in this workflow lead to undoing?"""
    return draft.fields.get("failure_policy") == "compensate" or any(
        step.fields.get("on_failure") == "compensate" for step in draft.steps
    )


def lint_timeout(step: StepDraft, report: Report) -> None:
    """Spec 003, guideline 1: a step without a timeout can hang for ever."""
    if step.kind in ("run", "agent") and "timeout" not in step.written:
        report.warning(
            step.node.place,
            "lint.timeout",
            f"step {step.shown} has no timeout, so a lost worker is never noticed",
            "add timeout, for example 5m",
        )


def lint_gate(step: StepDraft, report: Report) -> None:
    """A gate that stays open for ever is one that everybody forgets."""
    gate = step.fields.get("gate")
    if gate and gate.expires_ms is None and "timeout" not in step.written:
        report.warning(
            step.part("approval").place,
            "lint.gate_expiry",
            f"gate {step.shown} never expires",
            "add expires to approval, for example 24h",
        )


def lint_changes(i: int, draft: Draft, report: Report) -> None:
    """A gate that sends work back needs some to send back; one that does not names none."""
    step, gate = draft.steps[i], draft.steps[i].fields.get("gate")
    if gate is None:
        return
    if gate.on_reject in ("cancel", "fail") and gate.revise:
        report.warning(
            step.part("approval", "revise").place,
            "lint.revise",
            f"gate {step.shown} has revise, which does nothing without onReject: changes",
            "add onReject: changes, or remove revise",
        )
    named = step.part("approval").value.get("revise")
    if gate.on_reject != "changes" or gate.revise != () or (named and named.value):
        return
    if i in draft.unclear:
        return
    needs = [draft.index[edge.step] for edge in step.fields.get("depends_on", ())]
    if not any(draft.steps[need].kind in ("agent", None) for need in needs):
        report.warning(
            step.part("approval").place,
            "lint.revise",
            f"gate {step.shown} sends nothing back: no agent step comes right before it",
            "name the steps to send back in revise",
        )


def lint_unused(step: StepDraft, draft: Draft, report: Report) -> None:
    """A field that has no effect was meant to have one."""
    written, undone = step.node.value, "undo" in step.fields or "undo" in step.written
    if step.kind is None:
        return
    limits_undo = undone and draft.fields.get("parallel_undo")  # how many are undone at a time
    if "limit" in written and "forEach" not in step.written and not limits_undo:
        warn_unused(step, "limit", "without forEach", report)
    for field, kinds in USED_BY.items():
        if field not in written or step.kind in kinds:
            continue
        if not is_taken_by_undo(step, field) and not is_told_to_policies(step, field):
            warn_unused(step, field, f"on a step that is {step.kind}", report)
    if "undoOnFailure" in written and step.kind in USED_BY["undoOnFailure"] and not undone:
        warn_unused(step, "undoOnFailure", "without undo", report)


def is_taken_by_undo(step: StepDraft, field: str) -> bool:
    """An undo that says nothing else follows its step, also a step that has no use for it."""
    undo = step.fields.get("undo")
    if undo is None or not step.fields.get("mutates", True) or field not in UNDO_TAKES:
        return field in UNDO_TAKES and step.unread("undo", "undo")
    own = UNDO_TAKES[field]
    return own is None or getattr(undo, own) is None


def is_told_to_policies(step: StepDraft, field: str) -> bool:
    """Policies may decide by a cost that nobody reserves."""
    return field == "cost" and "policy" in step.written


def warn_unused(step: StepDraft, field: str, where: str, report: Report) -> None:
    """One field that does nothing."""
    report.warning(
        step.node.place_of(field),
        "lint.unused",
        f"step {step.shown}: {field} does nothing {where}",
        "remove it",
    )


def lint_undo(step: StepDraft, report: Report) -> None:
    """Where failures compensate, a change that nothing undoes stays behind.

    Who declares a step irreversible has said so. A child that completed stays completed.
    """
    found = step.fields
    changes = step.kind in UNDOABLE and found.get("mutates", not step.unread("mutates", "mutates"))
    known = found.get("irreversible", step.unread("irreversible", "irreversible"))
    if changes and not known and "undo" not in found and "undo" not in step.written:
        child = "the child of " if step.kind == "workflow" else ""
        report.warning(
            step.node.place,
            "lint.undo",
            f"{child}step {step.shown} changes something that a compensation would not undo",
            "add undo, mutates: false if it only reads, or irreversible: true if nothing can be",
        )


def lint_irreversible(draft: Draft, report: Report) -> None:
    """Spec 003, guideline 7: approval gates before irreversible actions."""
    if not any(step.fields.get("irreversible") for step in draft.steps):
        return
    gated = set(gated_steps(draft))
    for i, step in enumerate(draft.steps):
        if step.fields.get("irreversible") and is_known(i, draft) and i not in gated:
            report.warning(
                step.node.place,
                "lint.irreversible",
                f"step {step.shown} is irreversible, and no gate comes before it",
                "let it depend on an approval step",
            )


def gated_steps(draft: Draft) -> list[int]:
    """The steps that have a gate somewhere before them."""
    behind: dict[int, bool] = {}
    for i in draft.order:
        before = draft.parents[i]
        behind[i] = any(behind[p] or draft.steps[p].kind == "approval" for p in before)
    return [i for i, gated in behind.items() if gated]


def lint_parts(draft: Draft, report: Report) -> None:
    """Parts that do not touch are two workflows, or a forgotten dependsOn (spec 003, 5.2)."""
    groups = parts(draft.parents)
    if len(groups) > 1:
        firsts = [draft.steps[group[0]].name for group in groups]
        report.warning(
            draft.steps[groups[1][0]].node.place,
            "lint.disconnected",
            f"{len(groups):,} parts that nothing connects; they start with {listing(firsts)}",
            "add the missing dependsOn, or make several workflows of it",
        )
