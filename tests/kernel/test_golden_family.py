"""Golden journals of items and children, since rules 2."""

import pytest

from pawlflow.kernel.fans import LOOKS_MAX
from pawlflow.kernel.step import Stepped
from pawlflow.model.inputs import CancelInstance, Receipt, Tick
from pawlflow.projections.journal_file import read_journal
from tests.kernel.golden_runs import check_bytes, check_run
from tests.kernel.support import failure
from tests.kernel.system_kit import Cells, instance, named
from tests.kernel.test_golden_system import journal_of, text_of

PLAYED = [
    "a-condition-about-the-item-skips-it",
    "a-failed-item-fails-its-step",
    "an-escalated-item-may-be-retried-with-other-input",
    "an-item-is-corrected-by-itself",
    "an-item-is-retried-by-itself",
    "items-are-undone-in-reverse-of-their-completion",
    "parallel-undo-of-items-keeps-their-limit",
    "parallel-undo-undoes-independent-steps-together",
]
FAMILY = "a-family-of-workflows"
LONG = "a-list-longer-than-a-turn"


@pytest.mark.req("R223", "R11", "R215")
@pytest.mark.parametrize("name", [*PLAYED, FAMILY, LONG])
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every cell of the file is decided again to the same bytes."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=2)


@pytest.mark.req("R92", "R215")
def test_a_family_still_gives_its_golden_journal(golden):
    """Children of items, one that is retried, one that nobody knows, and a cancel that cascades."""
    cells = a_family()
    data = journal_of(cells)

    golden(f"journals/{FAMILY}.journal", data)
    golden(f"journals/{FAMILY}.txt", text_of(data))
    assert sorted(cells.instances().values()) == ["cancelled"] * 3 + ["completed"] * 2 + ["failed"]
    cells.assert_replays()


def a_family() -> Cells:
    """An order that packs each of its parcels, asks a courier nobody has, and is cancelled."""
    order = (
        "failurePolicy: compensate\nsteps:\n"
        "  - {name: pay, run: card.charge, undo: {run: card.refund}}\n"
        "  - {name: pack, workflow: parcel, forEach: input.items, limit: 2, dependsOn: [pay],"
        " with: {item: '${ item }'}, retryPolicy: {maxRetries: 1}}\n"
        "  - {name: courier, workflow: courier, dependsOn: [pack], onFailure: skip}\n"
        "  - {name: ship, workflow: truck, dependsOn: [courier], timeout: 1h}"
    )
    parcel = "steps: [{name: wrap, run: paper.wrap, with: {item: '${ input.item }'}}]\noutput: done"
    truck = "steps: [{name: road, workflow: road}]"
    road = "steps: [{name: arrive, wait: {event: arrived}}]"
    shapes = [("order", order), ("parcel", parcel), ("truck", truck), ("road", road)]
    cells = Cells(*(named(name, spec) for name, spec in shapes), rules=2)
    for shape in cells.shapes.values():
        cells.publish(shape)
    cells.start("order", "o-1", {"items": ["cup", "pan"]}, by="zoe")
    cells.ok("o-1", "pay", {"id": 1})
    first, second = (call for call in cells.calls if call.step == "wrap")
    cells.submit(first.cell, Receipt(first.key, 1, "failed", failure=failure("transient")))
    cells.ok(second.cell.key, "wrap")
    cells.now = 1_000
    cells.submit(instance("order", "o-1"), Tick())
    cells.ok(cells.calls[-1].cell.key, "wrap")
    cells.now = 2_000
    cells.submit(instance("order", "o-1"), CancelInstance("ann"))
    cells.ok("o-1", "pay")
    return cells


@pytest.mark.req("R211", "R215")
def test_a_long_list_still_gives_its_golden_journal(golden):
    """How many items a turn looks at is part of the rules."""
    cells = Cells(
        named("w", "steps: [{name: a, run: x.a, forEach: input.l, when: item > 1000, limit: 1}]")
    )
    started = cells.start("w", "i-1", {"l": list(range(LOOKS_MAX + 5))})
    cells.ok("i-1", "a")

    golden(f"journals/{LONG}.journal", journal_of(cells))
    assert isinstance(started, Stepped)
    assert [len(turn.turn.events) for _, turn in cells.log] == [4 + LOOKS_MAX, 3, 3]
    assert [cell.key for cell in read_journal(journal_of(cells)).turns] == ["i-1"]
