"""Planted bugs: what the simulator must find. The test of the tests.

Each is put into the running code from outside, for as long as a `with` lasts; production code has
no switch for any of them. If one is no longer found, a monitor has gone blind.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import msgspec

from pawlflow.testing.sim.patching import Change, patched
from pawlflow.testing.sim.planted_again import BUGS_AGAIN
from pawlflow.testing.sim.planted_engine import ENGINE_BUGS
from pawlflow.testing.sim.planted_kernel import KERNEL_BUGS
from pawlflow.testing.sim.planted_language import LANGUAGE_BUGS
from pawlflow.testing.sim.planted_policies import POLICY_BUGS
from pawlflow.testing.sim.planted_store import STORE_BUGS


class Planted(msgspec.Struct, frozen=True):
    """A bug: what it is, how it is put in, and the profile in which it is looked for."""

    name: str
    words: str
    changes: Callable[[], list[Change]]
    profile: str = "whole"


EVERY: Final = (
    *(*ENGINE_BUGS, *KERNEL_BUGS, *STORE_BUGS),
    *(*LANGUAGE_BUGS, *POLICY_BUGS, *BUGS_AGAIN),
)
BUGS: Final = {made.name: made for made in (Planted(*each) for each in EVERY)}


def planted(name: str | None) -> AbstractContextManager[None]:
    """The code with this bug in it."""
    return patched([] if name is None else BUGS[name].changes())
