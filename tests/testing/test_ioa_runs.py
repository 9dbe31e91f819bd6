"""IOA documents run unchanged: on success and on every way to fail, as spec 003 says.

What must happen is worked out by `Reference`, which shares nothing with the engine. Documents of
others are tried too, where PAWL_TEST_DATA names a folder with some in `ioa`.
"""

import os
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pawlflow.definition.finding import Place
from pawlflow.definition.load import load_workflows
from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import run_scenario
from pawlflow.testing.scenario import Action, Answer, Scenario
from tests.ioa_reference import Act, Document, Reference, Says, ms_of
from tests.kernel.system_kit import Cells

OURS = Path(__file__).parents[2] / "examples" / "ioa"
OTHERS = Path(os.environ.get("PAWL_TEST_DATA", "no such folder")) / "ioa"
PATHS = [*sorted(OURS.glob("*.yaml")), *sorted(OTHERS.glob("*.yaml"))]
TRIGGERED = [path for path in PATHS if "trigger" in yaml.safe_load(path.read_text())["spec"]]
FINAL = ("terminal", "governance", "validation")
PASSING = ("transient", "external", "agent")
GATE = "sign-off"


class Case(NamedTuple):
    """A document with answers and acts."""

    label: str
    document: Document
    says: dict[str, list[Says]]
    acts: tuple[Act, ...] = ()


def steps_of(document: Document) -> list[Document]:
    found: list[Document] = document["spec"]["steps"]
    return found


def undoable(document: Document) -> list[str]:
    return [each["step"] for each in document["spec"].get("compensation", ())]


def paces(document: Document) -> list[dict[str, int]]:
    """How long each step takes: the later the longer, and the other way round; no two at once."""
    names = [step["name"] for step in steps_of(document)]
    steady = {name: 1_000 * n + 7 * n * n for n, name in enumerate(names, start=1)}
    contrary = {name: 1_000 * (9 - n) + 11 * n * n for n, name in enumerate(names, start=1)}
    return [steady, contrary]


def paced(pace: dict[str, int], **other: list[str]) -> dict[str, list[Says]]:
    """Everybody succeeds in their time, but for those who say something else."""
    said = {name: [Says("ok", ms)] for name, ms in pace.items()}
    said |= {f"undo/{name}": [Says("ok", ms // 2)] for name, ms in pace.items()}
    for name, kinds in other.items():
        ms = said[name][0].after_ms
        said[name] = [Says(kind, ms) for kind in kinds]
    return said


# The ways it may go


def successes(document: Document) -> Iterator[Case]:
    """Everybody succeeds."""
    for n, pace in enumerate(paces(document)):
        yield Case(f"all succeed, pace {n}", document, paced(pace))


def failures(document: Document) -> Iterator[Case]:
    """Each step in turn fails in each way: for good, for a while, or by never answering."""
    for n, pace in enumerate(paces(document)):
        for step in (step["name"] for step in steps_of(document)):
            ways = [[kind] for kind in (*FINAL, *PASSING, "timeout", "hang")]
            ways += [[kind, "ok"] for kind in PASSING]
            ways += [["transient", "agent", "hang"], ["external", "terminal"]]
            for kinds in ways:
                yield Case(f"{step} {kinds}, pace {n}", document, paced(pace, **{step: kinds}))


def failed_undos(document: Document) -> Iterator[Case]:
    """Each step fails, and each undo in turn does not work either."""
    pace = paces(document)[1]
    for step in (step["name"] for step in steps_of(document)):
        for undo in undoable(document):
            for kinds in (["terminal"], ["transient", "ok"], ["agent"], ["hang"]):
                other = {step: ["terminal"], f"undo/{undo}": kinds}
                yield Case(f"{step} fails, undo/{undo} {kinds}", document, paced(pace, **other))


def cancels(document: Document) -> Iterator[Case]:
    """Somebody stops it at some time, early or late or while work is being undone."""
    last = steps_of(document)[-1]["name"]
    for n, pace in enumerate(paces(document)):
        for at in (1, 1_500, 4_999, 9_000, 15_003, 40_001):
            yield Case(f"cancel at {at}, pace {n}", document, paced(pace), (Act(at, "cancel"),))
            failing = paced(pace, **{last: ["terminal"]})
            label = f"{last} fails, cancel at {at}, pace {n}"
            yield Case(label, document, failing, (Act(at, "cancel"),))


def gates(document: Document) -> Iterator[Case]:
    """The same graph with a gate before each of its steps: granted, rejected, expired, resumed."""
    pace = paces(document)[0]
    for place in range(len(steps_of(document))):
        for options, acts in GATED:
            gated = with_gate(document, place, options)
            label = f"gate before step {place} {options} {acts}"
            yield Case(label, gated, paced(pace), acts)
            failing = paced(pace, **{steps_of(document)[-1]["name"]: ["terminal"]})
            yield Case(f"{label}, last step fails", gated, failing, acts)


LONG_MS = 300_017
GATED: list[tuple[Document, tuple[Act, ...]]] = [
    ({"expires": "10m"}, (Act(LONG_MS, "approve", GATE),)),
    ({"expires": "10m"}, (Act(LONG_MS, "reject", GATE), Act(LONG_MS + 5, "approve", GATE))),
    ({"expires": "10m", "onReject": "fail"}, (Act(LONG_MS, "reject", GATE),)),
    ({"expires": "10m"}, ()),  # expired and escalated; the workflow's timeout runs on
    ({"expires": "1m", "onExpire": "fail"}, (Act(LONG_MS, "approve", GATE),)),
    ({"expires": "4m"}, (Act(LONG_MS, "resume", GATE), Act(LONG_MS + 17, "approve", GATE))),
    ({"expires": "4m"}, (Act(LONG_MS, "approve", GATE), Act(LONG_MS + 17, "cancel"))),
    ({}, ()),  # it waits until the workflow's time is up
]


def with_gate(document: Document, place: int, options: Document) -> Document:
    """The document as a workflow of Pawl, with a gate in front of one of its steps."""
    made = deepcopy(document)
    made["apiVersion"] = "pawl.dev/v1"
    made["metadata"] = {"name": document["metadata"]["name"]}
    made["spec"].pop("domainsInvolved", None)
    made["spec"].pop("trigger", None)
    made.pop("status", None)
    step = made["spec"]["steps"][place]
    gate = {"name": GATE, "approval": {"role": "Owner", **options}}
    if "dependsOn" in step:
        gate["dependsOn"] = step["dependsOn"]
    step["dependsOn"] = [GATE]
    made["spec"]["steps"].insert(place, gate)
    return made


# The engine's run of it


def scenario_of(case: Case) -> Scenario:
    """The case as a scenario."""
    text = yaml.safe_dump(case.document, sort_keys=False)
    workflows, findings = load_workflows(text, case.label)
    assert not [finding for finding in findings if finding.severity == "error"], findings
    place = Place(case.label, 1, 1)
    return Scenario(
        name=workflows[0].name,
        file=case.label,
        place=place,
        workflows=tuple(workflows),
        stubs={name: tuple(map(answer_of, said)) for name, said in case.says.items()},
        script=tuple(
            Action(at_ms=act.at_ms, verb=act.verb, place=place, by="ann", role="Owner")
            if act.verb == "cancel"
            else Action(
                at_ms=act.at_ms,
                verb=act.verb,
                place=place,
                by="ann",
                role="Owner" if act.verb != "resume" else None,
                step=act.step,
            )
            for act in case.acts
        ),
    )


def answer_of(said: Says) -> Answer:
    if said.kind == "hang":
        return Answer(hang=True)
    if said.kind == "ok":
        return Answer(ok={}, after_ms=said.after_ms)
    return Answer(fail=said.kind, after_ms=said.after_ms)


def difference(case: Case, actual: dict[str, Any]) -> dict[str, Any]:
    """Where the engine and the reference part."""
    expected = Reference(case.document, case.says, case.acts).told()
    actual = actual | {"ioa": actual["lens"]["ioa"]}
    if expected["elapsed_ms"] is None:
        del expected["elapsed_ms"]
    return {
        name: (value, actual[name]) for name, value in expected.items() if actual[name] != value
    }


def read(path: Path) -> Document:
    document: Document = yaml.safe_load(path.read_text())
    return document


@pytest.mark.req("R62", "R196")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_document_loads_unchanged(path):
    """Its own bytes, with advice at most; every step is an agent's task."""
    workflows, findings = load_workflows(path.read_bytes(), path.name)

    assert [workflow.name for workflow in workflows] == [path.stem]
    assert {step.kind for step in workflows[0].steps} == {"agent"}
    assert {finding.code for finding in findings} <= {"lint.undo", "lint.timeout"}


@pytest.mark.req("R62", "R196", "R200", "R79", "R84", "R97", "R98", "R99", "R100", "R101")
@pytest.mark.req("R106", "R107", "R112", "R113", "R115", "R118", "R123", "R128")
@pytest.mark.parametrize("ways", [successes, failures, failed_undos, cancels, gates])
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_document_goes_every_way_as_the_reference_says(path, ways):
    """States, rollback, undos and their order, attempts, times and the lens."""
    document = read(path)
    wrong = {}
    for case in ways(document):
        result = run_scenario(scenario_of(case))
        found = difference(case, result.actual)
        if found or result.failures:
            wrong[case.label] = found or result.failures

    assert not wrong


@pytest.mark.req("R62", "R141", "R119")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_document_ends_the_same_with_a_crash_at_every_commit(path):
    """Each step failing for good, and one undo failing, before and after every commit."""
    document = read(path)
    pace = paces(document)[0]
    names = [step["name"] for step in steps_of(document)]
    cases = [Case(f"{name} fails", document, paced(pace, **{name: ["terminal"]})) for name in names]
    for undo in undoable(document)[:1]:
        other = {names[-1]: ["terminal"], f"undo/{undo}": ["agent"]}
        cases.append(Case(f"undo/{undo} fails", document, paced(pace, **other)))
    for case in cases:
        scenario = scenario_of(case)
        result = crash_everywhere(scenario, run_scenario(scenario))
        assert not difference(case, result.actual), case.label
        assert result.passed, result.failures


@pytest.mark.req("R62", "R67")
@pytest.mark.parametrize("path", TRIGGERED, ids=lambda path: path.stem)
def test_an_event_starts_a_document_if_its_condition_holds(path):
    """`payload.x` is a member of the event, and so is a name that stands by itself."""
    trigger = read(path)["spec"]["trigger"]
    cells = Cells()
    cells.publish(load_workflows(path.read_bytes(), path.name)[0][0])

    for fits, data in EVENTS:
        before = len(cells.instances())
        cells.emit(trigger["event"], data)
        started = len(cells.instances()) - before
        assert started == (1 if fits or "condition" not in trigger else 0)


EVENTS = [
    (True, {"urgency": "high", "value": 21, "slope": 0.2, "riskLevel": "high", "riskScore": 0.7}),
    (False, {"urgency": "a", "value": 21, "slope": 0.1, "riskLevel": "a", "riskScore": 0.69}),
    (False, {}),  # an error in a condition starts nothing
]


def test_the_reference_is_held_to_something():
    """A document without a limit to its steps would say little: they have them, and retries."""
    assert len(list(OURS.glob("*.yaml"))) == 5
    every = [step for path in PATHS for step in steps_of(read(path))]
    assert sum(ms_of(step.get("timeout")) is not None for step in every) >= 20
    assert {step.get("onFailure") for step in every} == {None, "abort", "skip", "compensate"}
    assert len([step for step in every if "retryPolicy" in step]) >= 5
