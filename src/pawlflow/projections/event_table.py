"""The table of published events: what each name means, and the members of its payload.

The schema of `history --json` and the tables of docs/events.md are made from it, and a test holds
what is published against it. Names and members are added, never renamed or taken away.
"""

from typing import Any, Final, get_args

import msgspec

from pawlflow.model.events import Mode, Rollback, SkipReason, WaitKind
from pawlflow.model.failure import FailureClass
from pawlflow.model.reviews import Ruling

Schema = dict[str, Any]


class Published(msgspec.Struct, frozen=True):
    """One published name."""

    meaning: str
    always: tuple[str, ...] = ()  # members of its payload
    sometimes: tuple[str, ...] = ()
    either: tuple[str, ...] = ()  # exactly one of these


STEP: Final = ("item", "attempt")  # of whatever is about a step
CALL: Final = ("effect", "agent")
ASKED: Final = ("level", "role", "channel", "until")  # of an escalation with a ladder
ENDED: Final = ("retry_at", "reason", *ASKED)  # what follows the end of an attempt

EVENTS: Final[dict[str, Published]] = {
    "WorkflowInstanceCreated": Published(
        "the instance exists",
        ("workflow", "version", "definition_hash", "rules", "input", "by"),
        ("parent", "search", "start_at"),
    ),
    "WorkflowInstanceQueued": Published(
        "no slot was free, or its rate was reached; it waits in line"
    ),
    "WorkflowInstanceStarted": Published("its clock runs"),
    "WorkflowStepReady": Published(
        "the dependencies of a step, or of an item, are met", ("step",), ("item", "params")
    ),
    "AgentTaskAssigned": Published(
        "an attempt was dispatched: the first, or a plain retry",
        ("step", "attempt", "round", "mode"),
        ("item", "role", "until"),
        CALL,
    ),
    "AgentTaskReassigned": Published(
        "an attempt was dispatched: a correction, or to the role a human gave it to",
        ("step", "attempt", "round", "mode"),
        ("item", "role", "until"),
        CALL,
    ),
    "WorkflowStepWaiting": Published(
        "a sleep, a wait or a child was opened",
        ("step", "kind"),
        ("item", "until", "event", "child"),
    ),
    "ApprovalRequested": Published(
        "a gate asks, or a policy does",
        ("step", "kind", "quorum"),
        ("item", "role", "until", "show", "guarded"),
    ),
    "AgentTaskCompleted": Published(
        "an attempt succeeded",
        ("step", "attempt", "round", "result"),
        ("item", "warnings", "usage"),
    ),
    "WorkflowStepCompleted": Published(
        "a step, or an item, is done, by whatever kind it is",
        ("step", "result"),
        (*STEP, "round", "warnings", "usage", "by", "role", "comment"),
    ),
    "AgentTaskFailed": Published(
        "an attempt failed", ("step", "attempt", "failure"), ("item", *ENDED)
    ),
    "WorkflowStepTimedOut": Published(
        "an attempt or a wait took too long", ("step", "failure"), (*STEP, *ENDED)
    ),
    "StepRetryScheduled": Published(
        "the next attempt has its time; with `direction`, of an undo",
        ("step", "failure", "retry_at"),
        (*STEP, "direction", "round"),
    ),
    "WorkflowStepFailed": Published("a step failed for good", ("step", "failure"), STEP),
    "WorkflowStepSkipped": Published(
        "a step was not done, on purpose", ("step", "reason"), (*STEP, "failure")
    ),
    "WorkflowStepCancelled": Published(
        "a step was stopped because the instance stops, or never began",
        ("step",),
        ("item", "reason"),
    ),
    "WorkflowEscalated": Published(
        "a human must decide; with `level`, this rung of the ladder",
        ("step", "failure"),
        (*STEP, *ASKED),
    ),
    "WorkflowResumed": Published(
        "a human let the step go on",
        ("step", "by", "how"),
        ("item", "role", "params", "comment"),
    ),
    "ApprovalVoted": Published(
        "one approval of several needed was given", ("step", "by"), ("item", "role", "comment")
    ),
    "ApprovalVoided": Published(
        "what was asked about has changed; the gate asks again", ("step",), ("cause", "item")
    ),
    "ApprovalGranted": Published(
        "the last approval needed was given",
        ("step", "by", "result"),
        ("item", "role", "comment", "digest"),
    ),
    "ApprovalRejected": Published(
        "a human refused", ("step", "by", "failure"), ("item", "role", "comment")
    ),
    "ApprovalExpired": Published("nobody decided in time", ("step", "failure"), ENDED[1:]),
    "ReviewClaimed": Published(
        "a human looks after a gate or an escalation", ("step", "by"), ("item", "role", "comment")
    ),
    "PolicyDecisionRecorded": Published(
        "the policies in force have decided about the next attempt",
        (
            *("step", "decision", "clears", "policies", "in_force", "policy_hash"),
            *("inputs", "inputs_hash"),
        ),
        ("item", "why"),
    ),
    "BudgetExceeded": Published(
        "an attempt would pass a hard limit; a human is asked to raise it",
        ("step", "unit", "show"),
        ("item",),
    ),
    "BudgetRaised": Published(
        "a human raised hard limits", ("step", "by", "limits"), ("item", "role", "comment")
    ),
    "BudgetWarned": Published("a soft limit is passed; said once", ("unit", "amount")),
    "SignalReceived": Published(
        "a signal was kept, or an event met the wait `step`",
        ("event", "data"),
        ("by", "step", "item"),
    ),
    "WorkflowPaused": Published("nothing new starts", ("by",), ("comment",)),
    "WorkflowUnpaused": Published("starting is allowed again", ("by",), ("comment",)),
    "CompensationStarted": Published(
        "completed steps are undone now, last first", ("outcome", "error"), ("by", "comment")
    ),
    "CompensationTaskAssigned": Published(
        "an undo was dispatched",
        ("step", "attempt", "params"),
        ("item", "round", "until"),
        CALL,
    ),
    "WorkflowStepCompensated": Published(
        "what a step had done is undone", ("step", "attempt"), ("item", "round")
    ),
    "WorkflowStepCompensationFailed": Published(
        "what a step had done could not be undone", ("step", "failure"), (*STEP, "round")
    ),
    "WorkflowInstanceCompleted": Published("all steps are done", ("output",)),
    "WorkflowInstanceFailed": Published("closed without success", ("rollback", "error")),
    "WorkflowInstanceCancelled": Published(
        "closed because somebody cancelled it", ("rollback", "error"), ("by", "comment")
    ),
}

TEXT: Final[Schema] = {"type": "string"}
NAME: Final[Schema] = {"type": "string", "minLength": 1}
COUNT: Final[Schema] = {"type": "integer", "minimum": 1}
TIME: Final[Schema] = {
    "type": "string",
    "format": "date-time",
    "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$",
}
UUID: Final[Schema] = {
    "type": "string",
    "format": "uuid",
    "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
}


RULES: Final[Schema] = {
    "type": "array",
    "items": {"type": "object", "required": ["policy", "version", "id"]},
}
HEX: Final[Schema] = {"type": "string", "pattern": "^([0-9a-f]{2})*$"}


def one_of(words: Any) -> Schema:
    """One of the words of a Literal."""
    return {"enum": list(get_args(words))}


FAILURE: Final[Schema] = {
    "type": "object",
    "required": ["class", "code", "message", "findings"],
    "properties": {
        "class": one_of(FailureClass),
        "code": NAME,
        "message": {"type": ["string", "null"]},
        "findings": {"type": "array"},
        "erased": {"const": True},
    },
}
ERROR: Final[Schema] = {
    "type": ["object", "null"],
    "required": ["step", "class", "code", "message", "attempts"],
    "properties": {
        "step": {"type": ["string", "null"]},
        "class": one_of(FailureClass),
        "code": NAME,
        "message": {"type": ["string", "null"]},
        "attempts": {"type": "integer", "minimum": 0},
        "item": {**NAME, "description": "the name of the item, if it was one"},
        "erased": {"const": True},
    },
}
KIN: Final[Schema] = {
    "type": "object",
    "required": ["workflow", "id"],
    "properties": {"workflow": NAME, "id": NAME},
}

MEMBERS: Final[dict[str, tuple[str, Schema]]] = {
    "agent": ("the role that was asked", NAME),
    "amount": ("spent and reserved", {"type": "number", "minimum": 0}),
    "attempt": ("the number of the attempt, from 1; absent where none was made", COUNT),
    "by": ("who did it; absent where nobody but the engine did", TEXT),
    "cause": ("the step that would do something else now", NAME),
    "channel": ("by which they are asked", NAME),
    "child": ("the instance that was asked for", KIN),
    "clears": ("the attempt may begin: allowed, or approved by people before", {"type": "boolean"}),
    "comment": ("what they said", {}),
    "data": ("what came with the event", {}),
    "definition_hash": (
        "of the definition in force",
        {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    ),
    "decision": (
        "what the policies say; approval: people must agree first",
        one_of(Ruling),
    ),
    "digest": ("what the approval of a policy is bound to", HEX),
    "direction": ("`undo`, of an undo; absent otherwise", {"const": "undo"}),
    "effect": ("the effect that was asked for", NAME),
    "erased": ("true: a value is null because its bytes were erased", {"const": True}),
    "error": ("what decided the outcome, as in `show`; null for a human's cancel", ERROR),
    "event": ("the name of the event", NAME),
    "failure": ("why: class, code, message, findings", FAILURE),
    "guarded": (
        "what the approval is bound to, by the name of step or item",
        {"type": ["object", "null"]},
    ),
    "in_force": ("the policies in force, with their versions", {"type": "object"}),
    "inputs": ("what the policies were asked: action, principal, resource", {"type": "object"}),
    "inputs_hash": ("the address of all that they were asked", HEX),
    "how": ("what the human chose", {"enum": ["resume", "retry", "reassign"]}),
    "input": ("what the instance was started with", {}),
    "item": (
        "the index of the item, from 0; absent without forEach",
        {"type": "integer", "minimum": 0},
    ),
    "limits": ("the new hard limits, by unit of account", {"type": "object"}),
    "kind": ("what is waited for", one_of(WaitKind)),
    "level": ("the rung of the escalation ladder, from 1", COUNT),
    "mode": ("why there is an attempt; plain: the first, or a retry", one_of(Mode)),
    "outcome": ("how the instance will end", {"enum": ["failed", "cancelled"]}),
    "output": ("what the workflow gave", {}),
    "parent": ("the instance that waits for this one", KIN),
    "params": ("what it is called with, for this round", {}),
    "policies": ("the policies that decided: document, version and id", RULES),
    "policy_hash": ("of all policies in force; empty for none", HEX),
    "quorum": ("how many approvals are needed", COUNT),
    "reason": (
        "why it was skipped or stopped",
        {"enum": [*get_args(SkipReason), "not_started"]},
    ),
    "result": ("what it gave; with forEach, of the step the list of what its items gave", {}),
    "retry_at": ("when the next attempt is due; absent where there is none", TIME),
    "role": ("the role asked, or in which they acted", NAME),
    "rollback": ("what became of the work", one_of(Rollback)),
    "round": (
        "the number of the round, from 1: one more with each correction or other input; "
        "of an undo only where an earlier run is undone",
        COUNT,
    ),
    "rules": ("the rules it is decided under", COUNT),
    "search": ("its search attributes, by name", {"type": ["object", "null"]}),
    "show": ("what the human is shown", {}),
    "start_at": ("it starts no sooner", TIME),
    "step": ("the name of the step", NAME),
    "unit": ("the unit of account, such as usd", NAME),
    "until": ("when its time is up; absent without a limit", TIME),
    "usage": ("what it truly cost, by unit of account", {"type": "object"}),
    "version": ("of the workflow", COUNT),
    "warnings": ("how many the executor reported; absent for none", COUNT),
    "why": ("in words", {"type": ["string", "null"]}),
    "workflow": ("the name of the workflow", NAME),
}

ENVELOPE: Final[dict[str, tuple[str, Schema]]] = {
    "eventId": ("its id, the same for ever", UUID),
    "eventType": ("its name", {"enum": list(EVENTS)}),
    "schemaVersion": ("of the envelope; grows only with a breaking change", {"const": 1}),
    "tenantId": ("whose it is", NAME),
    "projectId": ("its project, where one is known", NAME),
    "moduleId": ("its module, where one is known", NAME),
    "traceId": (
        "of the run: 32 hexadecimal digits",
        {"type": "string", "pattern": "^[0-9a-f]{32}$"},
    ),
    "correlationId": ("the same for all events of one execution: the instance's id", NAME),
    "causationId": (
        "the `eventId` of its cause, or the id of the input that came from outside",
        UUID,
    ),
    "occurredAt": ("when, by RFC 3339, in UTC", TIME),
    "workflowInstanceId": ("the instance's id", NAME),
    "sequence": ("its number in the instance, from 1 without gaps; the order to go by", COUNT),
    "actor": ("who brought it about: a name, `executor`, or `engine`", TEXT),
    "batch": ("the act on many instances that it was part of", TEXT),
    "payload": ("what it says, by its type", {"type": "object"}),
}
OPTIONAL: Final = ("projectId", "moduleId", "batch")
