"""IOA documents load unchanged: every step an agent's task, free-standing names in conditions."""

import os
from pathlib import Path

import pytest
from check_kit import assert_one, errors, loaded, marked

from pawlflow.definition.load import load_workflows
from pawlflow.definition.shape import Edge, Retry, Trigger, Undo

DATA = os.environ.get("PAWL_TEST_DATA")
FILES = sorted(Path(DATA, "ioa").glob("*.yaml")) if DATA else []

OWN = """\
apiVersion: ioa.dev/v0.2
kind: Workflow
metadata:
  name: refund-request
  version: 1.2.0
  owner: {name: Support, role: support-ops}
  labels: {team: support}
  createdAt: "2026-01-05T10:00:00Z"
spec:
  description: Look at a refund request and answer it
  domainsInvolved: [support, finance]
  trigger:
    event: support.refund-requested
    condition: "amount >= 50 && payload.country == 'AT'"
  steps:
    - name: assess
      agent: claims-analyst
      action: assess-claim
      timeout: 5m
      retryPolicy: {maxRetries: 2, backoff: "30s"}
    - name: pay
      agent: payment-clerk
      action: "Pay the money back"
      dependsOn: [assess]
      timeout: 2m
      onFailure: compensate
  compensation:
    - {step: pay, action: Recall the payment, agent: payment-clerk}
  timeout: 30m
  failurePolicy: compensate
status: {state: idle, retries: 0}
"""


@pytest.mark.req("R62")
@pytest.mark.skipif(not FILES, reason="PAWL_TEST_DATA names no folder with ioa/*.yaml")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_public_documents_load_unchanged(path):
    """Files of the IOA project give workflows of agent tasks, with warnings at most."""
    workflows, findings = load_workflows(path.read_bytes(), path.name)
    assert [w.name for w in workflows] == [path.stem]
    assert {step.kind for step in workflows[0].steps} == {"agent"}
    assert {f.code for f in findings} <= {"lint.undo"}


@pytest.mark.req("R62", "R67")
def test_a_document_becomes_a_workflow_of_agent_tasks():
    """What the engine reads goes into the shape; what it does not is kept beside it."""
    flow = loaded(OWN)
    assess, pay = flow.steps
    assert (assess.kind, assess.target, assess.action) == (
        "agent",
        "claims-analyst",
        "assess-claim",
    )
    assert assess.retry == Retry(max_retries=2, backoff="constant", initial_ms=30_000)
    assert pay.depends_on == (Edge(step="assess"),)
    assert pay.undo == Undo(kind="agent", target="payment-clerk", action="Recall the payment")
    assert flow.trigger == Trigger(
        event="support.refund-requested",
        condition="amount >= 50 && payload.country == 'AT'",
    )
    assert flow.version == 1
    assert flow.metadata == {
        "owner": {"name": "Support", "role": "support-ops"},
        "labels": {"team": "support"},
        "createdAt": "2026-01-05T10:00:00Z",
        "version": "1.2.0",
        "domainsInvolved": ["support", "finance"],
    }


def test_a_whole_number_is_a_version_here_too():
    """Instances can be pinned to it."""
    flow = loaded(OWN.replace("version: 1.2.0", "version: 7"))
    assert (flow.version, "version" in flow.metadata) == (7, False)


@pytest.mark.req("R62", "R63")
@pytest.mark.parametrize(
    ("old", "new", "code", "name", "hint"),
    [
        ("status:", "§extra: 1\nstatus:", "field.unknown", "'extra'", ""),
        ("kind: Workflow", "kind: §Budget", "field.value", "'Budget'", ""),
        ("amount >= 50", "amount >= §=", "expression.syntax", "condition", ""),
        ("[assess]", "[§asess]", "step.unknown", "'asess'", "did you mean 'assess'?"),
        ("step: pay", "step: §pray", "step.unknown", "'pray'", "did you mean 'pay'?"),
        ("- name: pay\n      agent: payment-clerk", "- §name: pay", "step.kind", "'pay'", "agent"),
        ("timeout: 5m\n", "timeout: 5m\n      §sleep: 1s\n", "field.unknown", "'sleep'", ""),
        ("[support, finance]", "§support", "field.type", "a list of domains", ""),
    ],
)
def test_what_is_refused_in_ioa_documents(old, new, code, name, hint):
    """The same checks, and a closed top level."""
    text = OWN.replace(old, new, 1)
    assert_one(errors(marked(text)[0]), text, code, name, hint)
