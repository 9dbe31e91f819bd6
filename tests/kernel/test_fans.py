"""forEach: one step, many items."""

import pytest

from pawlflow.kernel.fans import LOOKS_MAX
from pawlflow.kernel.snapshot import state_bytes, state_from_bytes
from pawlflow.kernel.step import Cell
from pawlflow.model.events import StepReady, StepSkipped
from pawlflow.model.inputs import (
    CancelInstance,
    PauseInstance,
    UnpauseInstance,
)
from pawlflow.model.system import Continue
from pawlflow.projections.units import undo_of
from tests.kernel.support import Live, names, refused, sent

FAN = "steps:\n  - {name: a, run: x.a, forEach: input.l, with: {v: '${ item }'}%s}"


def fanned(more: str = "", items: object = (1, 2, 3), spec: str = "") -> Live:
    """A started instance with one step over some items."""
    live = Live(spec + FAN % (f", {more}" if more else ""))
    live.start({"l": list(items) if isinstance(items, tuple) else items})
    return live


def statuses(live: Live, *steps: str) -> list[str]:
    return [live.status(step) for step in steps]


# Order and limits


@pytest.mark.req("R84", "R215")
def test_as_many_items_run_as_the_limit_says_and_they_start_in_order():
    """One that ends lets the next begin, whichever it was."""
    live = fanned("limit: 2", items=tuple("pqrs"))
    assert live.started == ["a[0]#1", "a[1]#1"]

    live.ok("a[1]")
    live.ok("a[2]")
    live.ok("a[0]")

    assert live.started == ["a[0]#1", "a[1]#1", "a[2]#1", "a[3]#1"]
    assert [call.params.value for call in live.calls] == [{"v": item} for item in "pqrs"]
    assert statuses(live, "a", "a[0]", "a[3]") == ["running", "succeeded", "running"]


@pytest.mark.req("R84", "R215")
def test_what_is_ready_together_starts_by_file_then_by_item():
    """Items of an earlier step go before a later step."""
    live = Live(
        "maxParallel: 1\nsteps:\n"
        "  - {name: a, run: x.a}\n"
        "  - {name: b, run: x.b, forEach: input.l, limit: 2, dependsOn: [a]}\n"
        "  - {name: c, run: x.c, dependsOn: [a]}"
    )
    live.start({"l": [1, 2, 3]})

    for name in ("a", "b[0]", "b[1]", "c", "b[2]"):
        assert live.started[-1] == f"{name}#1"
        live.ok(name)

    assert live.state == "completed"


@pytest.mark.req("R95", "R215")
def test_max_parallel_counts_attempts_of_items_and_steps_together():
    """Items that wait for a place are ready, and start as places become free."""
    live = Live(
        "maxParallel: 3\nsteps:\n  - {name: a, run: x.a}\n  - {name: b, run: x.b, forEach: input.l}"
    )
    live.start({"l": [1, 2, 3, 4]})

    assert live.started == ["a#1", "b[0]#1", "b[1]#1"]
    assert live.status("b[3]") == "ready"
    live.fail("a", "terminal")
    assert (live.status("b[2]"), live.status("b")) == ("cancelled", "cancelled")


def test_a_retry_gives_its_place_to_the_next_item_in_line():
    """A back-off counts against `limit`, not against maxParallel."""
    live = Live("maxParallel: 1\n" + FAN % ", limit: 2, retryPolicy: {maxRetries: 1}")
    live.start({"l": [1, 2, 3]})

    live.fail("a[0]", "transient")

    assert live.started == ["a[0]#1", "a[1]#1"]
    live.ok("a[1]")
    assert live.started[-1] == "a[2]#1"
    live.tick(1_000)
    live.ok("a[2]")
    assert live.started[-1] == "a[0]#2"


@pytest.mark.req("R95", "R215")
def test_an_empty_list_succeeds_with_an_empty_list():
    """Nothing runs, and dependents go on."""
    live = Live(
        "steps:\n  - {name: a, run: x.a, forEach: input.l}\n"
        "  - {name: b, run: x.b, dependsOn: [{step: a, require: success}],"
        " with: {all: '${ steps.a }', n: '${ size(steps.a) }'}}"
    )
    turn = live.start({"l": []})

    assert names(turn)[3:6] == ["StepFanned", "StepSucceeded", "StepReady"]
    assert live.call("b").params.value == {"all": [], "n": 0}
    assert live.status("a") == "succeeded"


@pytest.mark.req("R95", "R215")
def test_a_list_may_be_the_result_of_an_earlier_step():
    """And its own results are a list again, in the order of the items."""
    live = Live(
        "steps:\n  - {name: a, run: x.a}\n"
        "  - {name: b, run: x.b, dependsOn: [a], forEach: '${ steps.a.found }',"
        " with: {id: '${ item.id }', at: '${ index }'}}\n"
        "  - {name: c, run: x.c, dependsOn: [b], with: {all: '${ steps.b }',"
        " last: '${ steps.b[1].url }'}}"
    )
    live.start()
    live.ok("a", {"found": [{"id": "p"}, {"id": "q"}]})

    live.ok("b[1]", {"url": "/q"})
    live.ok("b[0]", {"url": "/p"})

    assert [call.params.value for call in live.calls[1:3]] == [
        {"id": "p", "at": 0},
        {"id": "q", "at": 1},
    ]
    assert live.call("c").params.value == {"all": [{"url": "/p"}, {"url": "/q"}], "last": "/q"}


@pytest.mark.req("R97", "R215")
def test_a_condition_about_the_item_skips_each_by_itself():
    """A skipped item leaves null, publishes no Ready, and makes room."""
    live = fanned("limit: 1, when: item % 2 == 1", items=(2, 1, 4, 3))

    assert live.started == ["a[1]#1"]
    assert live.published().count("WorkflowStepReady") == 1
    live.ok("a[1]", "one")
    live.ok("a[3]", "three")
    assert statuses(live, "a", "a[0]", "a[2]") == ["succeeded", "skipped", "skipped"]
    assert live.cell.state.result_of(0) == [None, "one", None, "three"]


def test_a_condition_that_does_not_name_the_item_decides_about_the_step():
    """It is asked once, and the list is not even looked at."""
    live = fanned("when: input.l == 5", items="no list")

    assert statuses(live, "a") == ["skipped"]
    assert live.state == "completed"


# Many


@pytest.mark.req("R211", "R215")
def test_a_turn_looks_at_so_many_items_and_the_next_one_goes_on():
    """However many are skipped, or may run at once, a turn stays short enough to be kept."""
    live = fanned("when: item < 0", items=tuple(range(2 * LOOKS_MAX + 5)))

    for count in (2 * LOOKS_MAX, 2 * LOOKS_MAX + 5):
        ((key, going_on),) = sent(live.turns[-1])
        assert (key, going_on) == ("i-1", Continue())
        live = live.reread()
        live.submit(going_on)
        assert live.cell.state.fans[0].cursor == count

    assert live.state == "completed"
    skipped = [
        [event.item for event in turn.turn.events if isinstance(event, StepSkipped)]
        for turn in live.turns
    ]
    assert list(map(len, skipped)) == [LOOKS_MAX, LOOKS_MAX, 5]
    assert refused(live.submit(Continue())) == "instance.closed"


def test_going_on_where_nothing_is_left_is_refused():
    """It changes nothing: there is no room, or nothing to look at, or the instance stops."""
    live = fanned("limit: 2")
    assert refused(live.submit(Continue())) == "continue.nothing"
    live.submit(CancelInstance("ann"))
    assert refused(live.submit(Continue())) == "continue.nothing"


def test_a_wide_limit_starts_all_items_over_several_turns():
    """In order, and each once."""
    live = fanned("limit: 100000", items=tuple(range(LOOKS_MAX + 1)))

    ready = [event for event in live.turns[0].turn.events if isinstance(event, StepReady)]
    assert len(ready) == LOOKS_MAX
    live.submit(Continue())

    assert [call.item for call in live.calls] == list(range(LOOKS_MAX + 1))
    assert refused(live.submit(Continue())) == "continue.nothing"


# Pause, cancel, the workflow's timeout


def test_a_pause_holds_the_next_items_and_lets_running_ones_finish():
    """What has room becomes ready, and starts with unpause."""
    live = fanned("limit: 2", items=tuple("pqrs"))
    live.submit(PauseInstance("ann"))
    live.ok("a[0]")
    live.ok("a[1]")

    assert live.started == ["a[0]#1", "a[1]#1"]
    assert statuses(live, "a[2]", "a[3]") == ["ready", "ready"]
    live.submit(UnpauseInstance("ann"))
    assert live.started[2:] == ["a[2]#1", "a[3]#1"]


@pytest.mark.req("R90", "R98")
def test_a_cancel_stops_running_items_and_starts_no_other():
    """Items never looked at are cancelled with the close."""
    live = fanned("limit: 2", items=tuple("pqrs"))
    live.ok("a[0]")

    live.submit(CancelInstance("ann"))
    live.settle("a[1]")
    assert live.state == "running"
    live.settle("a[2]")

    assert live.state == "cancelled"
    assert (
        statuses(live, "a", "a[0]", "a[1]", "a[3]")
        == ["cancelled", "succeeded"] + ["cancelled"] * 2
    )
    assert [stop.call.item for stop in live.stops] == [1, 2]


@pytest.mark.req("R107", "R113", "R117")
def test_the_workflows_timeout_undoes_what_items_did():
    """Running items are stopped; an item that succeeds after all is undone with the others."""
    live = Live(
        "timeout: 1m\nfailurePolicy: compensate\n"
        + FAN % ", limit: 2, undo: {run: x.u, with: {r: '${ result }'}}"
    )
    live.start({"l": ["p", "q", "r"]})
    live.ok("a[1]", "Q")

    live.tick(60_000)
    live.ok("a[2]", "R")
    live.settle("a[0]")

    assert live.call("undo/a[2]").params.value == {"r": "R"}
    live.ok("undo/a[2]")
    live.ok("undo/a[1]")
    assert (live.state, live.cell.state.rollback) == ("failed", "full")
    state = live.cell.state
    assert [undo_of(state, state.at(0, item)) for item in range(3)] == ["none", "done", "done"]


def test_a_snapshot_holds_items_at_every_stage():
    """Done ones in little room, the others whole; what follows from them is the same."""
    live = fanned("limit: 2, retryPolicy: {maxRetries: 1}", items=tuple("pqrst"))
    live.ok("a[0]", {"n": 0})
    live.fail("a[1]", "transient")
    live.ok("a[2]", {"n": 2})

    data = state_bytes(live.cell.state)
    live.cell = Cell(state_from_bytes(data, live.id, live.plan, live.payloads), live.cell.head)

    assert state_bytes(live.cell.state) == data
    assert sorted(live.cell.state.done) == [1, 3]
    for name in ("a[3]", "a[4]"):
        live.ok(name)
    live.tick(1_000)
    live.ok("a[1]", {"n": 1})
    assert live.cell.state.result_of(0) == [{"n": 0}, {"n": 1}, {"n": 2}, None, None]
