"""Users' loops under the type checkers: what is right passes, what is wrong is told."""

import shutil
from pathlib import Path

import pytest

from tests.flows.test_typing import CHECKERS, MARK

SAMPLE = Path(__file__).parent / "samples" / "loops.py"


@pytest.mark.req("R220", "R229")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_loops_are_checked(checker, tmp_path):
    """Exactly the lines that are marked are complained about."""
    if checker == "pyright" and shutil.which("node") is None:
        pytest.skip("pyright needs node")
    lines = enumerate(map(MARK.search, SAMPLE.read_text().splitlines()), 1)
    marked = {line for line, mark in lines if mark and mark[1] in (None, checker)}

    found, said = CHECKERS[checker](SAMPLE, tmp_path)

    assert found == marked, said
