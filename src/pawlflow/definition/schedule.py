"""From a document of kind Schedule to a `Schedule`, or to everything that is wrong with it."""

from typing import Any, Final

from pawlflow.definition.draft import Draft
from pawlflow.definition.express import ExpressionError, compile_template
from pawlflow.definition.expressions import Text, compile_text
from pawlflow.definition.fields import ANY, BAD, FLAG, Field, Table, choice, read_fields, written_in
from pawlflow.definition.frame import Document
from pawlflow.definition.read import Node, plain
from pawlflow.definition.readers import CRON, PARAMS, WORKFLOW, ZONE
from pawlflow.definition.report import Report
from pawlflow.definition.shape import Schedule

ROOTS: Final = frozenset({"schedule"})
SAMPLE: Final = {"name": "nightly", "due": "2026-11-15T06:00:00Z"}  # what `schedule` is, in form

METADATA_TABLE: Final = Table(
    "metadata",
    {
        "name": Field("name", WORKFLOW, "the schedule's name", required=True),
        "version": Field("version", ANY, "kept, not read"),
        "owner": Field("owner", ANY, "kept, not read"),
        "labels": Field("labels", ANY, "kept, not read"),
        "annotations": Field("annotations", ANY, "kept, not read"),
    },
)
CATCH_UP: Final = choice("none", "last", "all")
SPEC_TABLE: Final = Table(
    "spec",
    {
        "workflow": Field("workflow", WORKFLOW, "the workflow it starts", required=True),
        "schedule": Field("schedule", CRON, "five-field cron"),
        "cron": Field("cron", CRON, "another word for schedule"),
        "timezone": Field("timezone", ZONE, "of the schedule, default UTC"),
        "catchUp": Field("catch_up", CATCH_UP, "what happens to missed times, default none"),
        "input": Field("input", PARAMS, "of each run; texts may hold ${ schedule.due }"),
        "paused": Field("paused", FLAG, "whether it begins to wait; as it is if left out"),
    },
)


def read_schedule(document: Document, report: Report) -> Schedule | None:
    """The schedule of a document whose frame is right. None if anything else is wrong."""
    before, metadata, spec = report.errors, document.metadata, document.spec
    about = {} if metadata is None else read_fields(metadata, METADATA_TABLE, report)
    found = {} if spec is None else read_fields(spec, SPEC_TABLE, report)
    if spec is not None and isinstance(spec.value, dict):
        check_line(spec, report)
        if "input" in found:
            check_input(spec.value["input"], report)
    if report.errors > before or metadata is None or spec is None:
        return None
    line = found.pop("cron", None) or found["schedule"]
    return Schedule(name=about["name"], **found | {"schedule": line})


def check_line(spec: Node, report: Report) -> None:
    """Its times are given once."""
    given = [name for name in ("schedule", "cron") if name in spec.value]
    if not given and not {"schedule", "cron"}.intersection(written_in(spec, SPEC_TABLE)):
        report.error(
            spec.place,
            "field.missing",
            "spec has no 'schedule'",
            "add schedule: five-field cron, for example 0 6 * * 1 for Mondays at 6:00",
        )
    elif len(given) > 1:
        report.error(
            spec.place_of(given[1]),
            "field.conflict",
            "schedule and cron are two words for the same",
            "keep schedule",
        )


def check_input(node: Node, report: Report) -> None:
    """Every run must get an input: it is tried once, with a name and a time like any other."""
    before = report.errors
    draft = Draft(ioa=False, spec=node, fields={}, steps=[], index={})
    compile_text(Text(node, "input", ROOTS, template=True), draft, report)
    if report.errors > before:
        return
    program = compile_template(plain(node), roots=ROOTS)
    value: Any = BAD
    try:
        value = program.evaluate([SAMPLE] * len(program.refs))
    except ExpressionError as error:
        place = node.at(error.path).place
        report.error(place, error.code, f"input: {error.message}", error.hint or "mend it")
    if value is not BAD and not isinstance(value, dict):
        report.error(node.place, "field.type", "input: this gives no mapping", "write a mapping")
