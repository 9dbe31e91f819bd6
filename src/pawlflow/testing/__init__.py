"""The test kit: engines in virtual time, scenarios, and what runs them.

What is listed here is for users' tests; it is imported when first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pawlflow.testing.answers import Fail, Hang, Ok, Real
    from pawlflow.testing.lab import Lab
    from pawlflow.testing.lab_blocking import BlockingLab
    from pawlflow.testing.lab_driver import CrashPoint
    from pawlflow.testing.lab_trouble import LabError, StillWaiting
    from pawlflow.testing.replays import assert_replays
    from pawlflow.testing.world import Called

__all__ = [
    "BlockingLab",
    "Called",
    "CrashPoint",
    "Fail",
    "Hang",
    "Lab",
    "LabError",
    "Ok",
    "Real",
    "StillWaiting",
    "assert_replays",
]

_HOMES: Final = {
    "pawlflow.testing.answers": ("Fail", "Hang", "Ok", "Real"),
    "pawlflow.testing.lab": ("Lab",),
    "pawlflow.testing.lab_blocking": ("BlockingLab",),
    "pawlflow.testing.lab_driver": ("CrashPoint",),
    "pawlflow.testing.lab_trouble": ("LabError", "StillWaiting"),
    "pawlflow.testing.replays": ("assert_replays",),
    "pawlflow.testing.world": ("Called",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'pawlflow.testing' has no attribute {name!r}")
