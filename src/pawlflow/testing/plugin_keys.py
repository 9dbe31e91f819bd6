"""What the parts of the plugin know of each other."""

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from pawlflow.testing.lab_driver import CrashPoint
    from pawlflow.testing.lab_hosting import HostedLab

LABS: Final[pytest.StashKey["list[HostedLab]"]] = pytest.StashKey()  # of an item, in order
POINT: Final[pytest.StashKey["tuple[int, CrashPoint]"]] = pytest.StashKey()  # which of them crashes
CRASHES: Final = "pawl_crashes"  # a property of reports


def crashes_wanted(config: pytest.Config) -> bool:
    """Is every test to be run with crashes?"""
    wanted = config.getoption("pawl_crash_everywhere") or config.getoption("pawl_crash_all")
    return bool(wanted)
