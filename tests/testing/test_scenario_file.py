"""Scenario files: what they become, and what is refused in them."""

import sys
from pathlib import Path

import pytest
from msgspec import UNSET

from pawlflow.definition.load import load_text, load_workflows
from pawlflow.definition.read import read_yaml
from pawlflow.definition.report import FINDINGS_MAX, Report
from pawlflow.testing.scenario import Action, Answer, Expect, read_scenario, read_stubs
from pawlflow.testing.vocabulary import EVENTS, LENSES

sys.path.append(str(Path(__file__).parents[1] / "definition"))
from check_kit import assert_one, cases, marked

HEAD = "apiVersion: pawl.dev/v1\nkind: Scenario\nmetadata: {name: s}\n"
FLOW = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: parent}
spec:
  timeout: 1h
  steps:
    - {name: build, run: e.build, timeout: 1m, forEach: input.targets, undo: {run: e.undo}}
    - {name: notes, agent: writer, timeout: 1m, maxCorrectionAttempts: 1}
    - {name: gate, approval: {role: R, expires: 1h}, dependsOn: [build, notes]}
    - {name: tell, workflow: child, dependsOn: [gate]}
    - {name: each, workflow: child, forEach: input.targets, dependsOn: [tell]}
    - {name: other, workflow: elsewhere, dependsOn: [each]}
---
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: child}
spec:
  timeout: 1h
  steps: [{name: send, run: e.send, timeout: 1m}]
"""


def load_flow(path):
    if path == "./flow.yaml":
        return FLOW
    raise FileNotFoundError(2, "No such file or directory", path)


def spec(body: str) -> str:
    return HEAD + "spec:\n  workflow: ./flow.yaml\n" + "".join(f"  {x}\n" for x in body.split("\n"))


def read(text):
    [document] = load_text(text, "f.yaml")
    return read_scenario(document.node, load_file=load_flow)


def scenario(text):
    found, findings = read(text)
    assert findings == []
    return found


EVERYTHING = """\
description: All of it
input: {targets: [x, y]}
by: zoe
stubs:
  build: [{fail: transient, message: again, after: 90s}, {ok: {image: i}}]
  build[1]: [{ok: ~, twice: true, warnings: [w]}]
  notes: [{fail: validation, findings: [short]}, {hang: true}]
  undo/build[0]: [{ok: {}}]
  tell/send: [{ok: 1}]
  each[0]/undo/send: [{ok: 2}]
  other: [{ok: 3}]
script:
  - {at: 10m, approve: {step: gate, by: ann, role: R, comment: fine}}
  - {at: 0, signal: {event: e.x, data: {a: 1}}, refused: true}
  - {at: 0s, pause: {}}
  - {at: 1s, retry: {step: notes, by: bob, with: ~}}
  - {at: 1s, reassign: {step: notes, to: Editor}}
expect:
  state: failed
  rollback: full
  steps: {build: succeeded, 'build[0]': succeeded}
  undo: {build: done}
  attempts: {undo/build: 2, notes: 0}
  order: [notes#1, 'undo/build[1]#2']
  events: [WorkflowInstanceStarted, WorkflowInstanceFailed]
  lens: {ioa: completed, control-plane: Failed}
  elapsed: 1h30m
  error: ~
  output: ~
  feedback: {notes: 1}"""


def test_a_scenario_with_everything():
    """Every field of the format, as the runner gets it."""
    found = scenario(spec(EVERYTHING))
    assert (found.name, found.file, found.place.line, found.by) == ("s", "f.yaml", 1, "zoe")
    assert [w.name for w in found.workflows] == ["parent", "child"]
    assert found.input == {"targets": ["x", "y"]}
    assert found.stubs["build"] == (
        Answer(fail="transient", message="again", after_ms=90_000),
        Answer(ok={"image": "i"}),
    )
    assert found.stubs["build[1]"] == (Answer(ok=None, twice=True, warnings=("w",)),)
    assert found.stubs["notes"][1] == Answer(hang=True)
    assert "undo/each[0]/send" in found.stubs
    assert [(a.at_ms, a.verb, a.by) for a in found.script] == [
        (0, "signal", "zoe"),
        (0, "pause", "zoe"),
        (1_000, "retry", "bob"),
        (1_000, "reassign", "zoe"),
        (600_000, "approve", "ann"),
    ]
    assert found.script[0] == Action(
        at_ms=0, verb="signal", by="zoe", place=found.script[0].place,
        event="e.x", data={"a": 1}, refused=True,
    )  # fmt: skip
    assert (found.script[2].with_, found.script[3].with_) == (None, UNSET)


def test_every_expectation_is_kept():
    """As it was written; null is an expectation too."""
    assert scenario(spec(EVERYTHING)).expect == Expect(
        state="failed",
        rollback="full",
        steps={"build": "succeeded", "build[0]": "succeeded"},
        undo={"build": "done"},
        attempts={"undo/build": 2, "notes": 0},
        order=("notes#1", "undo/build[1]#2"),
        events=("WorkflowInstanceStarted", "WorkflowInstanceFailed"),
        lens={"ioa": "completed", "control-plane": "Failed"},
        elapsed_ms=5_400_000,
        error=None,
        output=None,
        feedback={"notes": 1},
    )


def test_what_is_absent_is_unset():
    """An expectation of null is one; silence is none."""
    found = scenario(spec("by: zoe"))
    assert found.expect == Expect()
    assert (found.expect.error, found.expect.output) == (UNSET, UNSET)
    assert (found.input, found.stubs, found.script) == ({}, {}, ())
    assert scenario(spec("input: {}")).by == "scenario"


def test_a_definition_may_stand_inside():
    """One workflow, or a list whose first is started; lint warnings are left to `check`."""
    frame = "apiVersion: pawl.dev/v1, kind: Workflow, metadata: {name: x}"
    document = f"{{{frame}, spec: {{steps: [{{name: a, run: e.x}}]}}}}"
    one = HEAD + f"spec: {{definition: {document}, stubs: {{a: [{{ok: 1}}]}}}}"
    assert [w.name for w in scenario(one).workflows] == ["x"]
    many = HEAD + f"spec: {{definition: [{document}, {document.replace('name: x', 'name: y')}]}}"
    assert [w.name for w in scenario(many).workflows] == ["x", "y"]


REFUSALS = cases(Path(__file__).with_name("refusals.txt"), spec)


@pytest.mark.parametrize(("text", "code", "name", "hint"), REFUSALS)
def test_what_is_refused(text, code, name, hint):
    """One mistake, one finding: its place, the names in it, and the way out."""
    found, findings = read(marked(text)[0])
    assert found is None
    assert_one(findings, text, code, name, hint)


def test_errors_of_the_workflow_are_the_scenarios():
    """With the file and line of the workflow, inline or beside."""
    text = HEAD + "spec: {workflow: w.yaml}"
    broken = FLOW.replace("[build, notes]", "[biuld]")
    [document] = load_text(text, "f.yaml")
    found, findings = read_scenario(document.node, load_file=lambda _: broken)
    assert found is None
    assert [(f.file, f.line, f.code) for f in findings] == [("w.yaml", 9, "step.unknown")]
    found, findings = read_scenario(document.node, load_file=lambda _: text)
    assert [(f.file, f.code) for f in findings] == [("f.yaml", "scenario.workflow")]
    inline = HEAD + "spec: {definition: {apiVersion: pawl.dev/v1, kind: Workflow}}"
    assert [f.code for f in read(inline)[1]] == ["field.missing", "field.missing"]


def test_a_stub_that_is_never_asked_is_warned_about():
    """Gates wait for the script, defined children run their own steps; an undo does ask."""
    found, findings = read(spec("stubs: {gate: [{ok: 1}], tell: [{ok: 1}], undo/tell: [{ok: 1}]}"))
    assert found is not None
    assert [f.code for f in findings] == ["scenario.stub_unused"] * 2


def test_stubs_can_be_read_alone():
    """As `pawl run --stubs FILE` takes them."""
    workflows = tuple(load_workflows(FLOW, "f")[0])
    [node] = read_yaml("notes: [{ok: 1}]", "f", Report())
    assert read_stubs(node, workflows) == ({"notes": (Answer(ok=1),)}, [])
    [node] = read_yaml("nots: [{ok: 1}]\nnotes: [{}]", "f", Report())
    stubs, findings = read_stubs(node, workflows)
    assert (stubs, [f.code for f in findings]) == ({}, ["step.unknown", "scenario.answer"])


def test_only_scenarios_are_read_as_such():
    """Another kind gives nothing; a frame without a spec gives its finding."""
    [node] = read_yaml(FLOW.partition("---")[0], "f", Report())
    assert read_scenario(node, load_file=load_flow) == (None, [])
    [node] = read_yaml(HEAD, "f", Report())
    assert [f.code for f in read_scenario(node, load_file=load_flow)[1]] == ["field.missing"]
    [node] = read_yaml("a: 1", "f", Report())
    assert read_scenario(node, load_file=load_flow)[0] is None


def test_a_report_has_an_end():
    """However many mistakes there are."""
    names = ", ".join(f"zz{i}: [{{ok: 1}}]" for i in range(FINDINGS_MAX + 1))
    found, findings = read(spec(f"stubs: {{{names}}}"))
    assert found is None
    assert findings[-1].code == "report.full"
    [node] = read_yaml(f"{{{names}}}", "f", Report())
    assert read_stubs(node, tuple(load_workflows(FLOW, "f")[0]))[1][-1].code == "report.full"


def test_the_vocabulary_is_complete():
    """Four lenses, and every published name once."""
    assert set(LENSES) == {"control-plane", "kernel", "ioa", "ores"}
    assert len(set(EVENTS)) == len(EVENTS) >= 43


def test_an_entry_to_be_refused_may_name_what_does_not_exist():
    """`refused: true` asks how the engine answers; without it an unknown step is a mistake."""
    entry = "script: [{at: 1s, resume: {step: nope, by: ann}, refused: true}]"
    assert scenario(spec(entry)).script[0].step == "nope"
