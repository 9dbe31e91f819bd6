"""Child workflows: parents, children and grandchildren that talk by sends."""

import pytest
from msgspec.structs import replace

from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system.registry import GENERATIONS_MAX
from pawlflow.model.inputs import CancelInstance, Receipt, Tick
from pawlflow.model.system import StartChild
from pawlflow.projections.units import error_of
from tests.kernel.support import failure, names
from tests.kernel.system_kit import Cells, instance, named


def family(*specs: tuple[str, str]) -> Cells:
    """Workflows that are published, by name."""
    shapes = [named(name, spec) for name, spec in specs]
    cells = Cells(*shapes)
    for shape in shapes:
        cells.publish(shape)
    return cells


def child_of(cells: Cells, key: str) -> str:
    """The id of the newest child of an instance."""
    sends = [s.input for id_, turn in cells.log for s in turn.turn.sends if id_.key == key]
    return str([each.child for each in sends if isinstance(each, StartChild)][-1])


def fail(cells: Cells, key: str, step: str, kind: str = "terminal") -> None:
    """The newest attempt of a step failed."""
    call = [c for c in cells.calls if (c.cell.key, c.step) == (key, step)][-1]
    cells.submit(call.cell, Receipt(call.key, call.attempt, "failed", failure=failure(kind)))


UP = ("up", "steps: [{name: c, workflow: kid, with: {x: '${ input.x }'}}]\noutput: '${ steps.c }'")
KID = ("kid", "steps: [{name: k, run: x.k}]\noutput: {got: '${ steps.k }', x: '${ input.x }'}")


@pytest.mark.req("R92")
def test_a_child_runs_the_latest_definition_of_its_name():
    """As it is when the child starts; whatever is published later."""
    cells = family(UP, KID)
    cells.start("up", "u-1", {"x": 1})
    key = child_of(cells, "u-1")
    cells.publish(replace(named("kid", "steps: [{name: other, run: x.o}]"), version=2))

    cells.ok(key, "k", "done")
    cells.start("up", "u-2", {"x": 2})

    assert cells.instances()["u-1"] == "completed"
    assert cells.state(instance("up", "u-1")).output.value == {"got": "done", "x": 1}
    assert [call.step for call in cells.calls] == ["k", "other"]
    assert cells.state(instance("kid", key)).by == "zoe"
    cells.assert_replays()


@pytest.mark.req("R92", "R94")
def test_a_child_that_nobody_has_published_is_a_failed_step():
    """The parent is told by the registry, in the same words every time."""
    cells = family(UP)

    cells.start("up", "u-1", {"x": 1})

    error = error_of(cells.state(instance("up", "u-1")))
    assert error is not None
    assert (error["code"], error["class"], error["step"]) == ("child.unknown", "terminal", "c")
    assert "kid" in error["message"]
    cells.assert_replays()


@pytest.mark.req("R92", "R102")
def test_what_failed_a_child_is_what_failed_its_step():
    """Class, code and words; the child's own retries come first."""
    cells = family(UP, ("kid", "steps: [{name: k, run: x.k, retryPolicy: {maxRetries: 1}}]"))
    cells.start("up", "u-1")
    key = child_of(cells, "u-1")
    fail(cells, key, "k", "external")
    cells.now = 1_000
    cells.submit(instance("kid", key), Tick())

    fail(cells, key, "k", "external")

    error = error_of(cells.state(instance("up", "u-1")))
    assert error is not None
    assert (error["class"], error["code"], error["attempts"]) == ("external", "effect.failed", 1)
    assert cells.instances() == {"u-1": "failed", key: "failed"}


@pytest.mark.req("R92", "R107")
def test_the_timeout_of_a_child_goes_the_way_of_a_timeout():
    """The parent's onTimeout decides."""
    spec = "steps: [{name: c, workflow: kid, onTimeout: escalate}]"
    cells = family(("up", spec), ("kid", "timeout: 5s\nsteps: [{name: k, sleep: 1h}]"))
    cells.start("up", "u-1")
    key = child_of(cells, "u-1")

    cells.now = 5_000
    cells.submit(instance("kid", key), Tick())

    assert cells.instances() == {"u-1": "escalated", key: "failed"}


@pytest.mark.req("R92", "R90")
def test_a_child_that_a_human_cancels_has_failed_its_step():
    """Class terminal, code child.cancelled: nobody wants it again by itself."""
    cells = family(UP, KID)
    cells.start("up", "u-1")
    key = child_of(cells, "u-1")

    cells.submit(instance("kid", key), CancelInstance("ann"))
    call = cells.calls[-1]
    cells.submit(call.cell, Receipt(call.key, call.attempt, "cancelled"))

    error = error_of(cells.state(instance("up", "u-1")))
    assert error is not None
    assert (error["class"], error["code"]) == ("terminal", "child.cancelled")
    assert key in error["message"]


@pytest.mark.req("R92", "R112", "R119")
def test_a_cancel_goes_down_the_family_and_undoing_comes_back_up():
    """Grandchild first, then its parent, then theirs; each waits for the one below."""
    spec = "failurePolicy: compensate\nsteps:\n  - {name: a, run: x.a, undo: {run: x.u}}\n"
    cells = family(
        ("top", spec + "  - {name: c, workflow: mid, dependsOn: [a]}"),
        ("mid", spec + "  - {name: c, workflow: low, dependsOn: [a]}"),
        ("low", spec + "  - {name: h, wait: {event: never}, dependsOn: [a]}"),
    )
    cells.start("top", "t")
    cells.ok("t", "a")
    mid = child_of(cells, "t")
    cells.ok(mid, "a")
    low = child_of(cells, mid)
    cells.ok(low, "a")

    cells.submit(instance("top", "t"), CancelInstance("ann"))

    for key in (low, mid, "t"):
        assert [c.cell.key for c in cells.calls if c.direction == "undo"][-1] == key
        assert key == low or cells.instances()[key] == "compensating"
        cells.ok(key, "a")
    assert cells.instances() == dict.fromkeys(("t", mid, low), "cancelled")
    assert {cells.state(instance(w, k)).closing.by for w, k in (("mid", mid), ("low", low))} == {
        "ann"
    }
    cells.assert_replays()


@pytest.mark.req("R92")
def test_a_stop_never_comes_before_the_start_it_is_about():
    """Both go by way of the registry, so their order is kept; a stop of nobody is no trouble."""
    cells = family(UP, KID)
    step = cells.start("up", "u-1")
    assert isinstance(step, Stepped)
    cancelled = cells.step(instance("up", "u-1"), CancelInstance("ann"))

    assert isinstance(cancelled, Stepped)
    (stop,) = cancelled.turn.sends
    assert (stop.workflow, stop.key) == ("$registry", "$registry")
    registry = instance("$registry", "$registry")
    turn = cells.submit(registry, stop.input)
    assert names(turn) == ["ChildStopped"]
    assert cells.instances()[child_of(cells, "u-1")] == "running"  # its attempt is told to stop
    assert cells.state(instance("kid", child_of(cells, "u-1"))).closing is not None
    cells.assert_replays()


@pytest.mark.req("R92", "R211")
def test_a_family_has_an_end():
    """A workflow that starts itself is refused after so many generations, and all of them fail."""
    cells = family(("self", "steps: [{name: again, workflow: self}]"))

    cells.start("self", "s")

    assert len(cells.instances()) == GENERATIONS_MAX + 1
    assert set(cells.instances().values()) == {"failed"}
    error = error_of(cells.state(instance("self", "s")))
    assert error is not None
    assert (error["step"], error["code"]) == ("again", "child.too_deep")
    assert "65 parents" in error["message"]
    cells.assert_replays()
