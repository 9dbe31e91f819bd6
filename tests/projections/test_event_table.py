"""The table of published names, row by row: a real run, and every name of it in order.

docs/events.md has the table.
"""

from typing import NamedTuple

import pytest

from pawlflow.model.failure import failure_of
from pawlflow.model.inputs import Receipt
from pawlflow.projections.history import history
from tests.kernel.support import TENANT, Live
from tests.projections.played import play, queue

BEGUN = "WorkflowInstanceCreated WorkflowInstanceStarted"
FIRST = f"{BEGUN} WorkflowStepReady AgentTaskAssigned"
DONE = "AgentTaskCompleted WorkflowStepCompleted"
COMPLETED = "WorkflowInstanceCompleted"
FAILED = "WorkflowInstanceFailed"
ASKED = f"{BEGUN} WorkflowStepReady ApprovalRequested"
GATE = "approval: {role: Boss, expires: 1h, %s}"
UNDONE = (
    "failurePolicy: compensate\nsteps:\n"
    "  - {name: a, run: x.a, undo: {run: x.undo%s}}\n"
    "  - {name: b, run: x.b, dependsOn: [a]}"
)
BOTH_RAN = f"{FIRST} {DONE} WorkflowStepReady AgentTaskAssigned"
B_FAILED = f"{BOTH_RAN} AgentTaskFailed WorkflowStepFailed CompensationStarted"


class Row(NamedTuple):
    """A transition of the table, a run that has it, and all that it publishes."""

    transition: str
    spec: str
    rest: str
    published: str


def one(fields: str) -> str:
    """A workflow of one step."""
    return f"steps: [{{name: a, {fields}}}]"


RUN = "run: x.a"
RETRY = f"{RUN}, retryPolicy: {{maxRetries: 1, backoff: 5s}}"
ROWS = [
    Row(
        "created, started, ready, assigned, completed", one(RUN), "", f"{FIRST} {DONE} {COMPLETED}"
    ),
    Row(
        "a slot was free: not queued",
        "concurrency: {key: input.k, limit: 1}\n" + one(RUN),
        "input: {k: 1}",
        f"{FIRST} {DONE} {COMPLETED}",
    ),
    Row(
        "attempt failed, retry scheduled; plain retry",
        one(RETRY),
        "stubs: {a: [{fail: transient}, {ok: {}}]}",
        f"{FIRST} AgentTaskFailed StepRetryScheduled AgentTaskAssigned {DONE} {COMPLETED}",
    ),
    Row(
        "attempt failed, correction",
        one(f"{RUN}, maxCorrectionAttempts: 1"),
        "stubs: {a: [{fail: validation}, {ok: {}}]}",
        f"{FIRST} AgentTaskFailed AgentTaskReassigned {DONE} {COMPLETED}",
    ),
    Row(
        "corrections used up",
        one(f"{RUN}, maxCorrectionAttempts: 1"),
        "stubs: {a: [{fail: validation}]}",
        f"{FIRST} AgentTaskFailed AgentTaskReassigned AgentTaskFailed WorkflowStepFailed {FAILED}",
    ),
    Row(
        "attempt failed, final: failed",
        one(RUN),
        "stubs: {a: [{fail: terminal}]}",
        f"{FIRST} AgentTaskFailed WorkflowStepFailed {FAILED}",
    ),
    Row(
        "attempt failed, final: skipped",
        one(f"{RUN}, onFailure: skip"),
        "stubs: {a: [{fail: terminal}]}",
        f"{FIRST} AgentTaskFailed WorkflowStepSkipped {COMPLETED}",
    ),
    Row(
        "attempt failed, final: escalated",
        one(f"{RUN}, onFailure: escalate"),
        "stubs: {a: [{fail: terminal}]}",
        f"{FIRST} AgentTaskFailed WorkflowEscalated",
    ),
    Row(
        "human resumed",
        one(f"{RUN}, onFailure: escalate"),
        "stubs: {a: [{fail: terminal}, {ok: {}}]}\nscript: [{at: 1m, resume: {step: a, by: ann}}]",
        f"{FIRST} AgentTaskFailed WorkflowEscalated WorkflowResumed AgentTaskAssigned"
        f" {DONE} {COMPLETED}",
    ),
    Row(
        "human reassigned",
        one("agent: writer, onFailure: escalate"),
        "stubs: {a: [{fail: terminal}, {ok: {}}]}\n"
        "script: [{at: 1m, reassign: {step: a, to: editor, by: ann}}]",
        f"{FIRST} AgentTaskFailed WorkflowEscalated WorkflowResumed AgentTaskReassigned"
        f" {DONE} {COMPLETED}",
    ),
    Row(
        "a step whose input has no value",
        one(f"{RUN}, with: {{n: '${{ 1 / 0 }}'}}"),
        "",
        f"{BEGUN} WorkflowStepReady WorkflowStepFailed {FAILED}",
    ),
    Row(
        "sleep opened, done",
        one("sleep: 5m"),
        "",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "wait opened, signal matched, done",
        one("wait: {event: e}"),
        "script: [{at: 1m, signal: {event: e, data: 1}}]",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting SignalReceived"
        f" WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "signal kept, then matched",
        "steps: [{name: s, sleep: 5m}, {name: a, wait: {event: e}, dependsOn: [s]}]",
        "script: [{at: 1m, signal: {event: e, data: 1}}]",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting SignalReceived WorkflowStepCompleted"
        f" WorkflowStepReady WorkflowStepWaiting WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "an event met two waits",
        "steps: [{name: a, wait: {event: e}}, {name: b, wait: {event: e}}]",
        "script: [{at: 1m, emit: {event: e, data: 1}}]",
        f"{BEGUN} WorkflowStepReady WorkflowStepReady WorkflowStepWaiting WorkflowStepWaiting"
        f" SignalReceived WorkflowStepCompleted SignalReceived WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "an event emitted",
        one("emit: e, with: {n: 1}"),
        "",
        f"{BEGUN} WorkflowStepReady WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "attempt timed out: failed",
        one(f"{RUN}, timeout: 1m"),
        "stubs: {a: [{hang: true}]}",
        f"{FIRST} WorkflowStepTimedOut WorkflowStepFailed {FAILED}",
    ),
    Row(
        "attempt timed out: retry scheduled",
        one(f"{RETRY}, timeout: 1m, onTimeout: retry"),
        "stubs: {a: [{hang: true}, {ok: {}}]}",
        f"{FIRST} WorkflowStepTimedOut StepRetryScheduled AgentTaskAssigned {DONE} {COMPLETED}",
    ),
    Row(
        "attempt timed out: skipped",
        one(f"{RUN}, timeout: 1m, onFailure: skip"),
        "stubs: {a: [{hang: true}]}",
        f"{FIRST} WorkflowStepTimedOut WorkflowStepSkipped {COMPLETED}",
    ),
    Row(
        "attempt timed out: escalated",
        one(f"{RUN}, timeout: 1m, onTimeout: escalate"),
        "stubs: {a: [{hang: true}]}",
        f"{FIRST} WorkflowStepTimedOut WorkflowEscalated",
    ),
    Row(
        "attempt reported as timed out",
        one(RUN),
        "stubs: {a: [{fail: timeout}]}",
        f"{FIRST} WorkflowStepTimedOut WorkflowStepFailed {FAILED}",
    ),
    Row(
        "wait timed out",
        one("wait: {event: e, timeout: 1m}"),
        "",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowStepTimedOut"
        f" WorkflowStepFailed {FAILED}",
    ),
    Row(
        "wait timed out: retry scheduled",
        one("wait: {event: e, timeout: 1m}, onTimeout: retry, retryPolicy: {maxRetries: 1}"),
        "script: [{at: 90s, signal: {event: e, data: 1}}]",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowStepTimedOut StepRetryScheduled"
        f" WorkflowStepWaiting SignalReceived WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "step skipped by its condition: no Ready",
        one(f"{RUN}, when: false"),
        "",
        f"{BEGUN} WorkflowStepSkipped {COMPLETED}",
    ),
    Row(
        "step skipped by what it requires",
        f"steps: [{{name: a, {RUN}, when: false}}, "
        "{name: b, run: x.b, dependsOn: [{step: a, require: success}]}]",
        "",
        f"{BEGUN} WorkflowStepSkipped WorkflowStepSkipped {COMPLETED}",
    ),
    Row(
        "steps cancelled, one of which never began",
        "steps: [{name: a, run: x.a}, {name: b, run: x.b, dependsOn: [a]}]",
        "stubs: {a: [{hang: true}]}\nscript: [{at: 1m, cancel: {by: ann}}]",
        f"{FIRST} WorkflowStepCancelled WorkflowStepCancelled WorkflowInstanceCancelled",
    ),
    Row(
        "gate opened, granted",
        one(GATE % "quorum: 1"),
        "script: [{at: 1m, approve: {step: a, by: ann, role: Boss}}]",
        f"{ASKED} ApprovalGranted WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "gate granted by two",
        one(GATE % "quorum: 2"),
        "script: [{at: 1m, approve: {step: a, by: ann, role: Boss}},"
        " {at: 2m, approve: {step: a, by: bob, role: Boss}}]",
        f"{ASKED} ApprovalVoted ApprovalGranted WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "gate claimed, rejected: cancelled",
        one(GATE % "onReject: cancel"),
        "script: [{at: 1m, claim: {step: a, by: ann, role: Boss}},"
        " {at: 2m, reject: {step: a, by: ann, role: Boss}}]",
        f"{ASKED} ReviewClaimed ApprovalRejected WorkflowInstanceCancelled",
    ),
    Row(
        "gate rejected: failed",
        one(GATE % "onReject: fail"),
        "script: [{at: 1m, reject: {step: a, by: ann, role: Boss}}]",
        f"{ASKED} ApprovalRejected WorkflowStepFailed {FAILED}",
    ),
    Row(
        "gate expired: escalated, and asked again",
        one(GATE % "onExpire: escalate"),
        "script: [{at: 2h, resume: {step: a, by: ann}},"
        " {at: 150m, approve: {step: a, by: ann, role: Boss}}]",
        f"{ASKED} ApprovalExpired WorkflowEscalated WorkflowResumed ApprovalRequested"
        f" ApprovalGranted WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "gate expired: failed",
        one(GATE % "onExpire: fail"),
        "",
        f"{ASKED} ApprovalExpired WorkflowStepFailed {FAILED}",
    ),
    Row(
        "paused, unpaused",
        one("sleep: 5m"),
        "script: [{at: 1m, pause: {by: ann}}, {at: 2m, unpause: {by: ann}}]",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowPaused WorkflowUnpaused"
        f" WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "compensation began, undo dispatched, done; failed",
        UNDONE % "",
        "stubs: {b: [{fail: terminal}]}",
        f"{B_FAILED} CompensationTaskAssigned WorkflowStepCompensated {FAILED}",
    ),
    Row(
        "undo failed",
        UNDONE % "",
        "stubs: {b: [{fail: terminal}], undo/a: [{fail: terminal}]}",
        f"{B_FAILED} CompensationTaskAssigned WorkflowStepCompensationFailed {FAILED}",
    ),
    Row(
        "undo failed, retry scheduled",
        UNDONE % ", retryPolicy: {maxRetries: 1}",
        "stubs: {b: [{fail: terminal}], undo/a: [{fail: transient}, {ok: {}}]}",
        f"{B_FAILED} CompensationTaskAssigned StepRetryScheduled CompensationTaskAssigned"
        f" WorkflowStepCompensated {FAILED}",
    ),
    Row(
        "cancelled under compensate",
        UNDONE % "",
        "stubs: {b: [{hang: true}]}\nscript: [{at: 1m, cancel: {by: ann}}]",
        f"{BOTH_RAN} WorkflowStepCancelled CompensationStarted CompensationTaskAssigned"
        " WorkflowStepCompensated WorkflowInstanceCancelled",
    ),
    Row(
        "with forEach: one Ready for each item, and the step is done after them",
        one(f"{RUN}, forEach: input.n"),
        "input: {n: [1, 2]}",
        f"{BEGUN} WorkflowStepReady WorkflowStepReady AgentTaskAssigned AgentTaskAssigned"
        f" {DONE} {DONE} WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "with forEach: no items",
        one(f"{RUN}, forEach: input.n"),
        "input: {n: []}",
        f"{BEGUN} WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "with forEach: an item skipped",
        one(f"{RUN}, forEach: input.n, limit: 1, onFailure: skip"),
        "input: {n: [1, 2]}\nstubs: {'a[0]': [{fail: terminal}]}",
        f"{FIRST} AgentTaskFailed WorkflowStepSkipped WorkflowStepReady AgentTaskAssigned"
        f" {DONE} WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "with forEach: an item timed out, and the step failed",
        one(f"{RUN}, forEach: input.n, timeout: 1m"),
        "input: {n: [1]}\nstubs: {a: [{hang: true}]}",
        f"{FIRST} WorkflowStepTimedOut WorkflowStepFailed WorkflowStepFailed {FAILED}",
    ),
    Row(
        "with forEach: items undone",
        "failurePolicy: compensate\n"
        + one(f"{RUN}, forEach: input.n, limit: 1, undo: {{run: x.u}}"),
        "input: {n: [1, 2]}\nstubs: {'a[1]': [{fail: terminal}]}",
        f"{BOTH_RAN} AgentTaskFailed WorkflowStepFailed WorkflowStepFailed CompensationStarted"
        f" CompensationTaskAssigned WorkflowStepCompensated {FAILED}",
    ),
    Row(
        "child opened, done",
        one("workflow: kid"),
        "",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowStepCompleted {COMPLETED}",
    ),
    Row(
        "child failed",
        one("workflow: kid"),
        "stubs: {a: [{fail: terminal}]}",
        f"{BEGUN} WorkflowStepReady WorkflowStepWaiting WorkflowStepFailed {FAILED}",
    ),
    Row(
        "the workflow's own time was up",
        "timeout: 1m\n" + one(RUN),
        "stubs: {a: [{hang: true}]}",
        f"{FIRST} WorkflowStepCancelled {FAILED}",
    ),
]


@pytest.mark.req("R88", "R89", "R120")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.transition)
def test_a_row_of_the_table(row, tmp_path):
    """Exactly these names, in this order."""
    story = play(tmp_path, row.spec, row.rest)

    assert names_of(story) == row.published.split()


@pytest.mark.req("R88", "R86")
def test_queued_is_published_when_no_slot_was_free(tmp_path):
    """Created, queued and started are three turns, and the clock begins with the third."""
    story = queue(tmp_path)

    assert names_of(story) == [
        *("WorkflowInstanceCreated", "WorkflowInstanceQueued", "WorkflowInstanceStarted"),
        *("WorkflowStepSkipped", "WorkflowStepReady", "AgentTaskAssigned"),
        *("WorkflowStepTimedOut", "WorkflowStepFailed", "WorkflowInstanceFailed"),
    ]
    times = [envelope["occurredAt"][11:19] for envelope in history(story)]
    assert times[:3] == ["00:00:00", "00:00:00", "00:01:00"]


@pytest.mark.req("R88")
def test_an_executor_cannot_speak_for_a_gate():
    """Names follow from what a step is, not from the code that its executor reports."""
    live = Live("steps: [{name: a, run: x.a}]")
    live.start()
    words = failure_of("terminal", "approval.expired", "me too", tenant=TENANT)

    live.submit(Receipt(live.call("a").key, 1, "failed", failure=words))

    assert live.published()[-3:] == ["AgentTaskFailed", "WorkflowStepFailed", FAILED]


def names_of(story):
    """Every published name, in order."""
    return [envelope["eventType"] for envelope in history(story)]
