"""From a document of kind Policy to a `Policy`, or to everything that is wrong with it.

Whether its text is Cedar is judged further out: the parser of Cedar is a package of its own.
"""

from typing import Any, Final

import msgspec

from pawlflow.definition.fields import (
    ANY,
    BAD,
    NUMBER_MAX,
    Field,
    Reader,
    Table,
    integer,
    read_fields,
)
from pawlflow.definition.frame import Document
from pawlflow.definition.read import Node
from pawlflow.definition.readers import WORKFLOW
from pawlflow.definition.report import Report
from pawlflow.definition.shape import Policy

CEDAR_MAX: Final = 256 * 1024  # characters of one policy: it is read whole before every decision


def read_cedar(node: Node, report: Report, _: str) -> Any:
    """The text of one or many Cedar policies."""
    if not isinstance(node.value, str) or not node.value.strip():
        report.error(
            node.place,
            "field.type",
            "cedar: expected the text of one or many Cedar policies",
            'write cedar: | and below it @id("all") permit(principal, action, resource);',
        )
        return BAD
    if len(node.value) > CEDAR_MAX:
        message = f"cedar: {len(node.value):,} characters; at most {CEDAR_MAX:,} are read"
        report.error(node.place, "field.value", message, "split it into several policies")
        return BAD
    return node.value


CEDAR: Final = Reader(read_cedar, {"type": "string", "minLength": 1, "maxLength": CEDAR_MAX})
METADATA_TABLE: Final = Table(
    "metadata",
    {
        "name": Field("name", WORKFLOW, "the policy's name", required=True),
        "version": Field(
            "version",
            integer(1, NUMBER_MAX),
            "its version, default 1; a published one never changes",
        ),
        "owner": Field("owner", ANY, "kept, not read"),
        "labels": Field("labels", ANY, "kept, not read"),
        "annotations": Field("annotations", ANY, "kept, not read"),
    },
)
SPEC_TABLE: Final = Table(
    "spec",
    {
        "cedar": Field(
            "cedar", CEDAR, "one or many Cedar policies, each with an @id", required=True
        ),
        "description": Field("description", ANY, "kept, not read"),
    },
)


class PolicyFound(msgspec.Struct, frozen=True):
    """A policy, and where its text stands."""

    policy: Policy
    text: Node


def read_policy(document: Document, report: Report) -> PolicyFound | None:
    """The policy of a document whose frame is right. None if anything else is wrong."""
    before, metadata, spec = report.errors, document.metadata, document.spec
    about = {} if metadata is None else read_fields(metadata, METADATA_TABLE, report)
    found = {} if spec is None else read_fields(spec, SPEC_TABLE, report)
    if report.errors > before or metadata is None or spec is None:
        return None
    about = {name: about[name] for name in ("name", "version") if name in about}
    return PolicyFound(Policy(**about, cedar=found["cedar"]), spec.value["cedar"])
