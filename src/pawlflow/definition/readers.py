"""Readers of what only definitions hold: expressions, templates, schemas, retry policies."""

import re
from typing import Any

import jsonschema_rs

from pawlflow.definition.cron import cron_problem
from pawlflow.definition.fields import (
    BAD,
    DELAY,
    NUMBER_MAX,
    Field,
    Reader,
    Table,
    choice,
    integer,
    misread,
    name_of,
    read_fields,
    read_part,
    shown,
)
from pawlflow.definition.read import Node, plain
from pawlflow.definition.report import Report, suggest
from pawlflow.definition.shape import Edge, Retry
from pawlflow.definition.zones import is_zone, zone_names
from pawlflow.model.ids import EFFECT_NAME, ROLE_NAME, STEP_NAME, WORKFLOW_NAME

# `undo/NAME` is how stubs, attempts and orders name an undo, so no step may be called that.
RESERVED_STEP_NAMES = frozenset({"undo"})
SECRET_KEY = "$secret"  # the name of the field, not a secret
SECRET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._/-]{0,126}\Z")
ATTRIBUTE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}\Z")
ZONE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}\Z")
WRAPPED = re.compile(r"\s*\$\{(.*)\}\s*\Z", re.DOTALL)

STEP = name_of(STEP_NAME, "a step", RESERVED_STEP_NAMES)
WORKFLOW = name_of(WORKFLOW_NAME, "a workflow")
ROLE = name_of(ROLE_NAME, "a role")
EFFECT = name_of(EFFECT_NAME, "an effect")
EVENT = name_of(EFFECT_NAME, "an event")
ZONE_FORM = name_of(ZONE_NAME, "a time zone")


def bare(text: str) -> tuple[str, int]:
    """An expression without its `${}` and surrounding space, and where it begins in the text."""
    wrapped = WRAPPED.match(text)
    inner, start = (wrapped[1], wrapped.start(1)) if wrapped else (text, 0)
    return inner.strip(), start + len(inner) - len(inner.lstrip())


def read_expression(node: Node, report: Report, name: str) -> Any:
    """The source of an expression. Whether it is one is seen once all steps are known."""
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if not isinstance(node.value, str) or not bare(node.value)[0]:
        return misread(report, node, name, "an expression like input.count > 3")
    return bare(node.value)[0]


def read_template(node: Node, report: Report, name: str) -> Any:
    """A value whose texts may hold `${...}`, and whose secrets are references."""
    check_secrets(node, report, name)
    return plain(node)


def read_params(node: Node, report: Report, name: str) -> Any:
    """A template of parameters: a mapping, or a single `${...}`, whose value is passed as it is."""
    whole = isinstance(node.value, str) and WRAPPED.match(node.value)
    if not isinstance(node.value, dict) and not whole:
        return misread(report, node, name, "a mapping, or one ${...} in its place")
    return read_template(node, report, name)


def check_secrets(node: Node, report: Report, name: str) -> None:
    """`{$secret: name}` stands alone: beside other fields it would be sent as plain data."""
    if isinstance(node.value, list):
        for item in node.value:
            check_secrets(item, report, name)
        return
    if not isinstance(node.value, dict):
        return
    secret = node.value.get(SECRET_KEY)
    if secret is not None:
        if len(node.value) > 1:
            misread(report, node, name, "$secret alone in its mapping", "field.value")
        if not isinstance(secret.value, str) or not SECRET_NAME.match(secret.value):
            misread(report, secret, SECRET_KEY, "the name of a secret", "name.bad")
        return
    for child in node.value.values():
        check_secrets(child, report, name)


def compile_schema(schema: Any) -> jsonschema_rs.Validator:
    """A validator that fetches nothing and matches patterns in linear time.

    Raises jsonschema_rs.ValidationError if the schema is not one.
    """
    return jsonschema_rs.validator_for(
        schema, retriever=refuse_fetch, pattern_options=jsonschema_rs.RegexOptions()
    )


def refuse_fetch(uri: str) -> Any:
    """A schema that points outside would make checking depend on the network."""
    raise ValueError(f"{uri} is outside of the document")


def read_schema(node: Node, report: Report, name: str) -> Any:
    """A JSON Schema."""
    if not isinstance(node.value, dict | bool):
        return misread(report, node, name, "a JSON Schema (a mapping)")
    schema = plain(node)
    try:
        compile_schema(schema)
    except jsonschema_rs.ValidationError as error:
        path = tuple(error.instance_path)
        where = "/".join(str(part) for part in path) or "the schema"
        report.error(
            node.at(path).place,
            "schema.bad",
            f"{name}: not a JSON Schema: at {where}: {error.message}",
            "see json-schema.org, draft 2020-12; references must stay inside the schema",
        )
        return BAD
    return schema


def read_cron(node: Node, report: Report, name: str) -> Any:
    """A five-field cron line."""
    if not isinstance(node.value, str):
        return misread(report, node, name, "a cron line like 0 6 * * 1")
    if problem := cron_problem(node.value):
        report.error(
            node.place,
            "cron.bad",
            f"{name}: {shown(node)} is not a cron line: {problem}",
            "write minute, hour, day of month, month, day of week: 0 6 * * 1 is Mondays at 6:00",
        )
        return BAD
    return " ".join(node.value.split())


def read_zone(node: Node, report: Report, name: str) -> Any:
    """The name of a time zone that exists."""
    value = ZONE_FORM.read(node, report, name)
    if value is BAD or is_zone(value):
        return value
    report.error(
        node.place,
        "timezone.unknown",
        f"{name}: there is no time zone {value!r}",
        suggest(value, zone_names()) or "use a name like Europe/Berlin, or UTC",
    )
    return BAD


EDGE_TABLE = Table(
    "a dependency",
    {
        "step": Field("step", STEP, "the step to wait for", required=True),
        "require": Field(
            "require", choice("success"), "success: if that step is skipped, skip this one too"
        ),
    },
)


def read_edge(node: Node, report: Report, name: str) -> Any:
    """A dependency: a step's name, or a mapping that also says what is required of it."""
    if not isinstance(node.value, dict):
        step = STEP.read(node, report, name)
        return BAD if step is BAD else Edge(step=step)
    found = read_fields(node, EDGE_TABLE, report)
    if "step" not in found:
        return BAD
    return Edge(step=found["step"], require_success="require" in found)


BACKOFF = choice("constant", "linear", "exponential")


def read_backoff(node: Node, report: Report, name: str) -> Any:
    """A strategy, or a duration: the constant delay itself (spec 003's examples write "30s")."""
    if isinstance(node.value, str) and node.value[:1].isdigit():
        return DELAY.read(node, report, name)
    return BACKOFF.read(node, report, name)


RETRY_TABLE = Table(
    "retryPolicy",
    {
        "maxRetries": Field(
            "max_retries", integer(0, NUMBER_MAX), "attempts after the first one", required=True
        ),
        "backoff": Field(
            "backoff",
            Reader(read_backoff, {"anyOf": [BACKOFF.schema, DELAY.schema]}),
            "how the delay grows: constant, linear, exponential (default), or a fixed delay",
        ),
        "initialDelay": Field("initial_ms", DELAY, "delay before the first retry, default 1s"),
        "maxDelay": Field("cap_ms", DELAY, "longest delay, default 60s"),
    },
)


def read_retry(node: Node, report: Report, _: str) -> Any:
    """A retry policy."""
    found = read_part(node, RETRY_TABLE, report)
    if found is BAD:
        return BAD
    fixed = found.get("backoff")
    if isinstance(fixed, int) and "initialDelay" in node.value:
        report.error(
            node.place_of("initialDelay"),
            "field.conflict",
            f"backoff: {fixed} ms is the delay already, so initialDelay has no meaning",
            "remove initialDelay, or write backoff: constant",
        )
    if isinstance(fixed, int):
        # A delay that was written out is meant; the default cap must not shorten it.
        default = Retry(max_retries=0).cap_ms
        found = {"cap_ms": max(fixed, default), **found, "backoff": "constant", "initial_ms": fixed}
    return Retry(**found)


EXPRESSION = Reader(read_expression, {"type": ["string", "boolean"], "minLength": 1})
TEMPLATE = Reader(read_template, {})
PARAMS = Reader(read_params, {"type": ["object", "string"]})
JSON_SCHEMA = Reader(read_schema, {"type": ["object", "boolean"]})
CRON = Reader(read_cron, {"type": "string"})
ZONE = Reader(read_zone, ZONE_FORM.schema)
EDGE = Reader(read_edge, {"anyOf": [STEP.schema, EDGE_TABLE.schema()]})
RETRY = Reader(read_retry, RETRY_TABLE.schema())
