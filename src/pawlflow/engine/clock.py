"""Time and chance, where they enter. Everything else is given them as arguments."""

import os
import time
from typing import Final, Protocol

from pawlflow.model.ids import TimeMs


class Clock(Protocol):
    """What the engine asks for time and chance."""

    def now(self) -> TimeMs:
        """Milliseconds since 1970."""
        ...

    def stopwatch(self) -> float:
        """Seconds of a clock that never goes back, for measuring how long stepping took."""
        ...

    def entropy(self) -> bytes:
        """Sixteen bytes that nobody can guess."""
        ...


class SystemClock:
    """The machine's own."""

    def __init__(self) -> None:
        self.pool = b""
        self.fork = FORKS[-1]

    def now(self) -> TimeMs:
        """Milliseconds since 1970."""
        return TimeMs(time.time_ns() // 1_000_000)

    def stopwatch(self) -> float:
        """Seconds of a clock that never goes back."""
        return time.perf_counter()

    def entropy(self) -> bytes:
        """Sixteen bytes that nobody can guess; a forked process never gives its parent's again."""
        pool = self.pool
        if len(pool) < ENTROPY_BYTES or self.fork is not FORKS[-1]:
            pool, self.fork = os.urandom(POOL_BYTES), FORKS[-1]
        self.pool = pool[ENTROPY_BYTES:]
        return pool[:ENTROPY_BYTES]


FORKS: Final = [object()]  # another in every process: cheaper than asking the system who we are
os.register_at_fork(after_in_child=lambda: FORKS.append(object()))
ENTROPY_BYTES: Final = 16
POOL_BYTES: Final = 1_024  # read at once: a call of the system costs as much as a turn's hash


def time_ordered_id(now: TimeMs, entropy: bytes) -> str:
    """A UUID of version 7: ids made later sort later, which keeps the indexes of a store dense."""
    raw = bytearray(now.to_bytes(6, "big") + entropy[:10])
    raw[6] = raw[6] & 0x0F | 0x70
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
