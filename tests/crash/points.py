"""Where a process can be killed: the labels of the flush path, hung in outside.

Nothing in the engine knows of this. Each label wraps a function, or listens to the file system, and
at its nth passage the process is gone: a real SIGKILL, with no chance to tidy up.
"""

import os
import signal
from collections.abc import Callable
from typing import Any

import apsw
import msgspec

from pawlflow.driving import InlineDriver, ThreadDriver
from pawlflow.embedded import Pawl
from pawlflow.engine.actions import Publish
from pawlflow.engine.drivers import Engine
from pawlflow.engine.shard import Shards
from pawlflow.store import sqlite
from tests.crash.disk import Disk


class Fuse:
    """Counts passages; at the last one the process is killed."""

    def __init__(self, passages: int) -> None:
        self.left = passages

    def pass_by(self, *_: object) -> None:
        """One passage."""
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


SAID: set[str] = set()  # the first word of every line of this process
HOOKS: list[Callable[[str, str, str], None]] = []  # who hears of every write and flush
KEPT: list[object] = []  # a file system lives as long as somebody holds it


def before(owner: Any, name: str, first: Callable[..., object]) -> None:
    """Do something on the way into a function."""
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        first(*args)
        return original(*args, **kwargs)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, then: Callable[..., object]) -> None:
    """Do something on the way out of a function."""
    original = getattr(owner, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        then(*args)
        return result

    setattr(owner, name, wrapped)


def on_disk(operation: str, kind: str, moment: str, fuse: Fuse) -> None:
    """Be killed in the middle of what SQLite does to its files."""

    def asked(*what: str) -> None:
        if what == (operation, kind, moment):
            fuse.pass_by()

    HOOKS.append(asked)


def in_publish(fuse: Fuse) -> None:
    """Be killed when k of n effects are out."""

    def publish(pawl: Pawl, action: Publish) -> None:
        for intent in action.intents:
            pawl.runner.publish([intent])
            fuse.pass_by()

    Pawl.publish = publish  # type: ignore[method-assign]


def answering(hang: Callable[[Any, str, Callable[..., object]], None], fuse: Fuse) -> None:
    """Be killed as the client is answered."""
    hang(InlineDriver, "answer", fuse.pass_by)
    hang(ThreadDriver, "answer", fuse.pass_by)


EFFECTS: list[Fuse] = []  # the ledger passes by here once an effect is done, before it is answered

LABELS: dict[str, Callable[[Fuse], None]] = {
    "P0 receive": lambda fuse: before(Shards, "submit", fuse.pass_by),
    "P1 stepped": lambda fuse: before(Engine, "append", fuse.pass_by),
    "P2 begun": lambda fuse: before(sqlite, "write_batch", fuse.pass_by),
    "P3 written": lambda fuse: after(sqlite, "write_batch", fuse.pass_by),
    "P4 in the log": lambda fuse: on_disk("write", "wal", "after", fuse),
    "P4 before the flush": lambda fuse: on_disk("sync", "wal", "before", fuse),
    "P5 flushed": lambda fuse: on_disk("sync", "wal", "after", fuse),
    "P6 committed": lambda fuse: after(sqlite.SqliteStore, "append", fuse.pass_by),
    "P7 published": in_publish,
    "P7 done": EFFECTS.append,
    "P8 mail taken": lambda fuse: after(
        sqlite.SqliteStore, "append", lambda _, batch: batch.taken and fuse.pass_by()
    ),
    "P9 answering": lambda fuse: answering(before, fuse),
    "P9 answered": lambda fuse: answering(after, fuse),
    "checkpoint": lambda fuse: on_disk("write", "main", "after", fuse),
    "checkpoint flushed": lambda fuse: on_disk("sync", "main", "after", fuse),
    "log deleted": lambda fuse: on_disk("delete", "wal", "after", fuse),
    "any": lambda fuse: signal.setitimer(signal.ITIMER_REAL, fuse.left / 1e6) and None,
}
# Passages of one whole run, at least: a random point lies within.
PASSAGES = {
    "P0 receive": 45,
    "P1 stepped": 40,
    "P2 begun": 40,
    "P3 written": 40,
    "P4 in the log": 600,
    "P4 before the flush": 40,
    "P5 flushed": 40,
    "P6 committed": 40,
    "P7 published": 20,
    "P7 done": 16,
    "P8 mail taken": 2,
    "P9 answering": 16,
    "P9 answered": 16,
    "checkpoint": 60,
    "checkpoint flushed": 3,
    "log deleted": 1,
    "any": 60_000,  # microseconds
}


def arm(label: str, passages: int) -> None:
    """Die at the nth passage of a label."""
    LABELS[label](Fuse(passages))


class Fault(msgspec.Struct):
    """An operation on SQLite's files that fails, from the nth on, so many times."""

    operation: str
    nth: int
    times: int = 1
    full: bool = False  # no room, rather than broken
    after: str = ""  # counted from when the process has said this
    kinds: tuple[str, ...] = ("main", "wal", "journal")


def break_disk(fault: Fault, say: Callable[..., None]) -> None:
    """Let operations fail; say so at the first."""
    left = [fault.nth, fault.times]

    def asked(operation: str, kind: str, moment: str) -> None:
        if operation != fault.operation or kind not in fault.kinds or moment == "after":
            return
        if fault.after and fault.after not in SAID:
            return
        left[0] -= 1
        if left[0] > 0 or left[1] == 0:
            return
        if left[1] == fault.times:
            say("fault", operation, kind)
        left[1] -= 1
        raise apsw.FullError("no room") if fault.full else apsw.IOError("it is broken")

    HOOKS.append(asked)


def mount(*, power: bool) -> None:
    """Put our disk under SQLite, if anybody wants to hear of it."""

    def asked(operation: str, kind: str, moment: str) -> None:
        for hook in HOOKS:
            hook(operation, kind, moment)

    if HOOKS or power:
        KEPT.append(Disk(asked, power=power))
