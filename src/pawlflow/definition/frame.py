"""The frame every document shares: apiVersion, kind, metadata, spec."""

from typing import Any

import msgspec

from pawlflow.definition.fields import ANY, TEXT, Field, Reader, Table, choice, read_fields
from pawlflow.definition.finding import Place
from pawlflow.definition.read import Node
from pawlflow.definition.report import Report

PAWL = "pawl.dev/v1"
IOA = "ioa.dev/v0.2"
# Kinds whose frame is checked and whose spec is kept, but which nothing reads in this version.
LATER_KINDS = (
    "AgentPool",
    "ModelPolicy",
    "Manifest",
    "Tenant",
    "Blueprint",
    "Module",
)
KINDS = ("Workflow", "Scenario", "Schedule", "Policy", *LATER_KINDS)


def read_node(node: Node, _: Report, __: str) -> Any:
    """A part that is read later, by the rules of its kind."""
    return node


NODE = Reader(read_node, {"type": "object"})


def frame_table(kinds: tuple[str, ...]) -> Table:
    """The top level of a document: closed, whatever its kind."""
    versions = choice(PAWL, IOA)
    return Table(
        "the document",
        {
            "apiVersion": Field("api", versions, "the format of the document", required=True),
            "kind": Field("kind", choice(*kinds), "what the document describes", required=True),
            "metadata": Field("metadata", NODE, "its name, and notes about it", required=True),
            "spec": Field("spec", NODE, "what it says", required=True),
        },
    )


PAWL_TABLE = frame_table(KINDS)
# IOA documents carry their run-time status with them; an instance's status is in the journal.
IOA_TABLE = Table(
    "the document",
    {
        **frame_table(("Workflow",)).fields,
        "status": Field("status", ANY, "ignored"),
    },
)
NAME_TABLE = Table(
    "metadata",
    {
        "name": Field("name", TEXT, "the name of the document", required=True),
        "version": Field("version", ANY, "its version"),
        "owner": Field("owner", ANY, "kept, not read"),
        "labels": Field("labels", ANY, "kept, not read"),
        "annotations": Field("annotations", ANY, "kept, not read"),
    },
)


class Document(msgspec.Struct, frozen=True, eq=False):
    """One document of a file: its kind is known, its spec not yet read."""

    kind: str
    ioa: bool
    node: Node
    metadata: Node | None
    spec: Node | None

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.node.place


def read_frame(node: Node, report: Report) -> Document | None:
    """The document, if we can tell what it is."""
    ioa = isinstance(node.value, dict) and is_ioa(node)
    found = read_fields(node, IOA_TABLE if ioa else PAWL_TABLE, report)
    if "api" not in found or "kind" not in found:
        return None
    return Document(
        kind=found["kind"],
        ioa=ioa,
        node=node,
        metadata=found.get("metadata"),
        spec=found.get("spec"),
    )


def is_ioa(node: Node) -> bool:
    """Which of the two formats is this?"""
    version = node.value.get("apiVersion")
    return version is not None and version.value == IOA
