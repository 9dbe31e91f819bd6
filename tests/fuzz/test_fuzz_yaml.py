"""The fuzz target of the reader still runs: on seeds, on every cut, and with bytes replaced."""

import pytest

fuzz_yaml = pytest.importorskip(
    "fuzz_yaml", reason="atheris is not installed", exc_type=ImportError
)

WORKFLOW = b"""\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: w}
spec:
  trigger: {event: e, condition: event.a, schedule: 0 6 * * 1}
  steps:
    - {name: a, run: e.x, forEach: input.l, with: {p: "${ item }", s: {$secret: k}}}
    - {name: g, approval: {guards: [b], revise: [a]}, dependsOn: [a]}
    - {name: b, agent: r, dependsOn: [{step: g}], undo: {run: e.u}, check: {type: object}}
  output: '${ steps.a }'
"""
SCENARIO = b"""\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: s}
spec:
  definition:
    apiVersion: pawl.dev/v1
    kind: Workflow
    metadata: {name: w}
    spec: {steps: [{name: a, run: e}]}
  stubs: {a: [{fail: transient}, {ok: 1, after: 1s}], undo/a: [{hang: true}]}
  script: [{at: 1s, cancel: {by: x}}]
  expect: {state: failed, order: [a#1], error: a, lens: {ioa: failed}}
"""
ODD = (
    b"",
    b"*",
    b"\x00",
    b"\xff",
    b"\n",
    b"'",
    b'"',
    b": ",
    b"[",
    b"}",
    b"&a ",
    b"!!x ",
    b"\xc2\x85",
    b"1e999",
)


@pytest.mark.req("R63")
@pytest.mark.parametrize("seed", [WORKFLOW, SCENARIO], ids=["workflow", "scenario"])
def test_the_target_holds_near_its_seeds(seed):
    """Every prefix, and odd bytes put in place of every fifth one."""
    for at in range(len(seed)):
        fuzz_yaml.check(seed[:at])
        if at % 5 == 0:
            for odd in ODD:
                fuzz_yaml.check(seed[:at] + odd + seed[at + 1 :])
