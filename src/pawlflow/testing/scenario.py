"""Scenarios: a workflow's test as a file, read and checked against the workflow it tests."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from pawlflow.definition.fields import Schema, read_fields, written_in
from pawlflow.definition.finding import Finding, Place
from pawlflow.definition.frame import NAME_TABLE, PAWL, PAWL_TABLE, Document, read_frame
from pawlflow.definition.read import FILE_LIMITS, Limits, Node
from pawlflow.definition.report import EnoughError, Report
from pawlflow.definition.schema import DRAFT, document_schema
from pawlflow.definition.shape import Policy, Workflow
from pawlflow.definition.workflow import check_workflow
from pawlflow.policing import load_checked
from pawlflow.testing.scenario_fields import (
    SCENARIO_TABLE,
    STUBS,
    VERBS,
    Action,
    Answer,
    Expect,
)
from pawlflow.testing.scenario_policies import check_policy, check_published
from pawlflow.testing.step_paths import StepPaths

__all__ = [
    "Action",
    "Answer",
    "Expect",
    "Scenario",
    "read_scenario",
    "read_stubs",
    "scenario_schema",
]

REQUESTER = "scenario"  # who starts the instance when the file does not say
UNSTUBBED_KINDS = ("approval", "sleep", "wait", "emit")
LoadFile = Callable[[str], str | bytes]
Under = tuple[tuple[Workflow, ...], tuple[Policy, ...]]  # what is under test


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A whole scenario. The first workflow is started; the others can be its children."""

    name: str
    file: str
    place: Place
    places: dict[str, Place] = {}  # of the fields of spec
    workflows: tuple[Workflow, ...]
    policies: tuple[Policy, ...] = ()  # of each name the lowest version is in force at first
    input: Any = msgspec.field(default_factory=dict)
    by: str = REQUESTER
    stubs: dict[str, tuple[Answer, ...]] = {}
    script: tuple[Action, ...] = ()
    expect: Expect = Expect()


def read_scenario(
    node: Node, *, load_file: LoadFile, limits: Limits = FILE_LIMITS
) -> tuple[Scenario | None, list[Finding]]:
    """The scenario a document describes, None if it has errors, and all that was found.

    `load_file` gives the text of a path as the scenario writes it, and raises OSError.
    """
    report = Report()
    scenario = None
    with suppress(EnoughError):
        document = read_frame(node, report)
        if document and document.kind == "Scenario":
            scenario = read_document(document, report, load_file, limits)
    return (None if report.errors else scenario), report.sorted()


def scenario_schema() -> Schema:
    """What a Scenario may say, for editors."""
    schema = document_schema(PAWL_TABLE, PAWL, "Scenario", NAME_TABLE, SCENARIO_TABLE)
    return {"$schema": DRAFT, "title": "Pawl scenario", **schema}


def read_stubs(
    node: Node, workflows: tuple[Workflow, ...]
) -> tuple[dict[str, tuple[Answer, ...]], list[Finding]]:
    """A `stubs` mapping by itself, as `pawl run --stubs` takes it."""
    report = Report()
    stubs: dict[str, tuple[Answer, ...]] = {}
    with suppress(EnoughError):
        found = STUBS.read(node, report, "stubs")
        check_stubs(node, StepPaths(workflows), report)
        stubs = {} if report.errors else found
    return stubs, report.sorted()


def read_document(
    document: Document, report: Report, load_file: LoadFile, limits: Limits
) -> Scenario | None:
    """The scenario of a document whose frame is right."""
    about = read_fields(document.metadata, NAME_TABLE, report) if document.metadata else {}
    if document.spec is None:
        return None
    found = read_fields(document.spec, SCENARIO_TABLE, report)
    workflows, policies = read_workflows(document.spec, found, report, load_file, limits)
    if workflows:
        check_paths(document.spec, StepPaths(workflows), report)
        check_published(found.get("script", ()), policies, report)
    if report.errors:
        return None
    by = found.get("by", REQUESTER)
    script = [msgspec.structs.replace(a, by=a.by or by) for a in found.get("script", ())]
    fields = {"input", "stubs", "expect"} & found.keys()
    return Scenario(
        name=about["name"],
        file=document.place.file,
        place=document.place,
        places={name: document.spec.place_of(name) for name in document.spec.value},
        workflows=workflows,
        policies=policies,
        by=by,
        # Equal times keep the order of the file: Python's sort is stable.
        script=tuple(sorted(script, key=lambda action: action.at_ms)),
        **{field: found[field] for field in fields},
    )


def read_workflows(
    spec: Node, found: dict[str, Any], report: Report, load_file: LoadFile, limits: Limits
) -> Under:
    """The workflows under test, and policies; empty if they cannot be had, which is reported."""
    if not isinstance(spec.value, dict):
        return (), ()
    said = written_in(spec, SCENARIO_TABLE)
    if ("workflow" in said) == ("definition" in said):
        report.error(
            spec.place,
            "scenario.workflow",
            "a scenario has exactly one of workflow and definition",
            "name a file with workflow: ./NAME.yaml, or put the Workflow under definition:",
        )
        return (), ()
    if "workflow" in found:
        return load_workflow(found["workflow"], report, load_file, limits)
    nodes = found.get("definition", ())
    checked = [check_workflow(node) for node in nodes]
    for _, findings in checked:
        adopt(findings, report)
    policies = [policy for node in nodes if (policy := check_policy(node, report))]
    workflows = tuple(workflow for workflow, _ in checked if workflow)
    return workflows, tuple(policies)


def load_workflow(path: Node, report: Report, load_file: LoadFile, limits: Limits) -> Under:
    """The workflows and policies of a file beside the scenario."""
    try:
        text = load_file(path.value)
    except OSError as error:
        report.error(
            path.place,
            "scenario.workflow",
            f"workflow: {path.value!r} cannot be read: {error.strerror or error}",
            "write the path relative to this file",
        )
        return (), ()
    loaded = load_checked(text, path.value, limits=limits)
    workflows = loaded.workflows
    adopt(loaded.findings, report)
    if not workflows and not report.errors:
        report.error(
            path.place,
            "scenario.workflow",
            f"workflow: {path.value!r} holds no Workflow",
            "name a file with a document of kind: Workflow",
        )
    return tuple(workflows), tuple(each.policy for each in loaded.policies)


def adopt(findings: list[Finding], report: Report) -> None:
    """Take over the errors of a workflow; its warnings are for `pawl check`."""
    for found in findings:
        if found.severity == "error":
            place = Place(found.file, found.line, found.column)
            report.error(place, found.code, found.message, found.hint)


def check_paths(spec: Node, paths: StepPaths, report: Report) -> None:
    """Every step that the scenario names is one of the workflow's."""
    if "stubs" in spec.value:
        check_stubs(spec.value["stubs"], paths, report)
    for name, place in names_expected(spec.value.get("expect")):
        paths.check(name, place, report)
    for name, place in names_scripted(spec.value.get("script")):
        paths.check(name, place, report)


def check_stubs(node: Node, paths: StepPaths, report: Report) -> None:
    """The steps with stubs exist, and are ones that ask their stub."""
    for name, place in keys_of(node):
        step = paths.check(name, place, report)
        if step is None or "undo" in name.split("/"):
            continue
        if step.kind in UNSTUBBED_KINDS or paths.is_defined_child(step):
            report.warning(
                place,
                "scenario.stub_unused",
                f"stub {name!r} is never asked: the step is {step.kind}",
                "remove it; use the script for gates and waits, PARENT/STEP for a child's steps",
            )


def keys_of(node: Node | None) -> Iterator[tuple[str, Place]]:
    """Keys with their places."""
    if node and isinstance(node.value, dict):
        yield from ((key, node.place_of(key)) for key in node.value)


def names_expected(expect: Node | None) -> Iterator[tuple[str, Place]]:
    """Every step that an expectation names, where it does."""
    parts = expect.value if expect and isinstance(expect.value, dict) else {}
    for field in ("steps", "undo", "attempts", "feedback"):
        yield from keys_of(parts.get(field))
    for label, place in keys_of(parts.get("params")):
        yield label.rpartition("#")[0] or label, place
    order = parts.get("order")
    if order and isinstance(order.value, list):
        for item in order.value:
            yield str(item.value).rpartition("#")[0], item.place
    error = parts.get("error")
    if error and isinstance(error.value, str):
        yield error.value, error.place


def is_to_be_refused(entry: Node) -> bool:
    """An entry that the engine must refuse may name what does not exist."""
    refused = entry.value.get("refused") if isinstance(entry.value, dict) else None
    return refused is not None and refused.value is True


def names_scripted(script: Node | None) -> Iterator[tuple[str, Place]]:
    """Every step that a script names, where it does."""
    entries = script.value if script and isinstance(script.value, list) else ()
    for entry in entries:
        if is_to_be_refused(entry):
            continue
        for verb in VERBS:
            action = entry.value.get(verb) if isinstance(entry.value, dict) else None
            step = action.value.get("step") if action and isinstance(action.value, dict) else None
            if step and isinstance(step.value, str):
                yield step.value, step.place
