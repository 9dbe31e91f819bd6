"""Files whose locks are this process's own. A lock goes with the last who has its file open.

A child that was forked has open what its parent has, and would hold the locks of a parent that was
killed for as long as it lives: so it closes them first.
"""

import os
from pathlib import Path
from typing import Final

_HELD: Final[set[int]] = set()


def held(path: Path) -> int:
    """Open a file to lock it; make it if it is missing. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    _HELD.add(fd)
    return fd


def let_go(fd: int) -> None:
    """Close it, and give its lock back."""
    _HELD.discard(fd)
    os.close(fd)


def _leave_to_parent() -> None:
    while _HELD:
        os.close(_HELD.pop())


os.register_at_fork(after_in_child=_leave_to_parent)
