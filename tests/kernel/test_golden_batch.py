"""The golden journal of an act on many instances: the batch, its targets, and their answers."""

import pytest

from pawlflow.model.batches import AddTargets, OpenBatch, TellBatch, batch_cell
from pawlflow.testing.journals import verify_file
from tests.golden_kit import FOLDER
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Cells, named
from tests.kernel.test_golden_system import journal_of, text_of

NAME = "many-are-told-as-one"
PARKED = """
timeout: 1h
search: {lot: input.lot, free: input.lot > 2}
steps:
  - {name: key, wait: {event: key.turned, timeout: 30m}}
"""


@pytest.mark.req("R215", "R216", "R11")
def test_a_batch_still_gives_its_golden_journal(golden):
    """Cars that wait, two signals to some of them, and a cancel of the rest."""
    data = journal_of(many_told_as_one())

    golden(f"journals/{NAME}.journal", data)
    golden(f"journals/{NAME}.txt", text_of(data))


@pytest.mark.req("R223", "R226")
def test_its_bytes_verify_alone():
    """Every cell of the file is decided again to the same bytes."""
    verdict = verify_file((FOLDER / "journals" / f"{NAME}.journal").read_bytes())

    assert verdict.difference is None
    assert verdict.instances == 4 + 3  # and two batches, and a topic


def many_told_as_one() -> Cells:
    """Three that wait, one that is gone, one that is over."""
    cells = Cells(named("parked", PARKED))
    for lot in (1, 2, 3, 4):
        cells.start("parked", f"p-{lot}", {"lot": lot})
    cells.now = 1_000
    turned = OpenBatch(
        "signal", "lot < 3", "ann", payload("now"), "", "key.turned", payload({"by": "ann"})
    )
    ask(cells, "b-1", turned, [["p-1", "p-9"], ["p-2"]])
    cells.now = 2_000
    ask(cells, "b-2", OpenBatch("cancel", "lot >= 2", "bob"), [["p-2", "p-3", "p-4"]])
    return cells


def ask(cells: Cells, id_: str, asked: OpenBatch, pages: list[list[str]]) -> None:
    """A batch from its request to its end; the shard would tell what became of each."""
    cell = batch_cell(TENANT, id_)
    cells.submit(cell, asked)
    for at, page in enumerate(pages):
        targets = payload([["parked", key] for key in page])
        before = len(cells.refused)
        cells.submit(cell, AddTargets(targets, complete=at == len(pages) - 1))
    codes = dict(cells.refused[before:])
    for key in [key for page in pages for key in page]:
        cells.submit(cell, TellBatch(key, codes.get(key, "")))
