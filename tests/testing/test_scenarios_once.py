"""Every scenario as it is written, watched line by line; the crashes are in test_scenarios.py."""

import pytest

from pawlflow.testing.runner import run_scenario
from tests.scenarios import PATHS, read

PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_the_scenarios_hold_as_they_are_written(part):
    """What the kernel does for them counts as covered."""
    for path in PATHS[part::PARTS]:
        result = run_scenario(read(path))

        assert not result.failures, (path.stem, [found.message for found in result.failures])
