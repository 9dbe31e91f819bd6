"""The JSON Schemas for editors: they accept what the checker accepts, and know every field."""

import os
import re
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest

from pawlflow.definition import codes, expressions, fields, spec_fields, step_fields
from pawlflow.definition.codes import CODES
from pawlflow.definition.fields import Table
from pawlflow.definition.load import load_text
from pawlflow.definition.read import plain
from pawlflow.definition.schema import policy_schema, schedule_schema, workflow_schema
from pawlflow.definition.shape import Step, Workflow
from pawlflow.testing import scenario, scenario_fields, scenario_policies, step_paths
from pawlflow.testing.scenario import scenario_schema

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    *Path(fields.__file__).parent.rglob("*.py"),
    *(Path(room.__file__) for room in (scenario, scenario_fields, scenario_policies, step_paths)),
]
DATA = os.environ.get("PAWL_TEST_DATA")
IOA = sorted(Path(DATA, "ioa").glob("*.yaml")) if DATA else []
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
VALIDATORS = {
    "Workflow": jsonschema_rs.validator_for(workflow_schema()),
    "Scenario": jsonschema_rs.validator_for(scenario_schema()),
    "Schedule": jsonschema_rs.validator_for(schedule_schema()),
    "Policy": jsonschema_rs.validator_for(policy_schema()),
}


@pytest.mark.skipif(not IOA, reason="PAWL_TEST_DATA names no folder with ioa/*.yaml")
@pytest.mark.parametrize("path", IOA, ids=lambda path: path.name)
def test_ioa_documents_fit_the_schema(path):
    """Editors show no error in a public document."""
    assert problems(path) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_our_examples_fit_the_schema(path):
    """Nor in ours, scenarios included."""
    assert problems(path) == []


def problems(path):
    documents = [d for d in load_text(path.read_bytes(), path.name) if d.kind in VALIDATORS]
    return [
        f"{list(error.instance_path)}: {error.message}"
        for document in documents
        for error in VALIDATORS[document.kind].iter_errors(plain(document.node))
    ]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (("spec", "timeout"), "soon"),
        (("spec", "timeout"), ""),
        (("spec", "timeuot"), "5m"),
        (("spec", "failurePolicy"), "never"),
        (("spec", "steps"), []),
        (("spec", "steps"), [{"name": "a"}]),
        (("spec", "steps"), [{"name": "a", "run": "e.x", "agent": "r"}]),
        (("spec", "steps"), [{"name": "Bad Name", "run": "e.x"}]),
        (("spec", "steps"), [{"name": "undo", "run": "e.x"}]),
        (("spec", "steps"), [{"name": "a", "run": "e.x", "undo": {}}]),
        (("spec", "steps"), [{"name": "a", "run": "e.x", "undo": {"run": "e.y", "agent": "r"}}]),
        (("spec", "trigger"), {"condition": "event.a"}),
        (("metadata", "version"), 0),
        (("kind",), "Scenario"),
        (("apiVersion",), "pawl.dev/v9"),
    ],
)
def test_editors_see_mistakes(part, value):
    """What a table can tell, the schema tells."""
    document = {
        "apiVersion": "pawl.dev/v1",
        "kind": "Workflow",
        "metadata": {"name": "w"},
        "spec": {"timeout": "1h", "steps": [{"name": "a", "run": "e.x", "timeout": "500ms"}]},
    }
    assert VALIDATORS["Workflow"].is_valid(document)
    target = document
    for name in part[:-1]:
        target = target[name]
    target[part[-1]] = value
    assert not VALIDATORS["Workflow"].is_valid(document)


def tables():
    rooms = (spec_fields, step_fields, scenario_fields, expressions)
    found = [t for room in rooms for t in vars(room).values() if isinstance(t, Table)]
    return list({id(table): table for table in found}.values())


@pytest.mark.parametrize("table", tables(), ids=lambda table: table.part)
def test_every_field_is_in_its_schema_with_words_about_it(table):
    """Table and schema are one, and each field is described."""
    properties = table.schema()["properties"]
    assert list(properties) == list(table.fields)
    assert all(property["description"] for property in properties.values())


def test_every_field_of_the_shape_can_be_written():
    """Nothing in a workflow can be said in Python only."""
    kinds = {"kind", "target", "gate", "sleep_ms"}  # written as the step's kind
    written = {field.to for field in step_fields.STEP_TABLE.fields.values()}
    assert {f.name for f in msgspec.structs.fields(Step)} - written == kinds
    written = {field.to for field in spec_fields.SPEC_TABLE.fields.values()}
    about = {"name", "version", "metadata"}
    assert {f.name for f in msgspec.structs.fields(Workflow)} - written == about


def test_every_code_is_explained_and_used():
    """`pawl explain` knows exactly the codes that findings have."""
    text = "".join(file.read_text() for file in SOURCES if file.name != Path(codes.__file__).name)
    kinds = "|".join(sorted({code.partition(".")[0] for code in CODES}))
    text = text.replace('"policy.resource"', "")  # a field, and no code
    used = set(re.findall(rf'"((?:{kinds})\.[a-z0-9_]+)"', text))
    assert used == set(CODES)
    assert all(cause.endswith(".") and out.endswith(".") for cause, out in CODES.values())
