"""Ctrl-C that is noted as well as raised: long work looks at the note between two of its parts."""

import signal
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupts:
    """Was there a Ctrl-C?

    Raised inside a finalizer or a callback of a library, KeyboardInterrupt is printed and lost.
    What runs for minutes asks here too, and so ends after the part that it is in.
    """

    def __init__(self) -> None:
        self.noted = False
        self.before: Any = None

    def __enter__(self) -> Self:
        self.before = signal.signal(signal.SIGINT, self.note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self.before)

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        self.noted = True
        raise KeyboardInterrupt
