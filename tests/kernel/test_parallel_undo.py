"""parallelUndo: what does not depend on each other is undone at the same time."""

import pytest

from pawlflow.model.inputs import CancelInstance
from pawlflow.projections.units import undo_of
from tests.kernel.support import Live, refused

HEAD = "failurePolicy: compensate\nparallelUndo: true\n"
DIAMOND = """steps:
  - {name: a, run: x.a, undo: {run: x.u}}
  - {name: b, run: x.b, dependsOn: [a], undo: {run: x.u}}
  - {name: c, run: x.c, dependsOn: [a], undo: {run: x.u}}
  - {name: d, run: x.d, dependsOn: [b, c], undo: {run: x.u}}
  - {name: z, run: x.z, dependsOn: [d]}
"""


def compensating(spec: str, *done: str, items: int = 0) -> Live:
    """An instance whose steps completed in this order, and then it failed."""
    live = Live(spec)
    live.start({"l": list(range(items))})
    for name in done:
        live.ok(name)
    live.fail("z", "terminal")
    return live


def undoing(live: Live) -> list[str]:
    """What is being undone now, in the order it began."""
    state = live.cell.state
    return [state.name_of(state.unit(place)) for place in state.undoing]


@pytest.mark.req("R112", "R124")
def test_what_depends_on_a_step_is_undone_before_it():
    """Level by level, the deepest first; within a level in the reverse of completion."""
    live = compensating(HEAD + DIAMOND, "a", "b", "c", "d")

    assert undoing(live) == ["d"]
    live.ok("undo/d")
    assert undoing(live) == ["c", "b"]
    live.ok("undo/b")
    assert undoing(live) == ["c"]
    live.ok("undo/c")
    assert undoing(live) == ["a"]
    live.ok("undo/a")
    assert (live.state, live.cell.state.rollback) == ("failed", "full")


@pytest.mark.req("R112")
def test_without_it_one_is_undone_at_a_time():
    """Last completed first, whatever depends on what."""
    live = compensating("failurePolicy: compensate\n" + DIAMOND, "a", "c", "b", "d")

    for name in "dbca":
        assert undoing(live) == [name]
        live.ok(f"undo/{name}")

    assert live.state == "failed"


@pytest.mark.req("R115")
@pytest.mark.parametrize(("policy", "left"), [("stop", "pending"), ("continue", "running")])
def test_an_undo_that_fails_leaves_its_level_to_finish(policy, left):
    """What has begun is finished; whether the rest is begun is a matter of onUndoFailure."""
    live = compensating(f"onUndoFailure: {policy}\n{HEAD}{DIAMOND}", "a", "b", "c", "d")
    live.ok("undo/d")
    live.fail("undo/c", "terminal")
    assert (undoing(live), live.state) == (["b"], "compensating")

    live.ok("undo/b")

    state = live.cell.state
    assert undo_of(state, state.unit(0)) == left
    if policy == "continue":
        live.ok("undo/a")
    assert (live.state, state.rollback) == ("failed", "partial")


@pytest.mark.req("R112", "R113", "R215")
def test_items_are_undone_together_up_to_their_limit():
    """As many at a time as ran forward."""
    fan = "steps:\n  - {name: a, run: x.a, forEach: input.l, limit: 2, undo: {run: x.u}}\n"
    done = [f"a[{item}]" for item in range(5)]
    live = compensating(HEAD + fan + "  - {name: z, run: x.z, dependsOn: [a]}", *done, items=5)

    assert undoing(live) == ["a[4]", "a[3]"]
    live.ok("undo/a[3]")
    assert undoing(live) == ["a[4]", "a[2]"]
    for name in ("a[4]", "a[2]", "a[1]", "a[0]"):
        live.ok(f"undo/{name}")
    assert (live.state, live.cell.state.rollback) == ("failed", "full")


@pytest.mark.req("R112", "R215")
def test_max_parallel_counts_undos_too():
    """It is about how much runs at one time."""
    live = compensating(f"maxParallel: 1\n{HEAD}{DIAMOND}", "a", "b", "c", "d")
    live.ok("undo/d")

    assert undoing(live) == ["c"]
    live.ok("undo/c")
    assert undoing(live) == ["b"]


@pytest.mark.req("R113")
def test_a_late_success_joins_at_its_depth():
    """It waits for the level that is being undone, and goes before what it depends on."""
    live = Live(
        HEAD + "steps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
        "  - {name: b, run: x.b, dependsOn: [a], undo: {run: x.u}}\n"
        "  - {name: c, run: x.c, dependsOn: [b], timeout: 5s, undo: {run: x.u}}\n"
    )
    live.start()
    live.ok("a")
    live.ok("b")
    live.tick(5_000)
    live.settle("c")
    assert undoing(live) == ["b"]

    live.ok("c", "late")
    assert undoing(live) == ["b"]
    live.ok("undo/b")
    assert undoing(live) == ["c"]
    live.ok("undo/c")
    assert undoing(live) == ["a"]
    live.ok("undo/a")

    assert live.cell.state.rollback == "full"
    assert refused(live.ok("undo/a")) == "instance.closed"


def test_undos_that_are_retried_keep_their_level_open():
    """A back-off is not the end of an undo."""
    spec = (HEAD + DIAMOND).replace(
        "undo: {run: x.u}", "undo: {run: x.u, retryPolicy: {maxRetries: 1}}"
    )
    live = compensating(spec, "a", "b", "c", "d")
    live.ok("undo/d")
    live.fail("undo/c", "transient")
    live.ok("undo/b")
    assert undoing(live) == ["c"]

    live.tick(live.now + 1_000)
    assert live.started[-1] == "undo/c#2"
    live.ok("undo/c")
    assert undoing(live) == ["a"]


def test_a_cancel_during_it_is_refused_and_a_crash_resumes_it():
    """As with one undo at a time."""
    live = compensating(HEAD + DIAMOND, "a", "b", "c", "d")
    live.ok("undo/d")
    assert refused(live.submit(CancelInstance("ann"))) == "instance.stopping"

    again = live.reread()
    assert undoing(again) == ["c", "b"]
    again.ok("undo/c")
    again.ok("undo/b")
    again.ok("undo/a")
    assert again.state == "failed"
