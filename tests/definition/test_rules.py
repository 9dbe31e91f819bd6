"""Rules: only a definition that says something which used to be decided otherwise gets others."""

import pytest
from check_kit import loaded, steps

from pawlflow.definition.plan import compile_plan

UNDO = "undo: {run: e.u}"
POLICY = "policy: {action: pay}"


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    ("step", "rules"),
    [
        ("run: e.x", 2),
        ("run: e.x, timeout: 1m", 5),
        ("agent: Writer, timeout: 1m", 5),
        ("run: e.x, heartbeat: 1m", 5),
        ("workflow: kid, timeout: 1m", 5),
        ("run: e.x, undo: {run: e.u, timeout: 1m}", 5),
        ("approval: {expires: 1h}, undo: {run: e.u, timeout: 1m}", 5),
        ("wait: {event: e.x, timeout: 1m}", 2),
        (f"run: e.x, timeout: 1m, {POLICY}, {UNDO}, undoOnFailure: true", 5),
        (f"run: e.x, {UNDO}", 2),
        (f"run: e.x, {UNDO}, undoOnFailure: true", 4),
        (f"agent: Writer, {UNDO}, undoOnFailure: true", 4),
        (f"workflow: kid, {UNDO}, undoOnFailure: true", 4),
        (f"run: e.x, {UNDO}, undoOnFailure: true, mutates: false", 2),
        ("run: e.x, undoOnFailure: true, onFailure: skip", 2),
        (f"run: e.x, {UNDO}, onFailure: skip", 4),
        (f"workflow: kid, {UNDO}, onFailure: skip", 4),
        (f"run: e.x, {UNDO}, onFailure: skip, mutates: false", 2),
        (f"run: e.x, {UNDO}, onFailure: escalate", 2),
        (f"wait: {{event: e.x}}, {UNDO}, onFailure: skip", 2),
        (f"emit: e.x, {UNDO}, onFailure: skip", 2),
        (f"sleep: 1s, {UNDO}, undoOnFailure: true", 2),
        (f"emit: e.x, {UNDO}, undoOnFailure: true", 2),
        ("approval: {expires: 1h}", 2),
        ("approval: {expires: 1h}, undoOnFailure: true", 2),
        (f"approval: {{expires: 1h}}, {UNDO}, mutates: false", 2),
        (f"approval: {{expires: 1h}}, {UNDO}", 4),
        (f"approval: {{expires: 1h}}, {UNDO}, undoOnFailure: true", 4),
        (f"wait: {{event: e.x}}, {UNDO}", 2),
        ("wait: {event: e.x}, undoOnFailure: true", 2),
        (f"wait: {{event: e.x}}, {UNDO}, undoOnFailure: true, mutates: false", 2),
        (f"wait: {{event: e.x}}, {UNDO}, undoOnFailure: true", 4),
        (f"run: e.x, {POLICY}", 3),
        (f"run: e.x, {POLICY}, {UNDO}", 3),
        (f"run: e.x, {POLICY}, {UNDO}, undoOnFailure: true", 4),
    ],
)
def test_the_rules_of_a_definition(step, rules):
    """One step decides; the highest of all steps counts."""
    alone = loaded(steps(f"{{name: a, {step}}}"))
    beside = loaded(steps(f"{{name: a, {step}}}", f"{{name: b, run: e.y, {POLICY}}}"))

    assert compile_plan(alone).rules == rules
    assert compile_plan(beside).rules == max(rules, 3)


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    ("policy", "step", "rules"),
    [
        ("skip", f"run: e.x, {UNDO}", 4),
        ("skip", f"run: e.x, {UNDO}, onFailure: abort", 2),
        ("skip", "run: e.x", 2),
        ("compensate", f"run: e.x, {UNDO}", 2),
    ],
)
def test_the_policy_of_the_workflow_is_that_of_its_steps(policy, step, rules):
    """What says nothing of its own is skipped by the workflow's failurePolicy."""
    text = steps(f"{{name: a, {step}}}")

    made = loaded(text.replace("spec:", f"spec:\n  failurePolicy: {policy}", 1))

    assert made.failure_policy == policy
    assert compile_plan(made).rules == rules
