"""The fields of a step, and the parts it is made of."""

from typing import Any, Literal, get_args

from pawlflow.definition.fields import (
    AMOUNT,
    BAD,
    DELAY,
    FLAG,
    NUMBER_MAX,
    TEXT,
    TIMEOUT,
    Field,
    Reader,
    Table,
    choice,
    integer,
    list_of,
    read_part,
    struct,
    without_bad,
)
from pawlflow.definition.read import Node
from pawlflow.definition.readers import (
    EDGE,
    EFFECT,
    EVENT,
    EXPRESSION,
    JSON_SCHEMA,
    PARAMS,
    RETRY,
    ROLE,
    STEP,
    TEMPLATE,
    WORKFLOW,
)
from pawlflow.definition.report import Report
from pawlflow.definition.shape import Gate, StepKind, Undo, Wait

KINDS: tuple[str, ...] = get_args(StepKind)
STEP_NAMES = list_of(STEP, "step names")
PRIORITY = integer(-1_000_000, 1_000_000)

GATE_TABLE = Table(
    "approval",
    {
        "role": Field("role", ROLE, "who may decide"),
        "quorum": Field("quorum", integer(1, 1_000), "how many must agree, default 1"),
        "notBy": Field("not_by", choice("requester"), "requester: not who started the instance"),
        "expires": Field("expires_ms", TIMEOUT, "how long the gate stays open"),
        "onReject": Field(
            "on_reject",
            choice("cancel", "fail", "changes"),
            "cancel the instance (default), fail the step, or send steps back for changes",
        ),
        "onExpire": Field(
            "on_expire", choice("escalate", "fail"), "hand to a human (default), or fail the step"
        ),
        "guards": Field("guards", STEP_NAMES, "the steps whose parameters are shown and approved"),
        "revise": Field("revise", STEP_NAMES, "the steps that onReject: changes sends back"),
    },
)


def gate_of(*, not_by: str | None = None, **found: Any) -> Gate:
    """The gate that the fields describe."""
    return Gate(not_by_requester=not_by == "requester", **found)


WAIT_TABLE = Table(
    "wait",
    {
        "event": Field("event", EVENT, "the event to wait for", required=True),
        "match": Field("match", EXPRESSION, "which event: an expression over event"),
        "timeout": Field("timeout_ms", TIMEOUT, "how long to wait"),
    },
)

UNDO_TABLE = Table(
    "undo",
    {
        "run": Field("run", EFFECT, "the effect that undoes the step"),
        "agent": Field("agent", ROLE, "the role of the agent that undoes the step"),
        "action": Field("action", TEXT, "what the agent is asked to do"),
        "with": Field("params", PARAMS, "parameters; scope: input, steps, command, result"),
        "retryPolicy": Field(
            "retry", RETRY, "how a failed undo is tried again; default the step's"
        ),
        "timeout": Field("timeout_ms", TIMEOUT, "per attempt; default the step's"),
    },
)


def read_undo(node: Node, report: Report, _: str) -> Any:
    """An undo: exactly one of run and agent."""
    found = read_part(node, UNDO_TABLE, report)
    if found is BAD:
        return BAD
    named = {kind: found.pop(kind) for kind in ("run", "agent") if kind in found}
    if len(named) != 1:
        report.error(
            node.place,
            "step.kind",
            "undo names " + ("both run and agent" if named else "no run or agent"),
            "an undo is exactly one of run: EFFECT and agent: ROLE",
        )
    kind: Literal["run", "agent"] = "run" if "run" in named else "agent"
    return Undo(kind=kind, target=named[kind] if len(named) == 1 else BAD, **found)


POLICY_TABLE = Table(
    "policy",
    {
        "action": Field("action", TEXT, "the action asked about", required=True),
        "resource": Field("resource", PARAMS, "attributes of what it acts on; a template"),
    },
)

COST_TABLE = Table(
    "cost",
    {
        "usd": Field("usd", AMOUNT, "money reserved per attempt"),
        "tokens": Field("tokens", integer(0), "tokens reserved per attempt"),
    },
)

STEP_TABLE = Table(
    "a step",
    {
        "name": Field("name", STEP, "the step's name, unique in the workflow", required=True),
        "run": Field("run", EFFECT, "an effect to execute"),
        "agent": Field("agent", ROLE, "the role of the agent that gets the task"),
        "approval": Field("approval", struct(gate_of, GATE_TABLE), "a gate a human decides"),
        "sleep": Field("sleep", DELAY, "how long to sleep"),
        "wait": Field("wait", struct(Wait, WAIT_TABLE), "an event to wait for"),
        "workflow": Field("workflow", WORKFLOW, "a child workflow to run"),
        "emit": Field("emit", EVENT, "a domain event to publish"),
        "action": Field("action", TEXT, "what an agent is asked to do"),
        "skill": Field("skill", TEXT, "the skill an agent should use"),
        "dependsOn": Field("depends_on", list_of(EDGE, "steps"), "steps that come before"),
        "when": Field("when", EXPRESSION, "false: the step is skipped"),
        "forEach": Field("for_each", EXPRESSION, "a list; the step runs once per item"),
        "limit": Field("limit", integer(1, 100_000), "items at a time, default 100"),
        "with": Field("params", PARAMS, "parameters; texts may hold ${...}"),
        "show": Field("show", TEMPLATE, "what a gate shows to who decides"),
        "timeout": Field("timeout_ms", TIMEOUT, "per attempt, from dispatch"),
        "heartbeat": Field("heartbeat_ms", TIMEOUT, "longest silence of a running attempt"),
        "grace": Field("grace_ms", DELAY, "time to settle after a cancel, default 30s"),
        "retryPolicy": Field("retry", RETRY, "how a failed attempt is made again"),
        "maxCorrectionAttempts": Field(
            "max_corrections", integer(0, NUMBER_MAX), "re-assignments with findings, default 0"
        ),
        "check": Field("check", JSON_SCHEMA, "JSON Schema of the result"),
        "onFailure": Field(
            "on_failure",
            choice("abort", "skip", "compensate", "escalate"),
            "what follows the last failed attempt; default the workflow's failurePolicy",
        ),
        "onTimeout": Field(
            "on_timeout",
            choice("fail", "retry", "escalate"),
            "fail (default, then onFailure), retry by the policy, or hand to a human",
        ),
        "undo": Field(
            "undo",
            Reader(read_undo, UNDO_TABLE.schema_with("oneOf", "run", "agent")),
            "how the step is undone",
        ),
        "undoOnFailure": Field("undo_on_failure", FLAG, "true: undone also when it failed"),
        "mutates": Field("mutates", FLAG, "false: read-only, never undone; default true"),
        "irreversible": Field("irreversible", FLAG, "true: cannot be undone, so gate it"),
        "policy": Field(
            "policy", struct(without_bad, POLICY_TABLE), "what is asked before dispatch"
        ),
        "cost": Field("cost", struct(without_bad, COST_TABLE), "reserved against the budget"),
        "priority": Field("priority", PRIORITY, "higher starts first, default 0"),
    },
)

# In the IOA format every step is an agent's task; it shares all fields that make sense for one.
IOA_STEP_TABLE = Table(
    "a step",
    {
        name: field
        for name, field in STEP_TABLE.fields.items()
        if name not in KINDS or name == "agent"
    },
)
