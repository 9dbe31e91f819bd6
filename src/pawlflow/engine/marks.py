"""Reach marks: places that the fault simulator must come by. In production they cost a call."""

from collections import Counter

_seen: Counter[str] | None = None


def reached(mark: str) -> None:
    """Say that this place was reached."""
    if _seen is not None:
        _seen[mark] += 1


def listen(seen: Counter[str] | None) -> None:
    """Count marks from now on, or no longer. For tests."""
    global _seen  # noqa: PLW0603  # one counter per process, set by tests alone
    _seen = seen
