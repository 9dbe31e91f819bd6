"""The same scenarios on real SQLite files: all of them once, some with a crash at every commit."""

import pytest

from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import on_file, run_scenario
from tests.scenarios import PATHS, read

CRASHED = PATHS[::12]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_scenario_holds_on_sqlite(path, tmp_path):
    """What holds in memory holds on disk."""
    result = run_scenario(read(path), host=on_file(tmp_path / "pawl.db"))

    assert not result.failures, [found.message for found in result.failures]


@pytest.mark.req("R119", "R225")
@pytest.mark.parametrize("path", CRASHED, ids=lambda path: path.stem)
def test_a_scenario_on_sqlite_holds_with_a_crash_everywhere(path, tmp_path):
    """A crash before and after each commit, on the file the engine left behind."""
    scenario, host = read(path), on_file(tmp_path / "pawl.db")

    result = crash_everywhere(scenario, run_scenario(scenario, host=host), host=host)

    assert not result.failures, [found.message for found in result.failures]
