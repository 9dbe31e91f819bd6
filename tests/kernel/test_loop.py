"""Loops: a checkpoint is kept once under its name, for all attempts there will be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import loop as loops
from pawlflow.kernel.system.loop import Loop
from pawlflow.model.checkpoints import (
    CheckpointKept,
    CloseLoop,
    KeepCheckpoint,
    LoopClosed,
    LoopOpened,
    loop_cell,
)
from pawlflow.model.ids import StepKey
from pawlflow.model.inputs import Tick
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Alone

KEY = StepKey(bytes(range(16)))


def keep(name: str, value: object, attempt: int = 1) -> KeepCheckpoint:
    """A result of a loop called research, of the instance i-1."""
    return KeepCheckpoint("study", "i-1", "research", -1, 1, attempt, name, payload(value))


def kept(cell: Alone) -> dict[str, object]:
    """What the cell holds."""
    state = cell.cell.state
    assert isinstance(state, Loop)
    return {name: each.result and each.result.value for name, each in state.kept.items()}


@pytest.mark.req("R220")
def test_the_first_result_of_a_name_counts():
    """A lost attempt and its successor agree: whoever comes second is refused, and can read."""
    cell = Alone(loop_cell(TENANT, KEY))
    assert isinstance(cell.submit(keep("plan", [1])), Stepped)

    second = cell.submit(keep("plan", [2], attempt=2))

    assert second == Rejected("checkpoint.kept", "plan")
    assert kept(cell) == {"plan": [1]}
    assert cell.turns[0].turn.events == (
        LoopOpened("study", "i-1", "research", -1, 1),
        CheckpointKept("plan", payload([1]), 1),
    )
    cell.assert_replays()


@pytest.mark.req("R220")
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9)), max_size=30))
def test_whatever_the_order_each_name_holds_its_first_result(brought):
    """The cell is a map that only grows; its bytes hold all of it."""
    cell = Alone(loop_cell(TENANT, KEY))
    first: dict[str, int] = {}
    for name, value in brought:
        outcome = cell.submit(keep(name, value))
        assert isinstance(outcome, Rejected) is (name in first)
        first.setdefault(name, value)
        if cell.turns:
            cell.reread()

    assert kept(cell) == first
    if cell.turns:
        cell.assert_replays()


@pytest.mark.req("R220")
def test_a_loop_without_an_instance_keeps_nothing_more():
    """The results stay in their turns; the cell itself becomes small."""
    cell = Alone(loop_cell(TENANT, KEY))
    cell.submit(keep("plan", "x" * 10_000))
    cell.submit(keep("done", "y" * 10_000))

    assert isinstance(cell.submit(CloseLoop()), Stepped)

    assert cell.turns[-1].turn.events == (LoopClosed(),)
    assert kept(cell) == {"plan": None, "done": None}
    assert len(state_bytes(cell.cell.state)) < 200
    assert cell.submit(keep("more", 1)) == Rejected("loop.closed", "research")
    assert cell.submit(CloseLoop()) == Rejected("continue.nothing", cell.id.key)
    cell.assert_replays()


def test_what_never_began_need_not_be_closed():
    """A loop that kept nothing has no cell; other inputs are for other cells."""
    cell = Alone(loop_cell(TENANT, KEY))

    assert cell.submit(CloseLoop()) == Rejected("continue.nothing", cell.id.key)
    misplaced = Rejected("input.misplaced", f"Tick to $loop/{KEY.hex()}")
    assert cell.submit(Tick()) == misplaced


def test_a_loop_has_a_bound(monkeypatch):
    """What one cell must hold is limited."""
    monkeypatch.setattr(loops, "CHECKPOINTS_MAX", 2)
    cell = Alone(loop_cell(TENANT, KEY))
    cell.submit(keep("a", 1))
    cell.submit(keep("b", 2))

    assert cell.submit(keep("c", 3)) == Rejected("checkpoint.too_many", "2 checkpoints of one loop")


@pytest.mark.req("R220", "R46")
def test_the_thousandth_checkpoint_writes_as_much_as_the_first():
    """What a turn writes does not grow with what is kept."""
    cell = Alone(loop_cell(TENANT, KEY))
    sizes = []
    for n in range(1_000):
        outcome = cell.submit(keep(f"round-{n:04}/search", {"n": 1}))
        assert isinstance(outcome, Stepped)
        sizes.append(len(outcome.data))

    assert max(sizes[1:]) - min(sizes[1:]) <= 8  # longer numbers
