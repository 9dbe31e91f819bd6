"""Stubs at the command line: a child that is tried again goes on where its last run stopped."""

import pytest

AGAIN = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: again}
spec:
  timeout: 1h
  steps:
    - name: c
      workflow: middle
      retryPolicy: {maxRetries: 5, backoff: constant, initialDelay: 1ms}
      onFailure: escalate
      timeout: 1h
  output: "${ steps.c }"
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: middle}
spec:
  timeout: 1h
  steps:
    - {name: m, workflow: inner, timeout: 1h}
  output: "${ steps.m }"
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: inner}
spec:
  timeout: 1h
  steps:
    - {name: k, run: x.k, timeout: 30s, undo: {run: x.unk}}
  output: "${ steps.k }"
"""
READ_ON = "c/m/k: [{fail: transient}, {fail: transient}, {fail: terminal}, {ok: {n: 4}}]\n"


@pytest.mark.req("R92")
def test_a_child_that_runs_again_reads_its_stubs_on(place):
    """Also a grandchild, and in another process: `run --stubs` answers as a scenario does."""
    (place.folder / "again.yaml").write_text(AGAIN)
    (place.folder / "on.yaml").write_text(READ_ON)

    place.pawl("start", "again.yaml", "--id", "a-1")
    while place.shown("a-1")["steps"]["c"]["state"] != "escalated":
        cut = place.pawl("wait", "a-1", "--stubs", "on.yaml", "--timeout", "500ms")
        assert cut.exit_code == 75, cut.output
    assert place.pawl("retry", "a-1", "c", "--by", "ann").exit_code == 0
    shown = place.told("wait", "a-1", "--stubs", "on.yaml")

    assert shown["output"] == {"n": 4}
    assert shown["steps"]["c"]["attempts"] == 4
