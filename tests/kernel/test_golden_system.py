"""Golden journals since rules 2: instances that send, and the system cells they send to."""

import pytest

from pawlflow.definition.canonical import definition_bytes
from pawlflow.model.beside import Beside
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.inputs import CancelInstance, Tick
from pawlflow.model.journal import payloads_of, shard_genesis
from pawlflow.model.system import AwaitEvent, PublishDefinition, is_system, topic_cell
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    FrameRecord,
    TurnEntry,
    read_journal,
    seal,
    write_journal,
)
from pawlflow.testing.journals import tell_file
from tests.golden_kit import FOLDER
from tests.kernel.golden_runs import check_bytes, check_run
from tests.kernel.support import TENANT
from tests.kernel.system_kit import Cells, instance, named

PLAYED = [
    "a-review-that-is-asked-again-is-claimed-anew",
    "a-broadcast-reaches-the-wait-that-asks-for-its-value",
    "a-run-takes-its-slot-before-it-starts",
    "a-failure-costs-what-it-says",
    "a-soft-limit-only-warns",
    "a-success-settles-what-it-truly-cost",
    "an-emit-step-publishes-its-data",
    "every-unit-of-account-has-its-own-limit",
]
TOGETHER = "slots-topics-and-a-registry"
MANY = "an-event-for-three-hundred"
RULES_2 = [*PLAYED, TOGETHER, MANY]


@pytest.mark.req("R223", "R11", "R226")
@pytest.mark.parametrize("name", RULES_2)
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Every cell of the file, instance or system cell, is decided again to the same bytes."""
    check_bytes(name)


@pytest.mark.parametrize("name", PLAYED)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=2)


@pytest.mark.req("R45", "R86", "R67", "R225")
def test_cells_still_give_their_golden_journal(golden):
    """Two that share a slot, orders that wait for their payment, and what an event starts."""
    data = journal_of(slots_topics_and_a_registry())

    golden(f"journals/{TOGETHER}.journal", data)
    golden(f"journals/{TOGETHER}.txt", text_of(data))


@pytest.mark.req("R45")
def test_a_large_audience_still_gives_its_golden_journal(golden):
    """How many are told in one turn is part of the rules."""
    cells = Cells()
    for n in range(300):
        cells.submit(topic_cell(TENANT, "e"), AwaitEvent("w", f"i{n}", "s"))
    cells.emit("e", {"n": 1})

    golden(f"journals/{MANY}.journal", journal_of(cells))
    pages = [stepped.turn.events[-1].count for cell, stepped in cells.log[300:302]]
    assert pages == [256, 44]


def slots_topics_and_a_registry() -> Cells:
    """A tenant with a bit of everything."""
    deploy = "timeout: 1h\nconcurrency: {key: input.repo}\nsteps: [{name: a, run: x.a}]"
    invoice = "trigger: {event: EVENT, condition: event.n > 1}\nsteps: [{name: b, sleep: 1s}]"
    order = (
        "timeout: 1h\nsteps:\n"
        "  - {name: paid, wait: {event: paid, match: event.order == instance.id, timeout: 1m}}\n"
        "  - {name: tell, emit: shipped, dependsOn: [paid], with: {n: '${ steps.paid.n }'}}"
    )
    cells = Cells(named("deploy", deploy), named("order", order))
    cells.publish(named("invoice", invoice.replace("EVENT", "shipped")))
    for key in ("d-1", "d-2", "d-3"):
        cells.start("deploy", key, {"repo": "r1"})
    for key in ("o-1", "o-2", "o-3"):
        cells.start("order", key)
    cells.now = 1_000
    cells.submit(instance("deploy", "d-2"), CancelInstance("ann"))
    cells.ok("d-1", "a")
    cells.emit("paid", {"order": "o-1", "n": 1})
    cells.emit("paid", {"order": "o-2", "n": 2})
    cells.now = 60_000
    cells.submit(instance("order", "o-3"), Tick())
    cells.publish(named("invoice", invoice.replace("EVENT", "sent")))
    cells.emit("shipped", {"n": 3})
    return cells


def journal_of(cells: Cells) -> bytes:
    """All turns of a tenant as a file: a frame for every eight."""
    shapes = [definition_bytes(shape) for shape in cells.shapes.values()]
    inputs = [stepped.turn.input for _, stepped in cells.log]
    published = [each.data.value for each in inputs if isinstance(each, PublishDefinition)]
    records: list[DefinitionRecord | FrameRecord] = [
        DefinitionRecord(data) for data in dict.fromkeys([*shapes, *published])
    ]
    head, written = shard_genesis(0), set()
    entries: list[tuple[TurnEntry, Digest]] = []
    for cell, stepped in cells.log:
        beside = {p.addr: Beside(p.addr, p.data or b"") for p in payloads_of(stepped.turn)}
        fresh = tuple(kept for addr, kept in beside.items() if addr not in written)
        written |= beside.keys()
        entries.append((TurnEntry(cell, stepped.data, fresh), stepped.hash))
    for first in range(0, len(entries), 8):
        frame = seal(0, head, first + 1, entries[first : first + 8])
        head = frame.hash
        records.append(frame)
    return write_journal(records)


def text_of(data: bytes) -> bytes:
    """A journal in words, with what was sent."""
    return ("\n".join(tell_file(data)) + "\n").encode()


def test_cells_of_a_file_are_told_apart():
    """An instance and a system cell may lie in one frame; each has a chain of its own."""
    journal = read_journal((FOLDER / "journals" / f"{TOGETHER}.journal").read_bytes())
    kinds = {cell.workflow for cell in journal.turns if is_system(cell.workflow)}

    assert kinds == {"$slots", "$topic", "$registry"}
    assert CellId(TENANT, "order", "o-1") in journal.turns
