"""Orphans: calls that nobody here can carry out. They wait; nothing is failed for it."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from pawlflow.model.ids import Digest
from pawlflow.model.intents import Call


class Watcher(Protocol):
    """Who is told, so that nobody waits unnoticed."""

    def lost(self, call: Call) -> None:
        """Nobody here can carry this out."""
        ...

    def found(self, call: Call) -> None:
        """Somebody may now, or nobody wants it any more."""
        ...


class Orphans:
    """Calls without an executor, by their id."""

    def __init__(self, watcher: Watcher | None = None) -> None:
        self.calls: dict[Digest, Call] = {}
        self.watcher = watcher

    def add(self, call: Call) -> None:
        """A call that waits for somebody; it may be told again."""
        self.calls[call.id] = call
        if self.watcher is not None:
            self.watcher.lost(call)

    def drop(self, call: Call) -> None:
        """A call that waits no longer, if it did."""
        if self.calls.pop(call.id, None) is not None and self.watcher is not None:
            self.watcher.found(call)

    def take(self, ready: Iterable[Call]) -> list[Call]:
        """Calls that somebody can carry out now."""
        taken = list(ready)
        for call in taken:
            self.drop(call)
        return taken

    def values(self) -> Iterator[Call]:
        """All that wait."""
        return iter(list(self.calls.values()))
