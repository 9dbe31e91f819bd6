"""The golden journal of a loop: its checkpoints, a second writer, and the close."""

import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.model.checkpoints import CloseLoop, KeepCheckpoint, loop_cell
from pawlflow.model.inputs import Receipt
from pawlflow.testing.journals import verify_file
from tests.golden_kit import FOLDER
from tests.kernel.support import TENANT, payload
from tests.kernel.system_kit import Cells, instance, named
from tests.kernel.test_golden_system import journal_of, text_of

NAME = "a-loop-keeps-what-it-found"
STUDY = "timeout: 1h\nsteps:\n  - {name: research, run: research, timeout: 10m}"


@pytest.mark.req("R220", "R11")
def test_a_loop_still_gives_its_golden_journal(golden):
    """An instance, the cell of its loop, and the result at the end."""
    data = journal_of(a_loop())

    golden(f"journals/{NAME}.journal", data)
    golden(f"journals/{NAME}.txt", text_of(data))


@pytest.mark.req("R223", "R226")
def test_its_bytes_verify_alone():
    """Every cell of the file is decided again to the same bytes."""
    verdict = verify_file((FOLDER / "journals" / f"{NAME}.journal").read_bytes())

    assert verdict.difference is None
    assert verdict.instances == 2  # the loop's cell, too


def a_loop() -> Cells:
    """Three checkpoints, of which one is brought twice."""
    cells = Cells(named("study", STUDY), rules=2)
    cells.start("study", "s-1", {"topic": "tides"})
    call = cells.calls[-1]
    cell = loop_cell(TENANT, call.key)

    def keep(name: str, value: object, attempt: int = 1) -> object:
        place = (call.step, call.item, call.round, attempt)
        return cells.submit(cell, KeepCheckpoint("study", "s-1", *place, name, payload(value)))

    cells.now = 1_000
    keep("plan", ["moon", "wind"])
    cells.now = 2_000
    keep("round-1/search", {"found": 3})
    assert keep("round-1/search", {"found": 4}, 2) == Rejected("checkpoint.kept", "round-1/search")
    cells.now = 3_000
    keep("round-1/judge", None)
    done = Receipt(call.key, call.attempt, "ok", payload({"found": 3}))
    cells.submit(instance("study", "s-1"), done)
    cells.submit(cell, CloseLoop())
    return cells
