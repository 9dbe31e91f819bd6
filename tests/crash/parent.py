"""The parent of a program that is killed: it starts it again, and takes it at its word."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.history import history
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import story_of
from pawlflow.store.port import Filter
from pawlflow.store.sqlite import SqliteStore
from tests.crash.child import Spec, read_ledger
from tests.crash.points import Fault

ROOT = Path(__file__).resolve().parent.parent.parent
TENANT = Tenant("default")
KILLED = -signal.SIGKILL
ALARMED = -signal.SIGALRM


class Nursery:
    """Gives birth to processes that will be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, spec: Spec, until: int | str = "") -> tuple[int, list[str]]:
        """One process from birth to death: its exit code and what it said.

        It is killed as soon as it has said so many lines, or that one.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(spec).decode() + "\n")
        self.process.stdin.flush()
        said: list[str] = []
        pid = 0
        for line in self.process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "exit":
                return int(rest), said
            if word == "pid":
                pid = int(rest)
            else:
                said.append(line.strip())
            if said and until in (len(said), said[-1]):
                kill(pid)
        raise AssertionError("the nursery is gone")

    def close(self) -> None:
        """No more births."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def kill(pid: int) -> None:
    """End a process, unless it was faster."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


class Trial:
    """One file, and everything that was acknowledged about it so far."""

    def __init__(self, nursery: Nursery, path: Path, driver: str, **more: Any) -> None:
        self.nursery = nursery
        self.path = path
        self.spec = Spec(str(path), driver, **more)
        self.started: set[str] = set()
        self.closed: dict[str, str] = {}
        self.kills: Counter[str] = Counter()
        self.fault = Fault("", 0)
        self.faulted = False

    def suffer(self, fault: Fault) -> list[str]:
        """One life on a disk that fails."""
        code, said = self.nursery.run(msgspec.structs.replace(self.spec, fault=fault))
        assert code == 0, (fault, code, said)
        self.faulted = any(line.startswith("fault") for line in said)
        for line in said:
            self.note(line)
        return said

    def cycle(
        self, label: str = "", passages: int = 0, until: int | str = "", *, look: bool = True
    ) -> bool:
        """One life. Was it cut short? What it acknowledged must stand from now on."""
        spec = msgspec.structs.replace(self.spec, label=label, passages=passages)
        code, said = self.nursery.run(spec, until)
        assert code in (0, KILLED, ALARMED if label == "any" else 0), (label, passages, code, said)
        for line in said:
            assert not line.startswith("trouble"), (label, passages, said)
            self.note(line)
        if code != 0:
            self.kills[label or "acks"] += 1
        if look:
            self.check_copy()
        return code != 0

    def note(self, line: str) -> None:
        """Remember an acknowledgement. A second one must say the same."""
        word, *rest = line.split()
        if word == "started":
            self.started.add(rest[0])
        if word == "closed":
            assert self.closed.setdefault(rest[0], rest[1]) == rest[1]

    def check_copy(self) -> None:
        """Look at what the crash has left, in a copy: recovery is the next process's affair."""
        copy = self.path.with_name("copy.db")
        for end in ("", "-wal", "-journal"):
            at = copy.with_name(copy.name + end)
            at.unlink(missing_ok=True)
            source = self.path.with_name(self.path.name + end)
            if source.exists():
                shutil.copy(source, at)
        store = SqliteStore(copy)
        try:
            self.check_promises(store)
        finally:
            store.close()

    def check_promises(self, store: SqliteStore) -> None:
        """What was acknowledged is there, and the store can be proven."""
        states = {head.cell.key: head.state for head in store.instances(Filter(tenant=TENANT))}
        assert self.started <= states.keys()
        assert self.closed == {key: states[InstanceId(key)] for key in self.closed}
        assert verify_store(store).differences == []

    def finish(self) -> None:
        """A last life without interruption."""
        assert not self.cycle()


def told(store: SqliteStore, key: str) -> list[dict[str, Any]]:
    """The published events of an instance."""
    return history(story_of(store, TENANT, InstanceId(key)))


def outline(store: SqliteStore, key: str) -> list[tuple[str, Any, Any]]:
    """The step history: what happened, in order, without times and keys."""
    return [
        (each["eventType"], each["payload"].get("step"), each["payload"].get("attempt"))
        for each in told(store, key)
    ]


def outlines(path: Path) -> dict[str, list[tuple[str, Any, Any]]]:
    """The step histories of all instances of a file."""
    store = SqliteStore(path)
    try:
        heads = store.instances(Filter(tenant=TENANT))
        return {head.cell.key: outline(store, head.cell.key) for head in heads}
    finally:
        store.close()


def check_world(trial: Trial) -> None:
    """The world was changed once per step key, and the journal knows the result it gave."""
    lines = read_ledger(trial.spec.ledger)
    results = {line["key"]: line["result"] for line in lines}
    assert len(results) == len(lines), "a step key was executed twice"
    store = SqliteStore(trial.path)
    try:
        for key in trial.started:
            known = [
                each["payload"]["result"]
                for each in told(store, key)
                if each["eventType"] == "AgentTaskCompleted"
            ]
            done = [line for line in lines if line["instance"] == key and not line["undo"]]
            assert sorted(map(repr, known)) == sorted(repr(line["result"]) for line in done)
    finally:
        store.close()
