"""What the tests of the command line share."""

import sys
from pathlib import Path

import pytest

from tests.cli.kit import ORDER, SCENARIO
from tests.cli.live_kit import Place


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a workflow and its scenario."""
    (tmp_path / "order.yaml").write_text(ORDER)
    (tmp_path / "shipped.yaml").write_text(SCENARIO)
    return tmp_path


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A folder with workflows, stubs and steps; it is the current one."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("PAWL_DB", "PAWL_URL", "PAWL_TENANT", "PAWL_LOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)
