"""JSON Schemas of documents, for editors.

Made from the tables that the checker reads by, so the two cannot drift apart. An editor sees names,
types and words; what needs the whole document (cycles, expressions, ancestors) only `check` sees.
"""

from typing import Any

from pawlflow.definition import policy, schedule
from pawlflow.definition.fields import Schema, Table
from pawlflow.definition.frame import IOA, IOA_TABLE, PAWL, PAWL_TABLE
from pawlflow.definition.schedule import SPEC_TABLE as SCHEDULE_TABLE
from pawlflow.definition.spec_fields import (
    IOA_METADATA_TABLE,
    IOA_SPEC_TABLE,
    METADATA_TABLE,
    SPEC_TABLE,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def workflow_schema() -> Schema:
    """What a Workflow may say, in either of its formats."""
    ioa = {"properties": {"apiVersion": {"const": IOA}}, "required": ["apiVersion"]}
    return {
        "$schema": DRAFT,
        "title": "Pawl workflow",
        "if": ioa,
        "then": document_schema(IOA_TABLE, IOA, "Workflow", IOA_METADATA_TABLE, IOA_SPEC_TABLE),
        "else": document_schema(PAWL_TABLE, PAWL, "Workflow", METADATA_TABLE, SPEC_TABLE),
    }


def schedule_schema() -> Schema:
    """What a Schedule may say; it has one of `schedule` and `cron`."""
    schema = document_schema(PAWL_TABLE, PAWL, "Schedule", schedule.METADATA_TABLE, SCHEDULE_TABLE)
    schema["properties"]["spec"]["oneOf"] = [{"required": [n]} for n in ("schedule", "cron")]
    return {"$schema": DRAFT, "title": "Pawl schedule", **schema}


def policy_schema() -> Schema:
    """What a Policy may say; whether its text is Cedar only `check` sees."""
    parts = (policy.METADATA_TABLE, policy.SPEC_TABLE)
    schema = document_schema(PAWL_TABLE, PAWL, "Policy", *parts)
    return {"$schema": DRAFT, "title": "Pawl policy", **schema}


def document_schema(frame: Table, api: str, kind: str, metadata: Table, spec: Table) -> Schema:
    """A document: its frame with the parts of its kind."""
    schema = frame.schema()
    parts: dict[str, Any] = {
        "apiVersion": {"const": api},
        "kind": {"const": kind},
        "metadata": metadata.schema(),
        "spec": spec.schema(),
    }
    for name, part in parts.items():
        doc = schema["properties"][name]["description"]
        schema["properties"][name] = {**part, "description": doc}
    return schema
