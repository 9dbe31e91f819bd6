"""Downtime: what is overdue when an engine comes back, and what gets its time again."""

import pytest

from pawlflow.model.ids import CellId, TimeMs
from tests.engine.kit import Bench

TIMED = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: timed}
spec:
  failurePolicy: compensate
  steps:
    - {name: a, run: do.a, timeout: 4s, undo: {run: undo.a}}
    - {name: b, run: do.b, timeout: 4s, dependsOn: [a]}
    - {name: nap, sleep: 4s}
"""
NAPS = """
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: naps}
spec:
  steps:
    - {name: nap, sleep: 4s}
"""
CELL = CellId("default", "timed", "i-1")
BOUNDED = TIMED.replace("spec:", "spec:\n  timeout: 6s")


def bench_with(text=TIMED):
    made = Bench()
    made.load(text)
    made.start("i-1", text)
    made.engine.drain()
    return made


def taken_over(before, after_ms):
    """Another engine on the same store, so much later."""
    second = Bench(before.store)
    second.clock.time = TimeMs(before.clock.time + after_ms)
    second.core.took_over = dict.fromkeys(second.core.heads, second.clock.time)
    second.engine.drain()
    return second


@pytest.mark.req("R106")
def test_an_attempt_that_went_down_with_its_engine_gets_its_time_again():
    """Offered again, not failed; its whole timeout counts from the takeover, and then it fires."""
    second = taken_over(bench_with(), 60_000)
    begun = second.clock.time
    assert [call.step for call in second.calls()] == ["a"]
    assert second.state(CELL) == "running"

    second.clock.time = TimeMs(begun + 3_999)
    second.engine.drain()
    assert second.state(CELL) == "running"

    second.clock.time = TimeMs(begun + 4_000)
    second.engine.drain()
    assert [stop.reason for stop in second.stops()] == ["timeout"]
    second.settle_stopped()
    assert second.state(CELL) == "failed"


def test_what_needs_no_executor_is_overdue_at_once():
    """A sleep that ended long ago ends; what is overdue behind a held attempt waits with it."""
    first = bench_with()
    first.load(NAPS)
    first.start("n-1", NAPS)
    first.engine.drain()

    second = taken_over(first, 60_000)

    assert second.state(CellId("default", "naps", "n-1")) == "completed"
    assert [turn.cell.key for turn in second.turns] == ["n-1"]


def test_an_attempt_begun_by_this_engine_has_its_own_time():
    """Only attempts from before are held back."""
    second = taken_over(bench_with(), 1_000)
    second.ok(second.calls()[-1])
    second.engine.drain()
    begun = second.clock.time
    assert second.calls()[-1].step == "b"

    second.clock.time = TimeMs(begun + 4_000)
    second.engine.drain()
    second.settle_stopped()

    assert second.state(CELL) == "compensating"


def test_the_workflows_own_timeout_is_not_held_back():
    """It counts everything, downtime too."""
    first = bench_with(BOUNDED)
    second = taken_over(first, 5_000)
    assert second.state(CELL) == "running"

    second.clock.time = TimeMs(first.clock.time + 6_000)
    second.engine.drain()

    stops = [each for action in second.published for each in action.intents]
    assert type(stops[-1]).__name__ == "Stop"


def test_an_undo_gets_its_time_again_too():
    """Compensation that was cut short by a crash goes on, it does not fail."""
    text = TIMED.replace("undo: {run: undo.a}", "undo: {run: undo.a, timeout: 2s}")
    first = bench_with(text)
    first.ok(first.calls()[-1])
    first.engine.drain()
    first.clock.time = TimeMs(first.clock.time + 4_000)
    first.engine.drain()
    first.settle_stopped()
    assert first.calls()[-1].direction == "undo"

    second = taken_over(first, 60_000)
    assert second.state(CELL) == "compensating"
    second.clock.time = TimeMs(second.clock.time + 2_000)
    second.engine.drain()
    second.settle_stopped()

    assert second.state(CELL) == "failed"
