"""The fields of a scenario, and the shapes they become."""

import re
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from pawlflow.definition.fields import (
    ANY,
    BAD,
    DELAY,
    FLAG,
    TEXT,
    Field,
    Reader,
    Table,
    choice,
    integer,
    list_of,
    misread,
    read_part,
    shown,
    struct,
)
from pawlflow.definition.finding import Place
from pawlflow.definition.read import Node, plain
from pawlflow.definition.readers import EVENT, ROLE
from pawlflow.definition.report import Report
from pawlflow.definition.step_fields import COST_TABLE
from pawlflow.model.failure import FailureClass
from pawlflow.model.ids import DurationMs, RoleName
from pawlflow.testing.scenario_policies import PUBLISHED, RETIRED
from pawlflow.testing.vocabulary import (
    EVENTS,
    FAILURE_CLASSES,
    INSTANCE_STATES,
    LENS_TABLE,
    ROLLBACKS,
    STEP_STATES,
    UNDO_STATES,
)

Verb = Literal[
    "approve",
    "reject",
    "claim",
    "signal",
    "emit",
    "cancel",
    "pause",
    "unpause",
    "resume",
    "reassign",
    "retry",
    "publish",
    "retire",
]
# An item has one name, as the engine writes it: f[1], and nobody would ask for f[01].
SEGMENT = r"[a-z][a-z0-9_-]{0,62}(?:\[(?:0|[1-9][0-9]{0,8})\])?"
PATH = re.compile(rf"(?:{SEGMENT}/)*{SEGMENT}\Z")
ATTEMPT = re.compile(r"(.+)#([1-9][0-9]{0,8})\Z")
PATH_FORM = "a step: NAME, NAME[0], undo/NAME or PARENT/NAME"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a stub says to one attempt: exactly one of `ok`, `fail` and `hang`."""

    ok: Any = UNSET
    fail: FailureClass | None = None
    hang: bool = False
    message: str | None = None
    findings: tuple[Any, ...] = ()
    warnings: tuple[Any, ...] = ()
    after_ms: DurationMs = DurationMs(0)
    twice: bool = False
    usage: dict[str, float] | None = None


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Something from outside, at a virtual time. `refused` says whether the engine must refuse."""

    at_ms: DurationMs
    verb: Verb
    place: Place
    by: str
    step: str | None = None
    role: RoleName | None = None
    comment: str | None = None
    event: str | None = None
    data: Any = None
    to: RoleName | None = None
    with_: Any = UNSET
    limits: dict[str, float] | None = None
    policy: str | None = None
    version: int = 1
    refused: bool | None = None


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """What must hold at the end; what is UNSET is not looked at."""

    state: str | UnsetType = UNSET
    rollback: str | UnsetType = UNSET
    steps: dict[str, str] | UnsetType = UNSET
    undo: dict[str, str] | UnsetType = UNSET
    attempts: dict[str, int] | UnsetType = UNSET
    order: tuple[str, ...] | UnsetType = UNSET
    events: tuple[str, ...] | UnsetType = UNSET
    lens: dict[str, str] | UnsetType = UNSET
    elapsed_ms: DurationMs | UnsetType = UNSET
    error: str | UnsetType | None = UNSET
    output: Any = UNSET
    feedback: dict[str, int] | UnsetType = UNSET
    params: dict[str, Any] | UnsetType = UNSET
    spent: dict[str, float] | UnsetType = UNSET


def step_path(text: str) -> str | None:
    """The name of a step or undo as the engine writes it; None if it is no such name.

    The undo of a child's step may be written undo/PARENT/STEP or PARENT/undo/STEP; the first is
    the one that is kept.
    """
    if not PATH.match(text):
        return None
    segments = [segment for segment in text.split("/") if segment != "undo"]
    undone = text.count("/") + 1 - len(segments)
    if undone > 1 or not segments or text.endswith("/undo"):
        return None
    return "/".join(["undo"] * undone + segments)


def read_path(node: Node, report: Report, name: str) -> Any:
    """A step, named from outside."""
    path = step_path(node.value) if isinstance(node.value, str) else None
    return misread(report, node, name, PATH_FORM, "name.bad") if path is None else path


def read_error(node: Node, report: Report, name: str) -> Any:
    """The step that decided the failure, or null."""
    return None if node.value is None else read_path(node, report, name)


def read_attempt(node: Node, report: Report, name: str) -> Any:
    """A start of a step: its name and the number of the attempt."""
    found = ATTEMPT.match(node.value) if isinstance(node.value, str) else None
    path = step_path(found[1]) if found else None
    if found is None or path is None:
        return misread(report, node, name, "an attempt like build#1 or undo/build[0]#1", "name.bad")
    return f"{path}#{found[2]}"


PATH_READER = Reader(read_path, {"type": "string"})


def by_step(reader: Reader) -> Reader:
    """A mapping from steps to something."""

    def read(node: Node, report: Report, name: str) -> Any:
        if not isinstance(node.value, dict):
            return misread(report, node, name, "a mapping of steps")
        found = {}
        for key, child in node.value.items():
            path = step_path(key)
            if path is None:
                report.error(
                    node.place_of(key),
                    "name.bad",
                    f"{name}: expected {PATH_FORM}; got {key!r}",
                    "write the name as in the workflow",
                )
                continue
            found[path] = reader.read(child, report, key)
        return found

    return Reader(read, {"type": "object", "additionalProperties": reader.schema})


ANSWER_TABLE = Table(
    "an answer",
    {
        "ok": Field("ok", ANY, "succeed with this result"),
        "fail": Field("fail", choice(*FAILURE_CLASSES), "fail with this class"),
        "hang": Field("hang", FLAG, "never answer"),
        "message": Field("message", TEXT, "of the failure"),
        "findings": Field("findings", list_of(ANY, "findings"), "of a validation failure"),
        "warnings": Field("warnings", list_of(ANY, "warnings"), "of a success"),
        "after": Field("after_ms", DELAY, "virtual time before answering, default 0"),
        "twice": Field("twice", FLAG, "deliver the answer twice"),
        "usage": Field("usage", struct(dict, COST_TABLE), "what the attempt cost"),
    },
)
NEEDS = {"message": "fail", "findings": "fail", "warnings": "ok"}


def read_answer(node: Node, report: Report, _: str) -> Any:
    """Exactly one of ok, fail and hang, with what belongs to it."""
    found = read_part(node, ANSWER_TABLE, report)
    if found is BAD or (found.get("hang") is BAD and not {"ok", "fail"} & found.keys()):
        return BAD
    given = [name for name in ("ok", "fail") if name in found] + ["hang"] * bool(found.get("hang"))
    if len(given) != 1:
        report.error(
            node.place,
            "scenario.answer",
            f"an answer is one of ok, fail and hang: true; got {' and '.join(given) or 'none'}",
            "write one of {ok: RESULT}, {fail: CLASS}, {hang: true}",
        )
        return BAD
    for name in node.value.keys() & {"message", "findings", "warnings", "twice", "usage"}:
        if NEEDS.get(name, given[0]) != given[0] or given[0] == "hang":
            report.error(
                node.place_of(name),
                "field.conflict",
                f"{name} has no meaning beside {given[0]}",
                "remove it",
            )
    return Answer(**found)


ANSWER = Reader(read_answer, ANSWER_TABLE.schema())


def read_answers(node: Node, report: Report, name: str) -> Any:
    """At least one answer; the last repeats."""
    if isinstance(node.value, list) and not node.value:
        return misread(report, node, name, "at least one answer", "field.value")
    return ANSWERS_LIST.read(node, report, name)


ANSWERS_LIST = list_of(ANSWER, "answers like [{ok: {}}]")
STUBS = by_step(Reader(read_answers, {**ANSWERS_LIST.schema, "minItems": 1}))

COMMENT = Field("comment", TEXT, "why")
BY = Field("by", TEXT, "who; default the scenario's by")
STEP_FIELD = Field("step", PATH_READER, "the step", required=True)
DECISION = {
    "step": STEP_FIELD,
    "by": Field("by", TEXT, "who decides", required=True),
    "role": Field("role", ROLE, "in which role"),
    "comment": COMMENT,
}
LIMITS = Field("limits", struct(dict, COST_TABLE), "new hard limits of a budget")
MESSAGE = {
    "event": Field("event", EVENT, "the event's name", required=True),
    "data": Field("data", ANY, "its payload"),
    "by": BY,
    "comment": COMMENT,
}
PLAIN = {"by": BY, "comment": COMMENT}
ACTING = {"role": Field("role", ROLE, "in which role, where an escalation ladder asks"), **PLAIN}
VERB_TABLES: dict[str, Table] = {
    "approve": Table("approve", {**DECISION, "limits": LIMITS}),
    "reject": Table("reject", DECISION),
    "claim": Table("claim", DECISION),
    "signal": Table("signal", MESSAGE),
    "emit": Table("emit", MESSAGE),
    "cancel": Table("cancel", ACTING),
    "pause": Table("pause", PLAIN),
    "unpause": Table("unpause", PLAIN),
    "resume": Table("resume", {"step": STEP_FIELD, **ACTING}),
    "reassign": Table(
        "reassign",
        {"step": STEP_FIELD, "to": Field("to", ROLE, "the new role", required=True), **ACTING},
    ),
    "publish": Table("publish", PUBLISHED | PLAIN),
    "retire": Table("retire", RETIRED | PLAIN),
    "retry": Table(
        "retry", {"step": STEP_FIELD, "with": Field("with_", ANY, "other parameters"), **ACTING}
    ),
}
VERBS: tuple[str, ...] = get_args(Verb)
ACTION_TABLE = Table(
    "a script entry",
    {
        "at": Field("at_ms", DELAY, "virtual time from the start", required=True),
        "refused": Field("refused", FLAG, "does the engine refuse it?"),
        **{verb: Field(verb, struct(dict, VERB_TABLES[verb]), f"{verb} now") for verb in VERBS},
    },
)


def read_action(node: Node, report: Report, _: str) -> Any:
    """Exactly one verb at a time. Who acts, if not said, is filled in by the scenario."""
    found = read_part(node, ACTION_TABLE, report)
    if found is BAD:
        return BAD
    given = [name for name in node.value if name in VERBS]
    if not given and any(verb in found for verb in VERBS):
        return BAD  # under a name that was refused
    if len(given) != 1:
        report.error(
            node.place if not given else node.place_of(given[1]),
            "scenario.verb",
            f"a script entry does exactly one thing; got {' and '.join(given) or 'none'}",
            f"use one of: {', '.join(VERBS)}",
        )
        return BAD
    arguments = {"by": "", **(found[given[0]] or {})}
    about = {name: found[name] for name in ("at_ms", "refused") if name in found}
    return Action(verb=given[0], place=node.place, **about, **arguments)


COUNT = integer(0)


def read_params(node: Node, report: Report, name: str) -> Any:
    """Values by attempt; a step by itself means its first attempt."""
    if not isinstance(node.value, dict):
        return misread(
            report, node, name, "a mapping from attempts, as in {charge#1: {amount: 12}}"
        )
    found: dict[str, Any] = {}
    for label, child in node.value.items():
        numbered = ATTEMPT.match(label if "#" in label else f"{label}#1")
        path = step_path(numbered[1]) if numbered else None
        if numbered is None or path is None:
            report.error(
                node.place_of(label),
                "name.bad",
                f"{name}: {label!r} is no attempt",
                "write STEP#1, undo/STEP#1, or STEP for its first attempt",
            )
            continue
        found[f"{path}#{numbered[2]}"] = plain(child)
    return found


EXPECT_TABLE = Table(
    "expect",
    {
        "state": Field("state", choice(*INSTANCE_STATES), "of the instance"),
        "rollback": Field("rollback", choice(*ROLLBACKS), "how far it was undone"),
        "steps": Field("steps", by_step(choice(*STEP_STATES)), "state of each step"),
        "undo": Field("undo", by_step(choice(*UNDO_STATES)), "undo state of each step"),
        "attempts": Field("attempts", by_step(COUNT), "how often each step was started"),
        "order": Field(
            "order",
            list_of(Reader(read_attempt, {"type": "string"}), "attempts"),
            "these attempts started in this order",
        ),
        "events": Field("events", list_of(choice(*EVENTS), "events"), "published in this order"),
        "lens": Field("lens", struct(dict, LENS_TABLE), "the state in other vocabularies"),
        "elapsed": Field("elapsed_ms", DELAY, "virtual time from start to close"),
        "error": Field(
            "error",
            Reader(read_error, {"type": ["string", "null"]}),
            "the step that decided the failure, or null",
        ),
        "output": Field("output", ANY, "of the instance"),
        "feedback": Field("feedback", by_step(COUNT), "corrections with findings delivered"),
        "spent": Field("spent", struct(dict, COST_TABLE), "of the budget, at the end"),
        "params": Field(
            "params",
            Reader(read_params, {"type": "object"}),
            "what attempts were called with: STEP#1, or STEP for its first",
        ),
    },
)


def read_workflow_path(node: Node, report: Report, name: str) -> Any:
    """A path; it is resolved by whoever reads files."""
    if isinstance(node.value, str) and node.value.strip():
        return node
    return misread(report, node, name, f"the path of a workflow file, not {shown(node)}")


def read_definition(node: Node, report: Report, name: str) -> Any:
    """One workflow, or several of which the first is started."""
    nodes = node.value if isinstance(node.value, list) else [node]
    if nodes and all(isinstance(child.value, dict) for child in nodes):
        return nodes
    return misread(report, node, name, "a Workflow document, or a list of them")


SCENARIO_TABLE = Table(
    "spec",
    {
        "description": Field("description", TEXT, "what the scenario shows"),
        "workflow": Field(
            "workflow", Reader(read_workflow_path, {"type": "string"}), "the file to test"
        ),
        "definition": Field(
            "definition",
            Reader(read_definition, {"type": ["object", "array"]}),
            "the workflow itself, or a list: the first is started, others can be children",
        ),
        "input": Field("input", ANY, "of the instance"),
        "by": Field("by", TEXT, "who starts it, default scenario"),
        "stubs": Field("stubs", STUBS, "answers per step, in order; the last repeats"),
        "script": Field(
            "script",
            list_of(Reader(read_action, ACTION_TABLE.schema()), "script entries"),
            "what comes from outside, and when",
        ),
        "expect": Field("expect", struct(Expect, EXPECT_TABLE), "what must hold at the end"),
    },
)
