"""The fields of a workflow: its frame, its metadata and its spec."""

from typing import Any

from pawlflow.definition.fields import (
    AMOUNT,
    ANY,
    BAD,
    FLAG,
    TEXT,
    TIMEOUT,
    Field,
    Reader,
    Table,
    choice,
    integer,
    list_of,
    misread,
    read_fields,
    read_part,
    struct,
    without_bad,
)
from pawlflow.definition.read import Node, plain
from pawlflow.definition.readers import (
    ATTRIBUTE_NAME,
    CRON,
    EFFECT,
    EVENT,
    EXPRESSION,
    JSON_SCHEMA,
    ROLE,
    STEP,
    TEMPLATE,
    WORKFLOW,
    ZONE,
)
from pawlflow.definition.report import Report
from pawlflow.definition.shape import Keyed, Retention, Rung, Trigger
from pawlflow.definition.step_fields import IOA_STEP_TABLE, KINDS, PRIORITY, STEP_TABLE

VERSION_MAX = 2**31 - 1

CONCURRENCY_TABLE = Table(
    "concurrency",
    {
        "key": Field("key", EXPRESSION, "instances with the same key queue up", required=True),
        "limit": Field("limit", integer(1), "how many run at a time, default 1"),
    },
)
RATE_TABLE = Table(
    "rate",
    {
        "key": Field("key", EXPRESSION, "starts with the same key share the limit", required=True),
        "limit": Field("limit", integer(1), "how many may start", required=True),
        "per": Field("per_ms", TIMEOUT, "in how long", required=True),
    },
)
RETENTION_TABLE = Table(
    "retention",
    {
        "completed": Field("completed_ms", TIMEOUT, "how long completed instances are kept"),
        "failed": Field("failed_ms", TIMEOUT, "how long failed and cancelled ones are kept"),
    },
)
RUNG_TABLE = Table(
    "an escalation",
    {
        "role": Field("role", ROLE, "who is asked", required=True),
        "channel": Field("channel", TEXT, "by which channel"),
        "timeout": Field("timeout_ms", TIMEOUT, "how long before the next rung is asked"),
    },
)
TRIGGER_TABLE = Table(
    "trigger",
    {
        "event": Field("event", EVENT, "the event that starts an instance"),
        "condition": Field("condition", EXPRESSION, "which events: an expression over event"),
        "schedule": Field("schedule", CRON, "five-field cron"),
        "timezone": Field("timezone", ZONE, "of the schedule, default UTC"),
        "catchUp": Field(
            "catch_up", choice("none", "last", "all"), "what happens to missed times, default none"
        ),
    },
)
BOUND_TABLE = Table(
    "a budget",
    {
        "soft": Field("soft", AMOUNT, "above this a warning is raised"),
        "hard": Field("hard", AMOUNT, "above this nothing starts until a human raises it"),
    },
)
COMPENSATION_TABLE = Table(
    "a compensation",
    {
        "step": Field("step", STEP, "the step it undoes", required=True),
        "action": Field("action", TEXT, "what the agent is asked to do", required=True),
        "agent": Field("agent", ROLE, "the role of the agent", required=True),
    },
)


def concurrency_of(*, limit: int = 1, **found: Any) -> Keyed:
    """One at a time, unless it says otherwise."""
    return Keyed(limit=limit, **found)


def read_bound(node: Node, report: Report, name: str) -> Any:
    """A soft and a hard limit, the soft one below."""
    before = len(report.findings)
    found = read_fields(node, BOUND_TABLE, report)
    if not found and len(report.findings) == before:
        return misread(report, node, name, "soft, hard or both")
    if "soft" in found and "hard" in found and found["soft"] > found["hard"]:
        report.error(
            node.value["soft"].place,
            "field.value",
            f"{name}: soft ({found['soft']}) is above hard ({found['hard']})",
            "the soft limit warns before the hard one stops: make it the smaller one",
        )
    return found


BOUND = Reader(read_bound, BOUND_TABLE.schema())
BUDGET_TABLE = Table(
    "budget",
    {
        "usd": Field("usd", BOUND, "money"),
        "tokens": Field("tokens", BOUND, "tokens of models"),
    },
)


def read_trigger(node: Node, report: Report, _: str) -> Any:
    """What starts an instance: an event, a schedule or both."""
    found = read_part(node, TRIGGER_TABLE, report)
    if found is BAD:
        return BAD
    if "event" not in found and ("schedule" not in found or "condition" in found):
        report.error(
            node.place,
            "field.missing",
            "trigger has no 'event'" + ("" if "condition" in found else " and no 'schedule'"),
            "add event: NAME, or schedule: CRON",
        )
    return Trigger(**found)


ATTRIBUTES_MAX = 32  # of one workflow: each is a row of an index for every instance


def read_search(node: Node, report: Report, name: str) -> Any:
    """Indexed attributes, each an expression."""
    if not isinstance(node.value, dict):
        return misread(report, node, name, "a mapping of attribute to expression")
    if len(node.value) > ATTRIBUTES_MAX:
        misread(report, node, name, f"at most {ATTRIBUTES_MAX} attributes", "field.value")
    found = {}
    for key, child in node.value.items():
        if not ATTRIBUTE_NAME.match(key):
            report.error(
                node.place_of(key),
                "name.bad",
                f"{name}: {key!r} is not a name of an attribute",
                "use letters, digits, dot, hyphen and underscore, starting with a letter",
            )
        found[key] = EXPRESSION.read(child, report, key)
    return without_bad(**found)


SEARCH = Reader(
    read_search,
    {
        "type": "object",
        "additionalProperties": EXPRESSION.schema,
        "maxProperties": ATTRIBUTES_MAX,
    },
)


def nodes_only(node: Node, report: Report, name: str) -> Any:
    """Steps and compensations are read one by one, after everything around them."""
    if isinstance(node.value, list):
        return node.value
    return misread(report, node, name, "a list")


def steps_of(table: Table) -> Reader:
    """The list of steps; how each is read is in `table`."""
    step = table.schema_with("oneOf", *(kind for kind in KINDS if kind in table.fields))
    return Reader(nodes_only, {"type": "array", "items": step, "minItems": 1})


COMPENSATION = Reader(nodes_only, {"type": "array", "items": COMPENSATION_TABLE.schema()})

SPEC_TABLE = Table(
    "spec",
    {
        "description": Field("description", TEXT, "what the workflow is for"),
        "input": Field("input", JSON_SCHEMA, "JSON Schema of the input"),
        "timeout": Field("timeout_ms", TIMEOUT, "of the whole instance, waiting included"),
        "failurePolicy": Field(
            "failure_policy",
            choice("abort", "skip", "compensate", "retry"),
            "the default onFailure of steps: abort (default), skip, compensate, retry",
        ),
        "mode": Field(
            "mode", choice("dag", "sequence"), "sequence: steps without dependsOn run as a chain"
        ),
        "maxParallel": Field("max_parallel", integer(1), "running attempts at a time"),
        "concurrency": Field(
            "concurrency", struct(concurrency_of, CONCURRENCY_TABLE), "instances per key"
        ),
        "rate": Field("rate", struct(Keyed, RATE_TABLE), "starts per key and time"),
        "trigger": Field(
            "trigger",
            Reader(read_trigger, TRIGGER_TABLE.schema_with("anyOf", "event", "schedule")),
            "what starts it by itself",
        ),
        "effects": Field("effects", list_of(EFFECT, "effects"), "the effects steps may run"),
        "budget": Field("budget", struct(without_bad, BUDGET_TABLE), "limits of spending"),
        "steps": Field("steps", steps_of(STEP_TABLE), "the steps", required=True),
        "compensation": Field("compensation", COMPENSATION, "undo by agents, as in spec 003"),
        "output": Field("output", TEMPLATE, "the result of the workflow; texts may hold ${...}"),
        "onUndoFailure": Field(
            "on_undo_failure", choice("stop", "continue"), "after a failed undo; default stop"
        ),
        "parallelUndo": Field("parallel_undo", FLAG, "undo independent steps at the same time"),
        "priority": Field("priority", PRIORITY, "higher starts first, default 0"),
        "search": Field("search", SEARCH, "indexed attributes to find instances by"),
        "retention": Field(
            "retention", struct(Retention, RETENTION_TABLE), "how long instances are kept"
        ),
        "escalation": Field(
            "escalation",
            list_of(struct(Rung, RUNG_TABLE), "escalations"),
            "who is asked, one after another",
        ),
    },
)
IOA_SPEC_TABLE = Table(
    "spec",
    {
        **SPEC_TABLE.fields,
        "steps": Field("steps", steps_of(IOA_STEP_TABLE), "the steps", required=True),
        "domainsInvolved": Field(
            "domainsInvolved", list_of(TEXT, "domains"), "for policies to ask"
        ),
    },
)

LABELS = Reader(
    lambda node, report, name: (
        plain(node) if isinstance(node.value, dict) else misread(report, node, name, "a mapping")
    ),
    {"type": "object"},
)
METADATA_TABLE = Table(
    "metadata",
    {
        "name": Field("name", WORKFLOW, "the workflow's name", required=True),
        "version": Field("version", integer(1, VERSION_MAX), "a positive number, default 1"),
        "owner": Field("owner", ANY, "who is responsible; kept, not read"),
        "labels": Field("labels", LABELS, "kept, not read"),
        "annotations": Field("annotations", LABELS, "kept, not read"),
    },
)


IOA_METADATA_TABLE = Table(
    "metadata",
    {
        **METADATA_TABLE.fields,
        "version": Field("version", ANY, "any text; a whole number is the version of the workflow"),
        "createdAt": Field("createdAt", ANY, "kept, not read"),
        "updatedAt": Field("updatedAt", ANY, "kept, not read"),
    },
)
