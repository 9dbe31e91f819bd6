"""What the engine does, told to the log: commits, cells read, effects, deadlines.

Around the store and the outside of an engine, and only if somebody listens: the core logs nothing,
and pays nothing. Names, numbers and codes are told, never a payload.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final, cast

from pawlflow.driving import Appending, Sends
from pawlflow.engine.actions import Committed, Notify, Publish, Stopped
from pawlflow.engine.clock import Clock
from pawlflow.engine.drivers import Outside
from pawlflow.model.ids import NO_ITEM, CellId, Digest, StepKey
from pawlflow.model.inputs import Receipt, Tick
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.store.port import Address, Batch, CellImage, Head, Mail, Ref, Store, StoreError

log = logging.getLogger("pawl.engine")
STEPS_MAX: Final = 100_000  # calls whose names are remembered until their receipts come


def listened_to() -> bool:
    """Does anybody want to know?"""
    return log.isEnabledFor(logging.INFO)


def tell(level: int, event: str, **fields: Any) -> None:
    """An event with its fields, as a line and by name."""
    if log.isEnabledFor(level):
        said = "".join(f" {name}={value}" for name, value in fields.items())
        log.log(level, "%s%s", event, said, extra={"pawl": {"event": event, **fields}})


def told_store(store: Store, clock: Clock) -> Store:
    """A store whose use is told."""
    return cast("Store", ToldStore(store, clock))


class ToldStore:
    """A store, and what the engine asks of it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store = store
        self.clock = clock

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def append(self, batch: Batch) -> None:
        """A commit: how much, and how long it took."""
        with self.flushing(batch, self.clock.stopwatch()):
            self.store.append(batch)

    def append_begin(self, batch: Batch, noticed: Callable[[], object]) -> "ToldAppending":
        """The same, where nobody waits for it."""
        began = self.clock.stopwatch()
        with self.flushing(batch, began, over=False):
            sent = cast("Sends", self.store).append_begin(batch, noticed)
        return ToldAppending(sent, partial(self.flushing, batch, began))

    @contextmanager
    def flushing(self, batch: Batch, began: float, *, over: bool = True) -> Iterator[None]:
        """A part of a commit, told if it fails, and if it is over."""
        entries = [entry for frame in batch.frames for entry in frame.entries]
        size = sum(len(entry.data) + len(entry.beside) for entry in entries)
        counts = {"frames": len(batch.frames), "turns": len(entries), "bytes": size}
        try:
            yield
        except StoreError as error:
            took = self.took_ms(began)
            tell(logging.WARNING, "flush.failed", **counts, code=error.code, took_ms=took)
            raise
        if over:
            mailed = {"mail": len(batch.mail), "taken": len(batch.taken)}
            tell(logging.INFO, "shard.flushed", **counts, **mailed, took_ms=self.took_ms(began))

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """Cells that are read, and how many turns each needed."""
        began = self.clock.stopwatch()
        found = self.store.load(cells)
        turns = sum(len(image.entries) for image in found.values())
        counts = {"asked": len(cells), "found": len(found), "turns": turns}
        tell(logging.INFO, "cells.read", **counts, took_ms=self.took_ms(began))
        return found

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """Definitions that are read."""
        found = self.store.definitions(hashes)
        if hashes:
            tell(logging.DEBUG, "definitions.read", asked=len(hashes), found=len(found))
        return found

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """A look into the mailbox."""
        found = self.store.mail(shards, after, limit)
        tell(logging.DEBUG, "mail.read", after=after, found=len(found))
        return found

    def due(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Head]:
        """A look at the next deadlines."""
        found = self.store.due(shards, after, limit)
        tell(logging.DEBUG, "deadlines.read", found=len(found))
        return found

    def in_flight(self, shards: Sequence[int], after: Ref, limit: int) -> list[Head]:
        """A look at what was in flight when the last engine ended."""
        found = self.store.in_flight(shards, after, limit)
        tell(logging.DEBUG, "in_flight.read", found=len(found))
        return found

    def took_ms(self, began: float) -> float:
        """Milliseconds since."""
        return round((self.clock.stopwatch() - began) * 1000, 2)


class ToldAppending:
    """A commit under way, told when it is over."""

    def __init__(
        self, sent: Appending, flushing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.sent = sent
        self.flushing = flushing

    def fileno(self) -> int:
        """What becomes readable when there is news."""
        return self.sent.fileno()

    def answered(self) -> bool:
        """Is the outcome known?"""
        return self.sent.answered()

    def end(self) -> None:
        """Wait for the outcome."""
        with self.flushing():
            self.sent.end()


class ToldOutside:
    """Who is told what became durable; and the log, of the same."""

    def __init__(self, outside: Outside) -> None:
        self.outside = outside
        self.steps: dict[StepKey, str] = {}  # of calls that were let out: receipts name the key

    def publish(self, action: Publish) -> None:
        """Effects that are let out."""
        for intent in action.intents:
            if isinstance(intent, Call) and len(self.steps) < STEPS_MAX:
                self.steps[intent.key] = step_told(intent)
            tell_intent(intent, again=action.again)
        self.outside.publish(action)

    def notify(self, action: Notify) -> None:
        """Turns that are durable."""
        for turn in action.turns:
            incoming = turn.stepped.turn.input
            step = self.steps.pop(incoming.key, "") if isinstance(incoming, Receipt) else ""
            tell_turn(turn, step)
        self.outside.notify(action)

    def stopped(self, action: Stopped) -> None:
        """The engine does nothing more."""
        tell(logging.WARNING, "engine.stopped", shards=len(action.shards), code=action.code)
        self.outside.stopped(action)


def tell_intent(intent: Intent, *, again: bool) -> None:
    """A call that begins, or one that is no longer wanted."""
    if isinstance(intent, Stop):
        tell(logging.INFO, "effect.stopped", **call_told(intent.call), reason=intent.reason)
    else:
        about = call_told(intent) | {"effect": intent.target}
        tell(logging.INFO, "effect.offered_again" if again else "effect.begun", **about)


def call_told(call: Call) -> dict[str, Any]:
    """Which attempt of which step."""
    return {**cell_told(call.cell), "step": step_told(call), "attempt": call.attempt}


def step_told(call: Call) -> str:
    """A step, an item of one, or the undo of either, by its name."""
    undo = "undo/" if call.direction == "undo" else ""
    return f"{undo}{call.step}" + ("" if call.item == NO_ITEM else f"[{call.item}]")


def cell_told(cell: CellId) -> dict[str, Any]:
    """Whose."""
    whose = {} if cell.tenant == "default" else {"tenant": cell.tenant}
    return {"instance": cell.key, **whose}


def tell_turn(committed: Committed, step: str) -> None:
    """What came in, and what became of it: by names and codes alone."""
    turn, head = committed.stepped.turn, committed.head
    about = cell_told(committed.cell)
    match turn.input:
        case Receipt():
            failure = turn.input.failure
            code = {} if failure is None else {"class": failure.kind, "code": failure.code}
            named = {"step": step} if step else {}
            outcome = {"attempt": turn.input.attempt, "outcome": turn.input.outcome}
            tell(logging.INFO, "effect.settled", **about, **named, **outcome, **code)
        case Tick():
            tell(logging.INFO, "deadline.passed", **about)
        case _:
            tell(logging.INFO, "input.taken", **about, input=type(turn.input).__name__)
    events = ",".join(type(event).__name__ for event in turn.events)
    tell(logging.DEBUG, "turn.committed", **about, turn=head.turn, events=events)
    if head.closed_at is not None:
        tell(logging.INFO, "instance.closed", **about, state=head.state, rollback=head.rollback)
