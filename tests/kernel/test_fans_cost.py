"""What an item costs does not depend on how many there are."""

import gc
import sys
import tracemalloc
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pawlflow.kernel.step import Stepped, step
from pawlflow.model.ids import TimeMs
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.journal import Stamps
from tests.kernel.support import Live, payload

SPEC = """
timeout: 1h
steps:
  - {name: a, run: x.a, forEach: input.l, with: {v: '${ item }'}, timeout: 10m, limit: 20}
"""
ITEM_BYTES_MAX = 600  # of an item that is done, with its result: a hundred thousand take 60 MB
UNDONE_BYTES_MAX = 850  # of one that may have to be undone: what it was asked is kept too
UNDO = ", undo: {run: x.u}"


class Run:
    """Many items, one receipt after the other; nothing is kept but the state."""

    def __init__(self, items: int, spec: str = SPEC) -> None:
        live = Live(spec)
        live.start({"l": list(range(items))})
        self.cell = live.cell
        self.calls = deque((call.key, call.item) for call in live.calls)
        self.turns = 1

    def settle(self, count: int) -> None:
        """The executors of so many items answer."""
        for _ in range(count):
            key, item = self.calls.popleft()
            self.turns += 1
            receipt = Receipt(key, 1, "ok", payload({"n": item}))
            outcome = step(self.cell, receipt, Stamps(TimeMs(self.turns), self.turns))
            assert isinstance(outcome, Stepped)
            started = [intent for intent in outcome.intents if isinstance(intent, Call)]
            self.calls += [(call.key, call.item) for call in started]


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """How many functions were called, of Python and of C."""
    count = [0]

    def note(_frame: Any, event: str, _arg: Any) -> None:
        count[0] += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(None)


@pytest.mark.req("R211", "R215")
def test_an_item_costs_as_much_among_many_as_among_few():
    """Counted in function calls, over a hundred turns in the middle of each run.

    Numbers from 1,024 on cost a call to write, so the smaller run is not very small.
    """
    spent = []
    for items in (2_400, 24_000):
        run = Run(items)
        run.settle(items // 2)
        with counted_calls() as count:
            run.settle(100)
        spent.append(count[0])

    few, many = spent
    assert many < 1.1 * few


@pytest.mark.req("R211", "R215")
@pytest.mark.parametrize(("undo", "most"), [("", ITEM_BYTES_MAX), (UNDO, UNDONE_BYTES_MAX)])
def test_an_item_that_is_done_takes_little_room(undo, most):
    """Its result, when it was, and the key that a late answer would come with."""
    run = Run(3_000, SPEC.replace("limit: 20", f"limit: 20{undo}"))
    run.settle(500)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]

    run.settle(2_000)

    gc.collect()
    per_item = (tracemalloc.get_traced_memory()[0] - before) / 2_000
    tracemalloc.stop()
    assert per_item < most


def test_deadlines_that_mean_nothing_any_more_are_forgotten():
    """Each item has had a timeout; those of the settled ones do not pile up."""
    run = Run(3_000)

    run.settle(2_900)

    assert len(run.cell.state.deadlines) < 200
