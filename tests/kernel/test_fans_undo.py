"""forEach and what is undone: per item, by the completion of each; late answers of items."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.model.inputs import PauseInstance, Receipt, ResumeStep, UnpauseInstance
from pawlflow.projections.units import undo_of
from tests.kernel.support import Live, names, payload, refused

WITH = "{i: '${ item }', at: '${ index }', r: '${ result }', c: '${ command }'}"
UNDO = f"undo: {{run: x.u, with: {WITH}}}"
SPEC = f"""
failurePolicy: compensate
steps:
  - name: a
    run: x.a
    forEach: input.l
    with: {{v: '${{ item }}'}}
    retryPolicy: {{maxRetries: 1}}
    maxCorrectionAttempts: 1
    timeout: 10s
    {UNDO}
  - {{name: z, run: x.z, dependsOn: [a]}}
"""


def fanned(spec: str = SPEC, items: tuple[object, ...] = ("p", "q", "r")) -> Live:
    live = Live(spec)
    live.start({"l": list(items)})
    return live


def undos(live: Live) -> list[str]:
    return [name for name in live.started if name.startswith("undo/")]


@pytest.mark.req("R112", "R113", "R117", "R124")
def test_items_are_undone_in_the_reverse_of_their_completion():
    """One at a time, each with its own item, command and result."""
    live = fanned()
    for item, result in ((1, "Q"), (0, "P"), (2, "R")):
        live.ok(f"a[{item}]", result)
    live.fail("z", "terminal")

    for item in (2, 0, 1):
        assert undos(live)[-1] == f"undo/a[{item}]#1"
        live.ok(f"undo/a[{item}]")

    assert live.call("undo/a[1]").params.value == {"i": "q", "at": 1, "r": "Q", "c": {"v": "q"}}
    assert (live.state, live.cell.state.rollback) == ("failed", "full")


@pytest.mark.req("R113", "R117")
def test_an_undo_without_parameters_gets_the_items_command_and_result():
    """As that of a step without items."""
    live = fanned(SPEC.replace(UNDO, "undo: {run: x.u}"))
    live.ok("a[0]", "P")
    live.fail("a[1]", "terminal")
    live.settle("a[2]")

    assert live.call("undo/a[0]").params.value == {"command": {"v": "p"}, "result": "P"}


@pytest.mark.req("R112", "R113")
def test_items_are_undone_also_when_their_step_failed():
    """Those that succeeded; not the one that failed, nor those that were stopped."""
    live = fanned()
    live.ok("a[2]")
    live.fail("a[0]", "terminal")
    assert undos(live) == []
    live.settle("a[1]")

    live.ok("undo/a[2]")

    state = live.cell.state
    assert live.state == "failed"
    assert [undo_of(state, state.at(0, item)) for item in (0, 1, 2)] == ["none", "none", "done"]
    assert undo_of(state, state.unit(0)) == "done"


@pytest.mark.req("R113", "R115")
@pytest.mark.parametrize(("policy", "left"), [("stop", "pending"), ("continue", "done")])
def test_an_undo_of_an_item_that_fails_stops_the_rest_or_not(policy, left):
    """The step as a whole shows the worst."""
    live = fanned(f"onUndoFailure: {policy}\n{SPEC}")
    for item in range(3):
        live.ok(f"a[{item}]")
    live.fail("z", "terminal")
    live.ok("undo/a[2]")

    live.fail("undo/a[1]", "terminal")
    if policy == "continue":
        live.ok("undo/a[0]")

    state = live.cell.state
    assert (live.state, state.rollback) == ("failed", "partial")
    assert [undo_of(state, state.at(0, item)) for item in range(3)] == [left, "failed", "done"]
    assert undo_of(state, state.unit(0)) == "failed"


@pytest.mark.req("R113")
@pytest.mark.parametrize("kind", ["terminal", "timeout"])
def test_an_item_of_unknown_outcome_is_undone_where_written(kind):
    """What `undoOnFailure` says counts per item, also for one that was skipped."""
    live = fanned(SPEC.replace("undo:", "onFailure: skip\n    undoOnFailure: true\n    undo:"))
    live.ok("a[0]")
    live.fail("a[1]", kind)
    live.ok("a[2]")
    live.fail("z", "terminal")

    for item in (2, 1, 0):
        live.ok(f"undo/a[{item}]")

    assert undos(live) == ["undo/a[2]#1", "undo/a[1]#1", "undo/a[0]#1"]
    assert live.call("undo/a[1]").params.value["r"] is None


def test_an_item_that_was_never_attempted_has_nothing_to_undo():
    """Its parameters could not even be made."""
    spec = SPEC.replace("v: '${ item }'", "v: '${ item + 1 }'").replace(
        "undo:", "undoOnFailure: true\n    undo:"
    )
    live = fanned(spec, (1, "x"))

    assert (live.state, live.started) == ("failed", [])


@pytest.mark.req("R113")
def test_a_read_only_step_does_not_undo_its_items():
    """And says so."""
    live = fanned(SPEC.replace("undo:", "mutates: false\n    undo:"))
    for item in range(3):
        live.ok(f"a[{item}]")

    live.fail("z", "terminal")

    state = live.cell.state
    assert live.state == "failed"
    assert undo_of(state, state.unit(0)) == undo_of(state, state.at(0, 1)) == "not_required"


@pytest.mark.req("R113")
@pytest.mark.parametrize(("mutates", "told"), [("false", "not_required"), ("true", "none")])
def test_a_read_only_step_without_items_says_that_it_needs_no_undo(mutates, told):
    """Over an empty list it has succeeded all the same; one that mutates has done nothing."""
    live = fanned(SPEC.replace("undo:", f"mutates: {mutates}\n    undo:"), ())
    state = live.cell.state
    before = undo_of(state, state.unit(0))

    live.fail("z", "terminal")

    state = live.cell.state
    assert (before, undo_of(state, state.unit(0))) == ("none", told)


# Late and duplicate answers


def to_back_off(live: Live) -> None:
    live.fail("a[1]", "transient")


def to_correcting(live: Live) -> None:
    live.submit(PauseInstance("ann"))
    live.fail("a[1]", "validation")


def to_ready(live: Live) -> None:
    live.fail("a[1]", "transient")
    live.submit(PauseInstance("ann"))
    live.tick(1_000)


def to_second_attempt(live: Live) -> None:
    live.fail("a[1]", "transient")
    live.tick(1_000)


@pytest.mark.req("R84", "R215")
@pytest.mark.parametrize(
    ("stage", "status"),
    [
        (lambda _: None, "running"),
        (to_back_off, "backoff"),
        (to_correcting, "correcting"),
        (to_ready, "ready"),
        (to_second_attempt, "running"),
    ],
)
def test_a_success_of_any_attempt_settles_an_open_item(stage, status):
    """Whatever the item is doing by then; nothing more is started for it."""
    live = fanned()
    early = live.call("a[1]")
    stage(live)
    assert live.status("a[1]") == status

    turn = live.submit(Receipt(early.key, early.attempt, "ok", payload("Q")))

    left = ["AttemptLeft"] if live.stops else []
    assert names(turn)[: len(left) + 1] == [*left, "StepSucceeded"]
    assert live.status("a[1]") == "succeeded"
    started = [name for name in live.started if name.startswith("a[1]")]
    if live.cell.state.paused:
        live.submit(UnpauseInstance("ann"))
    live.tick(5_000)
    assert [name for name in live.started if name.startswith("a[1]")] == started
    live.ok("a[0]")
    live.ok("a[2]")
    assert live.started[-1] == "z#1"


@pytest.mark.parametrize("again", ["ok", "fail", "settle"])
def test_what_comes_again_for_a_settled_item_changes_nothing(again):
    """A duplicate, or an answer that contradicts the first."""
    for first in ("ok", "fail"):
        live = fanned(SPEC.replace("undo:", "onFailure: skip\n    undo:"))
        getattr(live, first)("a[1]")
        before = live.cell.head

        outcome = getattr(live, again)("a[1]")

        if (first, again) == ("fail", "ok"):
            assert names(outcome) == ["LateSuccess"]
        else:
            assert isinstance(outcome, Rejected)
            assert (outcome.code, live.cell.head) == ("receipt.not_awaited", before)


@pytest.mark.req("R84", "R215")
def test_an_answer_for_an_item_that_is_done_is_known_as_that():
    """Though little is kept of it: not awaited, rather than unknown."""
    live = fanned("steps: [{name: a, run: x.a, forEach: input.l}, {name: z, wait: {event: e}}]")
    for item in range(3):
        live.ok(f"a[{item}]")
    assert len(live.cell.state.done) == 3

    assert refused(live.ok("a[1]")) == "receipt.not_awaited"
    assert refused(live.reread().fail("a[1]")) == "receipt.not_awaited"


@pytest.mark.req("R113", "R114")
def test_a_late_success_of_an_item_joins_the_undo_once():
    """While compensation is open; it completed last, so it is next."""
    live = fanned(SPEC.replace("retryPolicy: {maxRetries: 1}", "onFailure: compensate"))
    live.ok("a[0]")
    live.tick(10_000)  # a[1] and a[2] time out together: the first of them decides
    assert live.status("a[1]") == "failed"
    live.settle("a[2]")
    live.settle("a[1]")  # as far as it knows
    assert undos(live) == ["undo/a[0]#1"]

    live.ok("a[1]", "late")
    assert refused(live.ok("a[1]", "late")) == "receipt.not_awaited"
    live.ok("undo/a[0]")
    assert undos(live) == ["undo/a[0]#1", "undo/a[1]#1"]
    assert live.call("undo/a[1]").params.value["r"] == "late"
    live.ok("undo/a[1]")

    assert (live.state, live.cell.state.rollback) == ("failed", "full")


def test_a_late_success_of_an_earlier_round_is_undone_as_it_was_asked():
    """A human edited the input; then the first input turned out to have been done."""
    live = fanned(SPEC.replace("retryPolicy: {maxRetries: 1}", "onFailure: escalate"))
    early = live.call("a[1]")
    live.fail("a[1]", "terminal")
    live.submit(ResumeStep("a[1]", "ann", "retry", params=payload({"v": "other"})))

    live.submit(Receipt(early.key, early.attempt, "ok", payload("first")))
    live.ok("a[0]")
    live.ok("a[2]")
    live.fail("z", "terminal")
    live.settle("a[1]")
    live.ok("undo/a[2]")
    live.ok("undo/a[0]")

    assert live.call("undo/a[1]").params.value["c"] == {"v": "q"}
