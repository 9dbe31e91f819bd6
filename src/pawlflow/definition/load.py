"""Text in, workflows and findings out. The caller reads the file; nothing here touches a disk."""

from collections.abc import Iterable
from contextlib import suppress

import msgspec

from pawlflow.definition.fields import read_fields
from pawlflow.definition.finding import Finding, Place, RefusedError
from pawlflow.definition.frame import LATER_KINDS, NAME_TABLE, Document, read_frame
from pawlflow.definition.policy import PolicyFound, read_policy
from pawlflow.definition.read import FILE_LIMITS, Limits, read_yaml
from pawlflow.definition.report import EnoughError, Report
from pawlflow.definition.schedule import read_schedule
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.definition.workflow import read_workflow
from pawlflow.model.ids import WorkflowName


def load_text(text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS) -> list[Document]:
    """The documents of a file, with their frames checked. Raises RefusedError."""
    report = Report()
    documents: list[Document] = []
    with suppress(EnoughError):
        documents = read_documents(text, file, report, limits)
    if report.errors:
        raise RefusedError(report.sorted())
    return documents


class Definitions(msgspec.Struct, frozen=True):
    """What a file defines, as far as it has no errors, and everything found in it."""

    workflows: list[Workflow]
    schedules: list[Schedule]
    findings: list[Finding]
    documents: list[Document]  # of every kind; none if the file could not be read whole
    policies: list[PolicyFound] = []


def load_workflows(
    text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS
) -> tuple[list[Workflow], list[Finding]]:
    """The workflows of a file that have no errors, and everything found in the file."""
    found = load_definitions(text, file, limits=limits)
    return found.workflows, found.findings


def load_definitions(text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS) -> Definitions:
    """The workflows, schedules and policies of a file.

    Scenarios are passed over: they are read by `pawlflow.testing.scenario`.
    """
    report = Report()
    workflows: list[Workflow] = []
    schedules: list[Schedule] = []
    kept: list[Document] = []
    policies: list[PolicyFound] = []
    with suppress(EnoughError):
        documents = read_documents(text, file, report, limits)
        unread = report.errors  # what a broken file seems to say is checked, but not used
        kept = [] if unread else documents
        found = [
            (workflow, document)
            for document in documents
            if document.kind == "Workflow" and (workflow := read_workflow(document, report, limits))
        ]
        planned = [
            (schedule, document)
            for document in documents
            if document.kind == "Schedule" and (schedule := read_schedule(document, report))
        ]
        ruled = [
            (policy, document)
            for document in documents
            if document.kind == "Policy" and (policy := read_policy(document, report))
        ]
        refuse_twins("workflow.duplicate", found, report)
        refuse_twins(
            "policy.duplicate", ((each.policy, document) for each, document in ruled), report
        )
        refuse_twins("schedule.duplicate", planned, report)
        refuse_taken(planned, [workflow for workflow, _ in found], report)
        workflows = [workflow for workflow, _ in found if not unread]
        schedules = [schedule for schedule, _ in planned if not unread]
        policies = [policy for policy, _ in ruled if not unread]
    return Definitions(workflows, schedules, report.sorted(), kept, policies)


def read_documents(text: str | bytes, file: str, report: Report, limits: Limits) -> list[Document]:
    """Every document whose kind is known; empty ones are passed over."""
    before = report.errors
    nodes = [
        node for node in read_yaml(text, file, report, limits=limits) if node.value is not None
    ]
    if not nodes and report.errors == before:
        report.error(
            Place(file, 1, 1),
            "yaml.empty",
            "the file holds no document",
            "start with apiVersion: pawl.dev/v1 and kind: Workflow",
        )
    documents = [document for node in nodes if (document := read_frame(node, report))]
    for document in documents:
        if document.kind in LATER_KINDS:
            check_later(document, report)
    return documents


def check_later(document: Document, report: Report) -> None:
    """A kind that is part of the format, but that nothing reads yet."""
    if document.metadata is not None:
        read_fields(document.metadata, NAME_TABLE, report)
    report.warning(
        document.node.value["kind"].place,
        "kind.later",
        f"kind {document.kind} is accepted, but nothing reads it in this version",
        "keep it in a file of its own until a version reads it",
    )


def refuse_twins(
    code: str, found: Iterable[tuple[Workflow | Policy | Schedule, Document]], report: Report
) -> None:
    """Two of one name, and of one version where they have any: which one would be meant?"""
    kind, seen = code.partition(".")[0], set()
    for each, document in found:
        version = None if isinstance(each, Schedule) else each.version
        if (each.name, version) in seen:
            told, other = ("", "") if version is None else (f" version {version}", " or version")
            report.error(
                document.node.at(("metadata", "name")).place,
                code,
                f"{kind} {each.name!r}{told} is defined twice",
                f"give one of them another name{other}",
            )
        seen.add((each.name, version))


def refuse_taken(
    planned: Iterable[tuple[Schedule, Document]], workflows: list[Workflow], report: Report
) -> None:
    """The schedule of a workflow has the workflow's name, so no document may have it.

    Of several versions the latest counts: it is the one whose schedule is in force.
    """
    latest = {each.name: each for each in sorted(workflows, key=lambda each: each.version)}
    for schedule, document in planned:
        own = latest.get(WorkflowName(schedule.name))
        if own is not None and own.trigger is not None and own.trigger.schedule is not None:
            report.error(
                document.node.at(("metadata", "name")).place,
                "schedule.duplicate",
                f"schedule {schedule.name!r} has the name of workflow {own.name!r}, whose own "
                "trigger.schedule is called by it",
                "give the Schedule another name, or remove trigger.schedule",
            )
