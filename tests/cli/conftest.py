"""What the tests of the command line share."""

from pathlib import Path

import pytest

from tests.cli.kit import ORDER, SCENARIO


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with a workflow and its scenario."""
    (tmp_path / "order.yaml").write_text(ORDER)
    (tmp_path / "shipped.yaml").write_text(SCENARIO)
    return tmp_path
