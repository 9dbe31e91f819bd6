"""The ladder of a step: each attempt with its input, output, findings and cost."""

from typing import Any

import pytest

from pawlflow.model.inputs import Approve, Reject, ResumeStep
from pawlflow.projections.decisions import decisions
from pawlflow.projections.ladder import ladders
from pawlflow.projections.show import show
from pawlflow.projections.story import NoSuchTurnError
from tests.kernel.support import Live, payload, workflow
from tests.projections.kit import NAMES, erased, ran, story_of, told_live

MEMBERS = [
    *("attempt", "round", "outcome", "input", "feedback", "output", "findings"),
    *("class", "code", "message", "started_at", "ended_at", "cost", "log"),
]


def outcomes(name: str, step: str) -> list[tuple[int, int, str]]:
    """How the attempts of a step of a scenario went."""
    rungs = ladders(story_of(name))[step]
    return [(rung["attempt"], rung["round"], rung["outcome"]) for rung in rungs]


@pytest.mark.req("R105", "R206")
def test_a_refused_output_is_kept_with_its_findings():
    """What a check refused is in the journal, so people see what was wrong, and what was said."""
    rungs = ladders(story_of("an-output-that-does-not-fit-its-check-is-corrected"))
    [first, *_, last] = next(each for each in rungs.values() if len(each) > 1)

    assert list(first) == MEMBERS
    assert (first["outcome"], first["class"], first["code"]) == (
        *("failed", "validation", "check.failed"),
    )
    assert first["output"] is not None
    assert first["findings"]
    assert last["feedback"] == first["findings"]
    assert last["outcome"] == "succeeded"


@pytest.mark.req("R105", "R206")
@pytest.mark.parametrize(
    ("name", "step", "went"),
    [
        (
            "changes-do-not-use-up-corrections",
            "draft",
            [(1, 1, "succeeded"), (2, 2, "succeeded"), (3, 3, "failed"), (4, 4, "succeeded")],
        ),
        (
            "a-late-success-of-an-earlier-attempt-settles-the-step",
            None,
            ["succeeded_late", "cancelled"],
        ),
        ("changes-run-a-whole-fan-again", "chapter[1]", [(1, 1, "succeeded"), (2, 2, "succeeded")]),
    ],
)
def test_every_attempt_has_its_rung(name, step, went):
    """By round; what came late, and what it overtook, are told as that."""
    if step is None:
        found = [rung["outcome"] for rungs in ladders(story_of(name)).values() for rung in rungs]
        assert [each for each in found if each in went] == went
    else:
        assert outcomes(name, step) == went


@pytest.mark.req("R206")
@pytest.mark.parametrize("name", NAMES)
def test_the_ladder_counts_what_was_started(name):
    """As many rungs as attempts, numbered without a gap, of every step of every example."""
    story, actual = ran(name)
    found = ladders(story)

    for step, attempts in actual["attempts"].items():
        if not step.startswith("undo/") and step in found:
            numbers = [rung["attempt"] for rung in found[step]]
            assert numbers == list(range(1, attempts + 1)), step


BUDGETED = workflow(
    """
timeout: 1d
budget: {usd: {hard: 9}}
steps:
  - {name: a, agent: r, timeout: 1m, cost: {usd: 0.5}, with: {n: 1}, maxCorrectionAttempts: 2}
  - {name: gate, approval: {role: Boss, quorum: 2, expires: 1h, onReject: changes}, dependsOn: [a]}
"""
)


def decided() -> Live:
    """Two drafts, a claim, a rejection, two votes."""
    live = Live(BUDGETED)
    live.start()
    live.ok("a", {"v": 1})
    live.now = 1_000
    live.submit(Reject("gate", "ann", "Boss", payload("shorter")))
    live.ok("a", {"v": 2})
    live.now = 2_000
    live.submit(Approve("gate", "ann", "Boss", payload("fine")))
    live.submit(Approve("gate", "bob", "Boss"))
    return live


@pytest.mark.req("R206", "R163")
def test_a_rung_says_what_the_attempt_cost():
    """What was set aside for it, where the executor says nothing."""
    rungs = ladders(told_live(decided(), BUDGETED))["a"]

    assert [rung["cost"] for rung in rungs] == [{"usd": 0.5}, {"usd": 0.5}]
    assert [rung["feedback"] for rung in rungs] == [None, ["shorter"]]
    assert [rung["output"] for rung in rungs] == [{"v": 1}, {"v": 2}]
    assert rungs[1]["input"] == {"n": 1}


@pytest.mark.req("R129", "R133", "R186")
def test_every_decision_is_told_with_who_when_as_what_and_why():
    """In order, of all the times a gate has asked."""
    said = decisions(told_live(decided(), BUDGETED))["gate"]

    assert [(each["decision"], each["by"], each["role"], each["comment"]) for each in said] == [
        ("rejected", "ann", "Boss", "shorter"),
        ("approved", "ann", "Boss", "fine"),
        ("approved", "bob", "Boss", None),
    ]
    assert [each["at"][-7:] for each in said] == ["01.000Z", "02.000Z", "02.000Z"]


@pytest.mark.req("R133")
def test_what_a_human_did_about_an_escalation_is_told():
    """How it goes on, to whom, with what, and in which role they acted."""
    shape = workflow(
        "timeout: 1d\nescalation: [{role: Lead}]\nsteps:\n"
        "  - {name: a, agent: r, onFailure: escalate, timeout: 1m}"
    )
    live = Live(shape)
    live.start()
    live.fail("a")
    told = ResumeStep("a", "lea", "reassign", "Robots", None, payload("try"), acting="Lead")
    live.submit(told)

    [said] = decisions(told_live(live, shape))["a"]

    wanted: dict[str, Any] = {"decision": "reassigned", "by": "lea", "role": "Lead"}
    assert said | wanted | {"to": "Robots", "comment": "try", "input": None} == said


@pytest.mark.req("R204")
def test_a_void_approval_is_among_the_decisions():
    """By nobody, and because of a step."""
    said = decisions(story_of("an-edited-retry-voids-the-approval"))["gate"]

    assert [each["decision"] for each in said] == ["approved", "voided", "approved"]
    assert (said[1]["by"], said[1]["cause"]) == (None, "promote")


def test_show_has_both_with_every_step_and_as_of_any_turn():
    """And neither where there is nothing to tell."""
    story = story_of("changes-send-an-agents-work-back-with-the-comment")

    now, then = show(story)["steps"], show(story, 2)["steps"]

    assert [rung["attempt"] for rung in now["draft"]["ladder"]] == [1, 2]
    assert [rung["attempt"] for rung in then["draft"]["ladder"]] == [1]
    assert then["gate"]["decisions"] == now["publish"]["decisions"] == []
    with pytest.raises(NoSuchTurnError):
        ladders(story, 99)


def test_a_ladder_can_be_told_after_its_values_are_gone():
    """How it went stays; what was said and given is null."""
    story = erased(story_of("an-output-that-does-not-fit-its-check-is-corrected"))

    for rung in (rung for rungs in ladders(story).values() for rung in rungs):
        assert (rung["input"], rung["output"], rung["message"]) == (None, None, None)
        assert rung["outcome"] in ("failed", "succeeded")
