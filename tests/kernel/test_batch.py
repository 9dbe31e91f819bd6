"""Batches: whom they are for is fixed, each gets the act once, and every answer is counted."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import batch as batches
from pawlflow.kernel.system.batch import PORTION, Batch
from pawlflow.model.batches import (
    ActAnswered,
    ActsSent,
    AddTargets,
    BatchClosed,
    OpenBatch,
    TellBatch,
    batch_cell,
)
from pawlflow.model.inputs import (
    CancelInstance,
    PauseInstance,
    ResumeStep,
    Signal,
    Tick,
    UnpauseInstance,
)
from tests.kernel.support import TENANT, Live, payload
from tests.kernel.system_kit import Alone

WHY = payload("enough")


def opened(*keys: str, asked: OpenBatch | None = None, page: int = 500) -> Alone:
    """A batch for these instances, under way."""
    cell = Alone(batch_cell(TENANT, "b-1"))
    assert isinstance(cell.submit(asked or OpenBatch("cancel", "n > 1", "ann", WHY)), Stepped)
    targets = [["order", key] for key in keys]
    for at in range(0, len(targets) or 1, page):
        last = at + page >= len(targets)
        outcome = cell.submit(AddTargets(payload(targets[at : at + page]), last))
        assert isinstance(outcome, Stepped), outcome
    return cell


def state_of(cell: Alone) -> Batch:
    """The state, with its type."""
    assert isinstance(cell.cell.state, Batch)
    return cell.cell.state


def sent(cell: Alone) -> list[str]:
    """The instances that got the act, in order."""
    return [send.key for turn in cell.turns for send in turn.turn.sends]


@pytest.mark.req("R215", "R133")
@pytest.mark.parametrize(
    ("asked", "act"),
    [
        (OpenBatch("cancel", "w", "ann", WHY), CancelInstance("ann", WHY, "b-1")),
        (OpenBatch("pause", "w", "ann"), PauseInstance("ann", None, "b-1")),
        (OpenBatch("unpause", "w", "ann"), UnpauseInstance("ann", None, "b-1")),
        (
            OpenBatch("resume", "w", "ann", WHY),
            ResumeStep("", "ann", "resume", None, None, WHY, "b-1"),
        ),
        (
            OpenBatch("retry", "w", "ann", None, "pay", "", payload({"n": 1})),
            ResumeStep("pay", "ann", "retry", None, payload({"n": 1}), None, "b-1"),
        ),
        (
            OpenBatch("signal", "w", "ann", None, "", "go", payload(2)),
            Signal("go", payload(2), "ann", "b-1"),
        ),
    ],
)
def test_every_target_gets_the_act_with_the_batch_in_it(asked, act):
    """The same input for each, by whoever asked, with the reason and the batch's id."""
    cell = opened("o-1", "o-2", asked=asked)

    sends = cell.turns[-1].turn.sends
    assert [(send.workflow, send.key) for send in sends] == [("order", "o-1"), ("order", "o-2")]
    assert [send.input for send in sends] == [act, act]
    cell.assert_replays()


@pytest.mark.req("R215")
def test_acts_go_out_in_portions():
    """So many are under way at a time; the next go when half of those have answered."""
    keys = [f"o-{n}" for n in range(3 * PORTION)]
    cell = opened(*keys, page=70)
    assert sent(cell) == keys[:PORTION]

    for key in keys[: PORTION // 2 - 1]:
        cell.submit(TellBatch(key))
    assert len(sent(cell)) == PORTION
    cell.submit(TellBatch(keys[PORTION // 2]))
    assert sent(cell) == keys[: PORTION + PORTION // 2]

    under_way = [key for key in sent(cell) if state_of(cell).codes[key] is None]
    assert len(under_way) == PORTION
    cell.reread()
    while pending := [key for key in sent(cell) if state_of(cell).codes[key] is None]:
        cell.submit(TellBatch(pending[0]))
    assert sent(cell) == keys
    assert cell.turns[-1].turn.events[-1] == BatchClosed(len(keys), 0, 0)
    cell.assert_replays()


@pytest.mark.req("R215", "R133")
def test_every_answer_is_counted():
    """Done, refused with a code, or gone; after the last the operation is closed."""
    cell = opened("o-1", "o-2", "o-3")
    cell.submit(TellBatch("o-1"))
    cell.submit(TellBatch("o-2", "instance.closed"))
    assert state_of(cell).closed is None

    cell.submit(TellBatch("o-3", "instance.unknown"))

    assert cell.turns[-1].turn.events == (
        ActAnswered("o-3", "instance.unknown"),
        BatchClosed(1, 1, 1),
    )
    assert state_of(cell).codes == {
        "o-1": "",
        "o-2": "instance.closed",
        "o-3": "instance.unknown",
    }
    assert state_of(cell).closed is not None
    cell.assert_replays()


def test_an_answer_counts_once():
    """A second one changes nothing, and a stranger's neither."""
    cell = opened("o-1", "o-2")
    cell.submit(TellBatch("o-1"))

    assert cell.submit(TellBatch("o-1")) == Rejected("batch.not_awaited", "o-1")
    assert cell.submit(TellBatch("o-1", "x.y")) == Rejected("batch.not_awaited", "o-1")
    assert cell.submit(TellBatch("o-9")) == Rejected("batch.not_awaited", "o-9")


def test_an_act_that_was_put_aside_may_be_done_after_all():
    """A refusal that a redrive turned into a deed is told as one, also after the close."""
    cell = opened("o-1")
    cell.submit(TellBatch("o-1", "cell.quarantined"))
    assert state_of(cell).counts() == (0, 1, 0)

    cell.submit(TellBatch("o-1"))

    assert state_of(cell).counts() == (1, 0, 0)
    assert [type(event) for event in cell.turns[-1].turn.events] == [ActAnswered]
    cell.assert_replays()


def test_targets_are_fixed_by_the_last_page():
    """Nobody is meant twice, and nobody comes later."""
    cell = opened("o-1", "o-2", "o-1", page=2)

    assert sent(cell) == ["o-1", "o-2"]
    more = AddTargets(payload([["order", "o-3"]]), complete=True)
    assert cell.submit(more) == Rejected("batch.not_open", "b-1")
    again = OpenBatch("cancel", "", "eve")
    assert cell.submit(again) == Rejected("batch.exists", "b-1")
    assert cell.submit(Tick()) == Rejected("input.misplaced", "Tick to $batch/b-1")


def test_nothing_goes_out_before_all_targets_are_known():
    """A caller that dies between two pages has asked for nothing yet."""
    cell = Alone(batch_cell(TENANT, "b-1"))
    page = AddTargets(payload([["order", "o-1"]]), complete=False)
    assert cell.submit(page) == Rejected("batch.not_open", "b-1")
    cell.submit(OpenBatch("cancel", "", "ann"))
    cell.submit(page)

    assert sent(cell) == []
    cell.submit(AddTargets(payload([]), complete=True))
    assert sent(cell) == ["o-1"]


def test_a_batch_for_nobody_is_closed_at_once():
    """There is nothing to wait for."""
    cell = opened()

    assert cell.turns[-1].turn.events[-1] == BatchClosed(0, 0, 0)


def test_a_batch_has_a_bound(monkeypatch):
    """What one cell must hold is limited; the way out is a narrower filter, or another batch."""
    monkeypatch.setattr(batches, "TARGETS_MAX", 3)
    cell = opened("o-1", "o-2", "o-3")
    assert isinstance(cell.turns[-1].turn.events[-1], ActsSent)

    other = Alone(batch_cell(TENANT, "b-2"))
    other.submit(OpenBatch("cancel", "", "ann"))
    page = AddTargets(payload([["order", f"o-{n}"] for n in range(4)]), complete=True)
    assert other.submit(page) == Rejected("batch.too_large", "3 instances at a time")


# What a batch asks of an instance

TWO = """
steps:
  - {name: a, run: x.a, onFailure: escalate}
  - {name: b, run: x.b, onFailure: escalate}
  - {name: c, run: x.c}
"""


def stuck() -> Live:
    """An instance with two escalated steps, and one at work."""
    live = Live(TWO)
    live.start()
    live.fail("a", "terminal")
    live.fail("b", "terminal")
    return live


@pytest.mark.req("R133", "R215")
def test_a_resume_without_a_step_is_for_all_that_are_escalated():
    """Each goes on, in the order of the file; what is at work is left alone."""
    live = stuck()

    outcome = live.submit(ResumeStep("", "ann", "retry", batch="b-1"))

    assert isinstance(outcome, Stepped)
    resumed = [event for event in outcome.turn.events if hasattr(event, "how")]
    assert [(event.step, event.how, event.by) for event in resumed] == [
        (0, "retry", "ann"),
        (1, "retry", "ann"),
    ]
    again = live.submit(ResumeStep("", "ann", "retry", batch="b-1"))
    assert again == Rejected("step.not_escalated", "i-1")


def test_a_resume_of_all_is_all_or_nothing():
    """If one of them cannot take the input, none goes on."""
    live = Live(
        "steps:\n"
        "  - {name: a, run: x.a, onFailure: escalate}\n"
        "  - {name: g, approval: {expires: 1m}}"
    )
    live.start()
    live.fail("a", "terminal")
    live.now = 60_000
    live.submit(Tick())

    outcome = live.submit(ResumeStep("", "ann", "retry", params=payload({"n": 1})))

    assert outcome == Rejected("step.takes_no_input", "g")
    assert isinstance(live.submit(ResumeStep("", "ann", "retry")), Stepped)
