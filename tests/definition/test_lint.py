"""Warnings: each with its place and the way out, and none for a workflow that is well made."""

from pathlib import Path

import pytest
from check_kit import A, assert_one, cases, loaded, marked, spec, steps, warnings

from pawlflow.definition.load import load_workflows

COMPENSATE = "failurePolicy: compensate\nsteps:\n- "
GATE = "{name: g, approval: {expires: 1h}}"

WARNED = cases(Path(__file__).with_name("warnings.txt"), spec)


@pytest.mark.req("R66", "R131")
@pytest.mark.parametrize(("text", "code", "name", "hint"), WARNED)
def test_what_is_warned_about(text, code, name, hint):
    """A workflow that works, and one warning at its place."""
    assert_one(warnings(marked(text)[0]), text, code, name, hint)


@pytest.mark.req("R66")
@pytest.mark.parametrize(
    "text",
    [
        steps(A),
        steps("{name: g, approval: {}, timeout: 1h}"),
        steps("{name: w, wait: {event: e.x}}"),
        steps("{name: c, workflow: child, with: {a: 1}}"),
        steps("{name: a, run: e.x, timeout: 1m, forEach: input.l, limit: 2}"),
        steps("{name: c, workflow: kid, check: {type: object}, onTimeout: retry, timeout: 1h}"),
        steps("{name: c, workflow: kid, undo: {run: e.u}, undoOnFailure: true}"),
        steps("{name: t, emit: e.x, undo: {run: e.u}, timeout: 1m, retryPolicy: {maxRetries: 1}}"),
        steps("{name: n, sleep: 1s, undo: {run: e.u}, onTimeout: retry, grace: 1s}"),
        steps("{name: g, approval: {expires: 1h}, undo: {run: e.u}, undoOnFailure: true}"),
        steps("{name: g, approval: {expires: 1h}, undo: {run: e.u}, onTimeout: retry, grace: 1s}"),
        steps("{name: g, approval: {expires: 1h}, undo: {run: e.u}, retryPolicy: {maxRetries: 1}}"),
        steps("{name: w, wait: {event: e.x}, undo: {run: e.u}, undoOnFailure: true}"),
        steps("{name: t, emit: e.x, cost: {usd: 1}, policy: {action: tell}}"),
        spec(f"parallelUndo: true\nsteps: [{A[:-1]}, undo: {{run: e.u}}, limit: 3}}]"),
        spec(COMPENSATE + "{name: a, run: e.x, timeout: 1m, mutates: false}"),
        spec(COMPENSATE + "{name: a, run: e.x, timeout: 1m, undo: {run: e.u}}"),
        spec(COMPENSATE + "{name: g, approval: {expires: 1h}}"),
        spec(COMPENSATE + "{name: c, workflow: kid, mutates: false}"),
        spec(COMPENSATE + "{name: c, workflow: kid, undo: {run: e.u}}"),
        spec(
            COMPENSATE
            + "{name: g, approval: {expires: 1h}}\n"
            + "- {name: a, run: e.x, timeout: 1m, irreversible: true, dependsOn: [g]}"
        ),
        spec(f"{COMPENSATE}{A}\ncompensation: [{{step: a, action: x, agent: r}}]"),
        steps(GATE, "{name: a, run: e.x, timeout: 1m, irreversible: true, dependsOn: [g]}"),
        steps(
            GATE,
            "{name: m, sleep: 1s, dependsOn: [g]}",
            "{name: a, run: e.x, timeout: 1m, irreversible: true, dependsOn: [m]}",
        ),
        steps(
            "{name: g, approval: {expires: 1h, guards: [a]}}",
            "{name: m, sleep: 1s, dependsOn: [g]}",
            "{name: a, run: e.x, timeout: 1m, dependsOn: [m]}",
        ),
        spec(
            "mode: sequence\nsteps: ["
            + ", ".join(f"{{name: s{i}, sleep: 1s}}" for i in range(10))
            + "]"
        ),
    ],
)
def test_what_is_well_made_is_not_warned_about(text):
    """The way out of each warning leads out of it."""
    assert warnings(text) == []


def test_both_undo_forms_keep_the_undo():
    """With a warning, and the step's own word wins."""
    text = spec(
        "steps: [{name: a, run: e.x, timeout: 1m, undo: {run: e.u}}]\n"
        "compensation: [{step: a, action: x, agent: r}]"
    )
    assert loaded(text).steps[0].undo.target == "e.u"


def test_a_broken_graph_is_not_judged():
    """Warnings about order need one; the rest is still said."""
    text = steps("{name: a, run: e.x, dependsOn: [a]}")
    assert [f.code for f in load_workflows(text, "f")[1]] == ["lint.timeout", "step.cycle"]
