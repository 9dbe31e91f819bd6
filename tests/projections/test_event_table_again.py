"""The table of published names, the rows where a human is asked again, or asked for more."""

import pytest

from tests.projections.played import play
from tests.projections.test_event_table import (
    BEGUN,
    BOTH_RAN,
    COMPLETED,
    DONE,
    FIRST,
    Row,
    names_of,
)

READY = "WorkflowStepReady"
ASKED = f"{READY} ApprovalRequested"
GRANTED = "ApprovalGranted WorkflowStepCompleted"
ROWS = [
    Row(
        "a rung of the ladder does not answer",
        "escalation: [{role: Lead, timeout: 10m}, {role: Boss}]\n"
        "steps: [{name: a, run: x.a, onFailure: escalate}]",
        "stubs: {a: [{fail: terminal}]}",
        f"{FIRST} AgentTaskFailed WorkflowEscalated WorkflowEscalated",
    ),
    Row(
        "what was approved has changed: the gate asks again",
        "steps:\n"
        "  - {name: gate, approval: {role: Boss, expires: 1h, guards: [go]}}\n"
        "  - {name: go, run: x.go, with: {n: 1}, dependsOn: [gate], onFailure: escalate}",
        "stubs: {go: [{fail: terminal}, {ok: {}}]}\n"
        "script:\n"
        "  - {at: 1m, approve: {step: gate, by: ann, role: Boss}}\n"
        "  - {at: 5m, retry: {step: go, by: bob, with: {n: 2}}}\n"
        "  - {at: 6m, approve: {step: gate, by: ann, role: Boss}}",
        f"{BEGUN} {ASKED} {GRANTED} {READY} AgentTaskAssigned AgentTaskFailed WorkflowEscalated"
        f" WorkflowResumed ApprovalVoided {ASKED} {GRANTED} AgentTaskAssigned {DONE} {COMPLETED}",
    ),
    Row(
        "changes asked for: corrected, done again, asked again",
        "steps:\n"
        "  - {name: draft, agent: writer}\n"
        "  - {name: more, run: x.more, dependsOn: [draft]}\n"
        "  - name: gate\n"
        "    approval: {role: Boss, expires: 1h, onReject: changes, revise: [draft]}\n"
        "    dependsOn: [more]",
        "script:\n"
        "  - {at: 1m, reject: {step: gate, by: ann, role: Boss, comment: shorter}}\n"
        "  - {at: 5m, approve: {step: gate, by: ann, role: Boss}}",
        f"{BOTH_RAN} {DONE} {ASKED} ApprovalRejected AgentTaskReassigned {DONE}"
        f" {READY} AgentTaskAssigned {DONE} {ASKED} {GRANTED} {COMPLETED}",
    ),
    Row(
        "a soft limit is passed, then a hard one, which a human raises",
        "budget: {usd: {soft: 1, hard: 2}}\nsteps:\n"
        "  - {name: a, run: x.a, cost: {usd: 1.5}}\n"
        "  - {name: b, run: x.b, cost: {usd: 1}, dependsOn: [a]}",
        "script: [{at: 5m, approve: {step: b, by: ann, role: Boss}}]",
        f"{FIRST} BudgetWarned {DONE} {READY} BudgetExceeded BudgetRaised AgentTaskAssigned"
        f" {DONE} {COMPLETED}",
    ),
]


@pytest.mark.req("R88", "R89")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.transition)
def test_a_row_of_the_table(row, tmp_path):
    """Exactly these names, in this order."""
    story = play(tmp_path, row.spec, row.rest)

    assert names_of(story) == row.published.split()
