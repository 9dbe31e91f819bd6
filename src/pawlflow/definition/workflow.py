"""From a document to a `Workflow`, or to everything that is wrong with it.

First every part is read by its table, then what concerns several steps is checked: names,
dependencies, gates, effects, expressions; at last come the warnings. Each check works on what was
readable, so that one mistake does not hide the next.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Any, cast

from pawlflow.definition.draft import Draft, StepDraft, name_shown
from pawlflow.definition.expressions import check_expressions, check_start
from pawlflow.definition.fields import Table, read_fields, written_in
from pawlflow.definition.finding import Finding
from pawlflow.definition.frame import Document, read_frame
from pawlflow.definition.links import link_steps
from pawlflow.definition.lint import lint
from pawlflow.definition.read import FILE_LIMITS, Limits, Node
from pawlflow.definition.report import EnoughError, Report, listing, suggest
from pawlflow.definition.shape import ASKED_KINDS, Step, StepKind, Undo, Workflow
from pawlflow.definition.spec_fields import (
    COMPENSATION_TABLE,
    IOA_METADATA_TABLE,
    IOA_SPEC_TABLE,
    METADATA_TABLE,
    SPEC_TABLE,
)
from pawlflow.definition.step_fields import IOA_STEP_TABLE, KINDS, STEP_TABLE

KIND_FIELD = {"approval": "gate", "sleep": "sleep_ms", "wait": "wait"}  # others: target
FOR_EACH_KINDS = ("run", "agent", "workflow")
KEPT = ("owner", "labels", "annotations", "createdAt", "updatedAt")


def check_workflow(
    node: Node, *, limits: Limits = FILE_LIMITS
) -> tuple[Workflow | None, list[Finding]]:
    """The workflow a document describes, None if it has errors, and all that was found."""
    report = Report()
    workflow = None
    with suppress(EnoughError):
        document = read_frame(node, report)
        if document and document.kind == "Workflow":
            workflow = read_workflow(document, report, limits)
    return (None if report.errors else workflow), report.sorted()


def read_workflow(document: Document, report: Report, limits: Limits) -> Workflow | None:
    """The workflow of a document whose frame is right. None if anything else is wrong."""
    before = report.errors
    about = read_metadata(document, report)
    draft = read_spec(document, report, limits)
    if draft is None:
        return None
    link_steps(draft, report)
    check_effects(draft, report)
    check_expressions(draft, report)
    lint(draft, report)
    return build(draft, about) if about and report.errors == before else None


def read_metadata(document: Document, report: Report) -> dict[str, Any]:
    """Name and version, and what is only kept."""
    if document.metadata is None:
        return {}
    table = IOA_METADATA_TABLE if document.ioa else METADATA_TABLE
    found = read_fields(document.metadata, table, report)
    kept = {name: found.pop(name) for name in KEPT if name in found}
    # IOA versions are texts; only a whole number can be what instances are pinned to.
    if document.ioa and "version" in found and not is_version(found["version"]):
        kept["version"] = found.pop("version")
    return {**found, "metadata": kept}


def is_version(value: Any) -> bool:
    """Is this a version as we count them?"""
    return type(value) is int and value > 0


def read_spec(document: Document, report: Report, limits: Limits) -> Draft | None:
    """Every field and step that can be read; None if there are no steps to look at."""
    if document.spec is None:
        return None
    table = IOA_SPEC_TABLE if document.ioa else SPEC_TABLE
    found = read_fields(document.spec, table, report)
    nodes = found.pop("steps", None)
    if nodes is None or not few_enough(nodes, document.spec, report, limits):
        check_start(Draft(ioa=document.ioa, spec=document.spec, fields=found), report)
        return None
    step_table = IOA_STEP_TABLE if document.ioa else STEP_TABLE
    steps = [read_step(node, step_table, report) for node in nodes]
    index: dict[str, int] = {}
    for i, step in enumerate(steps):
        if step.name and index.setdefault(step.name, i) != i:
            refuse_duplicate(step, steps[index[step.name]], report)
    draft = Draft(
        ioa=document.ioa,
        spec=document.spec,
        fields=found,
        steps=steps,
        index=index,
        written=written_in(document.spec, table),
    )
    for node in found.pop("compensation", ()):
        read_compensation(node, draft, report)
    return draft


def few_enough(nodes: list[Node], spec: Node, report: Report, limits: Limits) -> bool:
    """At least one step, and not more than the reader takes."""
    place = spec.value["steps"].place
    if not nodes:
        report.error(place, "steps.none", "the workflow has no steps", "add at least one step")
    if len(nodes) > limits.steps_max:
        report.error(
            place,
            "steps.too_many",
            f"{len(nodes):,} steps; at most {limits.steps_max:,} are read",
            "split the workflow into children, or use forEach",
        )
    return 0 < len(nodes) <= limits.steps_max


def read_step(node: Node, table: Table, report: Report) -> StepDraft:
    """One step, as far as it can be read."""
    found = read_fields(node, table, report)
    kind = read_kind(node, found, table, report)
    if kind in found:
        found[KIND_FIELD.get(kind, "target")] = found.pop(kind)
    if kind and kind not in FOR_EACH_KINDS and "for_each" in found:
        report.error(
            node.place_of("forEach"),
            "step.for_each",
            f"forEach does not go with {kind}; it goes with {', '.join(FOR_EACH_KINDS)}",
            "put the step into a child workflow, and run that for each item",
        )
    if kind and kind not in ASKED_KINDS and "policy" in found:
        report.error(
            node.place_of("policy"),
            "step.policy",
            f"policy does not go with {kind}; it goes with {', '.join(ASKED_KINDS)}",
            "put it on the step that acts",
        )
    return StepDraft(
        name=found.get("name", ""),
        kind=kind,
        node=node,
        fields=found,
        written=written_in(node, table),
    )


def read_kind(node: Node, found: dict[str, Any], table: Table, report: Report) -> StepKind | None:
    """Which of the kinds a step is. Fields of other kinds are taken out."""
    if not isinstance(node.value, dict):
        return None
    known = [kind for kind in KINDS if kind in table.fields]
    given = [kind for kind in node.value if kind in known]
    if len(given) == 1:
        return cast("StepKind", given[0])
    if not given and any(kind in known for kind in written_in(node, table)):
        return None  # under a name that was refused
    for kind in given:
        found.pop(kind, None)
    label = f"step {name_shown(node)}" if name_shown(node) else "the step"
    report.error(
        node.place_of(given[1]) if given else node.place,
        "step.kind",
        f"{label} is {' and '.join(given)}" if given else f"{label} does not say what it does",
        f"a step has exactly one of: {', '.join(known)}",
    )
    return None


def refuse_duplicate(step: StepDraft, first: StepDraft, report: Report) -> None:
    """Two steps of one name could not be told apart in results and dependencies."""
    report.error(
        step.part("name").place,
        "step.duplicate",
        f"step {step.name!r} is defined twice; the first is in line {first.node.place.line}",
        "give one of them another name",
    )


def read_compensation(node: Node, draft: Draft, report: Report) -> None:
    """Spec 003's spelling of undo: a task for an agent, listed beside the steps.

    What else is wrong with it does not keep its step from being looked at.
    """
    found = read_fields(node, COMPENSATION_TABLE, report)
    if "step" not in found:
        return
    place = node.value["step"].place
    if found["step"] not in draft.index:
        report.error(
            place,
            "step.unknown",
            f"compensation names {found['step']!r}, which is not a step; "
            f"steps are: {listing(draft.index)}",
            suggest(found["step"], draft.index) or "use the name of a step",
        )
        return
    step = draft.steps[draft.index[found["step"]]]
    if step.name in draft.compensated:
        report.error(
            place,
            "step.duplicate",
            f"step {step.name!r} has two compensations",
            "keep one; a step is undone once",
        )
    elif "undo" in step.node.value:
        report.warning(
            place,
            "lint.undo_both",
            f"step {step.name!r} has an undo and a compensation; the undo is used",
            "remove one of the two",
        )
    else:  # of what cannot be read nothing is built
        agent, action = found.get("agent", ""), found.get("action")
        step.fields["undo"] = Undo(kind="agent", target=agent, action=action)
    draft.compensated.add(step.name)


def check_effects(draft: Draft, report: Report) -> None:
    """With an allow-list, a step outside of it is refused, and so is its undo."""
    allowed = draft.fields.get("effects")
    if allowed is None:
        return
    known = dict.fromkeys(allowed)  # a set that keeps the order of the file
    for step in draft.steps:
        if step.kind == "run" and "target" in step.fields:
            check_effect(step.fields["target"], step.part("run"), known, report)
        undo = step.fields.get("undo")
        if undo and undo.kind == "run" and undo.target:
            check_effect(undo.target, step.part("undo", "run"), known, report)


def check_effect(effect: str, node: Node, allowed: Collection[str], report: Report) -> None:
    """One effect against the allow-list."""
    if effect not in allowed:
        report.error(
            node.place,
            "effect.not_allowed",
            f"effect {effect!r} is not in spec.effects; allowed are: {listing(allowed)}",
            suggest(effect, allowed) or f"add {effect} to spec.effects",
        )


def build(draft: Draft, about: dict[str, Any]) -> Workflow:
    """The shape of a draft without errors."""
    fields = dict(draft.fields)
    fields.pop("mode", None)
    if "domainsInvolved" in fields:
        about["metadata"]["domainsInvolved"] = list(fields.pop("domainsInvolved"))
    steps = tuple(Step(kind=cast("StepKind", step.kind), **step.fields) for step in draft.steps)
    return Workflow(**about, **fields, steps=steps)
