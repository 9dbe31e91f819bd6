"""Text in, workflows and findings out. The caller reads the file; nothing here touches a disk."""

from contextlib import suppress

from pawlflow.definition.fields import read_fields
from pawlflow.definition.finding import Finding, Place, RefusedError
from pawlflow.definition.frame import LATER_KINDS, NAME_TABLE, Document, read_frame
from pawlflow.definition.read import FILE_LIMITS, Limits, read_yaml
from pawlflow.definition.report import EnoughError, Report
from pawlflow.definition.shape import Workflow
from pawlflow.definition.workflow import read_workflow


def load_text(text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS) -> list[Document]:
    """The documents of a file, with their frames checked. Raises RefusedError."""
    report = Report()
    documents: list[Document] = []
    with suppress(EnoughError):
        documents = read_documents(text, file, report, limits)
    if report.errors:
        raise RefusedError(report.sorted())
    return documents


def load_workflows(
    text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS
) -> tuple[list[Workflow], list[Finding]]:
    """The workflows of a file that have no errors, and everything found in the file.

    Scenarios are passed over: they are read by `pawlflow.testing.scenario`.
    """
    report = Report()
    workflows: list[Workflow] = []
    with suppress(EnoughError):
        documents = read_documents(text, file, report, limits)
        unread = report.errors  # what a broken file seems to say is checked, but not used
        found = [
            (workflow, document)
            for document in documents
            if document.kind == "Workflow" and (workflow := read_workflow(document, report, limits))
        ]
        refuse_twins(found, report)
        workflows = [workflow for workflow, _ in found if not unread]
    return workflows, report.sorted()


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


def refuse_twins(found: list[tuple[Workflow, Document]], report: Report) -> None:
    """Two workflows of one name and version in one file: which one would be meant?"""
    seen = set()
    for workflow, document in found:
        key = (workflow.name, workflow.version)
        if key in seen:
            report.error(
                document.node.at(("metadata", "name")).place,
                "workflow.duplicate",
                f"workflow {workflow.name!r} version {workflow.version} is defined twice",
                "give one of them another name or version",
            )
        seen.add(key)
