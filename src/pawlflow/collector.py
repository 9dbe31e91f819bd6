"""Python's collector of cycles, in a process that serves: it has little to find there.

A busy engine makes objects by the thousand, nearly all of which go when they are last used. Looking
at them every 700 took a twelfth of its CPU; what an engine has once it is up needs no looking at.
"""

import gc
from typing import Final

NEW_MAX: Final = 50_000  # objects before the young ones are looked at; some ten megabytes
ROUNDS: Final = (20, 50)  # of that before the older, and of those before all


def collect_seldom() -> None:
    """Look for cycles seldom from now on, and not among what is there already."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_MAX, *ROUNDS)
