"""Processes: plain functions that compute for long, each in a process of its own.

A worker is a fresh Python that imports the function by its name, takes calls through a pipe, and
keeps nothing between them. One that is no longer wanted is killed; one that dies fails the call it
had, and is replaced when the next one comes.
"""

import asyncio
import importlib
import importlib.util
import inspect
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from pawlflow.effects.context import Cancelled, Context, Correctable, Terminal, Transient
from pawlflow.effects.steps import Step
from pawlflow.effects.words import trace_of, where_of, words_of
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.model.trouble import PawlError

SPAWN: Final = multiprocessing.get_context("spawn")
RAISED: Final = {"transient": Transient, "terminal": Terminal, "correctable": Correctable}


class WorkerLost(Exception):  # noqa: N818  # of an attempt, like Transient
    """The process that carried out a call is gone."""


class RemoteError(Exception):
    """What a function raised in another process, as far as it can be told here."""

    def __init__(self, words: str, name: str, where: str, trace: str) -> None:
        super().__init__(words)
        self.name = name
        self.where = where
        self.trace = trace


class Place(msgspec.Struct, frozen=True):
    """Where another process finds a function."""

    module: str
    name: str
    file: str | None


def place_of(name: str, fn: Callable[..., Any]) -> Place:
    """Where a function can be imported from. Raises PawlError for one that cannot."""
    if inspect.iscoroutinefunction(fn):
        why = "it is an async def, which runs on the event loop: write def"
    elif not inspect.isfunction(fn) or "<" in fn.__qualname__:
        why = "it is a lambda, a method or a function inside another: write it at the top level"
    elif fn.__module__ == "__main__" and not getattr(sys.modules["__main__"], "__file__", None):
        why = "it was typed in, and no other process can import that: put it into a module"
    else:
        file = getattr(sys.modules.get(fn.__module__), "__file__", None)
        return Place(fn.__module__, fn.__qualname__, file)
    raise PawlError("step.pool", f'{name} cannot run with pool="process": {why}')


class Errand(msgspec.Struct, eq=False):
    """A call on its way through a worker."""

    call: Call
    place: Place
    arguments: dict[str, Any]
    context: Context | None
    beat: Callable[[], None]
    worker: "Worker | None" = None
    unwanted: bool = False


class Processes:
    """A bounded number of workers, made when they are needed and kept."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or os.cpu_count() or 1
        self.threads: ThreadPoolExecutor | None = None  # one waits for each worker
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()
        self.closed = False
        self.lock = threading.Lock()

    async def run(self, job: Errand) -> Any:
        """Carry a call out. Raises what the function raised, WorkerLost, CancelledError."""
        if self.threads is None:
            self.threads = ThreadPoolExecutor(self.count, thread_name_prefix="pawl-process")
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.threads, self.carry_out, job)
        except WorkerLost:
            if job.unwanted:
                raise asyncio.CancelledError from None
            raise

    def carry_out(self, job: Errand) -> Any:
        """On a thread: give the call to a worker, and wait for what it says."""
        worker = self.take(job)
        whole = False  # has it answered?
        try:
            worker.pipe.send((job.place, job.arguments, told_of(job)))
            while (told := worker.pipe.recv())[0] != "ended":
                hear(job, *told)
            whole = True
        except (EOFError, OSError):
            worker.process.join()
            code = worker.process.exitcode
            raise WorkerLost(f"its process ended with {code} before it answered") from None
        finally:
            self.leave(job, worker, gone=not whole)
        return answer(told[1])

    def kill(self, job: Errand) -> None:
        """A call is no longer wanted: its worker goes, there is no other way to interrupt it."""
        with self.lock:
            job.unwanted = True
            if job.worker is not None:
                job.worker.process.kill()

    def take(self, job: Errand) -> "Worker":
        """A worker for a call; a new one, if none is idle."""
        worker: Worker | None = None
        with self.lock:
            while self.idle and worker is None:
                idle = self.idle.pop()
                worker = idle if idle.process.is_alive() else None
        worker = worker or Worker()
        with self.lock:
            self.busy.add(worker)
            job.worker = worker
            if self.closed or job.unwanted:  # it was stopped before it began
                worker.process.kill()
        return worker

    def leave(self, job: Errand, worker: "Worker", *, gone: bool) -> None:
        """A worker has answered, or is gone."""
        with self.lock:
            job.worker = None
            self.busy.discard(worker)
            if gone or self.closed:
                worker.end()
            else:
                self.idle.append(worker)

    def close(self) -> None:
        """Kill every worker: what they were at is in the journal, and is offered again."""
        with self.lock:
            self.closed = True
            for worker in self.busy:
                worker.process.kill()
            for worker in self.idle:
                worker.end()
            self.idle.clear()
        if self.threads is not None:
            self.threads.shutdown(wait=True, cancel_futures=True)


class Worker:
    """One process, and the pipe to it."""

    def __init__(self) -> None:
        self.pipe, theirs = SPAWN.Pipe()
        self.process: SpawnProcess = SPAWN.Process(
            target=work, args=(theirs,), name="pawl-step", daemon=True
        )
        self.process.start()
        theirs.close()

    def end(self) -> None:
        """Let it go, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        self.process.close()


def told_of(job: Errand) -> Call | None:
    """What the context is made of over there; the parameters go as arguments."""
    if job.context is None:
        return None
    return msgspec.structs.replace(job.call, params=Payload(job.call.params.addr, None))


def hear(job: Errand, kind: str, said: Any) -> None:
    """What a function says while it runs."""
    job.beat()
    if job.context is not None and kind == "log":
        job.context.log(said)
    elif job.context is not None and kind == "spent":
        job.context.spent(**said)


def answer(ended: tuple[str, Any]) -> Any:
    """The result of a call, or what it raised."""
    kind, said = ended
    if kind == "ok":
        return said
    if kind == "raised":
        raise RemoteError(*said)
    if kind == "cancelled":
        raise Cancelled(said)
    raise RAISED[kind](said)


# In the worker


class RemoteContext(Context):
    """The context of an attempt in another process: what it says goes through the pipe."""

    def __init__(self, call: Call, pipe: Connection) -> None:
        super().__init__(call, lambda: pipe.send(("beat", None)))
        self._pipe = pipe

    def log(self, message: str) -> None:
        """Keep a line with the attempt."""
        self._pipe.send(("log", str(message)))

    def spent(self, **amounts: float) -> None:
        """Say what the attempt cost."""
        super().spent(**amounts)
        self._pipe.send(("spent", amounts))


def work(pipe: Connection) -> None:
    """The life of a worker: one call after the other, until the pipe or the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who decides
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        try:
            place, arguments, call = pipe.recv()
        except (EOFError, OSError):
            return
        ended = called(place, arguments, None if call is None else RemoteContext(call, pipe))
        try:
            pipe.send(("ended", ended))
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            said = f"what it gave cannot be sent back: {error}"
            pipe.send(("ended", ("terminal", said)))


def end_with_parent() -> None:
    """A worker whose parent was killed computes for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def called(place: Place, arguments: dict[str, Any], context: Context | None) -> tuple[str, Any]:
    """Call the function; what it raised is told in words, for exceptions may not travel."""
    try:
        if context is not None:
            arguments["ctx"] = context
        return "ok", function_at(place)(**arguments)
    except Transient as error:
        return "transient", words_of(error)
    except Terminal as error:
        return "terminal", words_of(error)
    except Cancelled as error:
        return "cancelled", words_of(error)
    except Correctable as error:
        return "correctable", error.findings
    except BaseException as error:  # noqa: BLE001  # users' code raises anything
        name = type(error).__name__
        return "raised", (words_of(error), name, where_of(error), trace_of(error))


def function_at(place: Place) -> Callable[..., Any]:
    """The function of a place, imported once."""
    try:
        found: Any = sys.modules.get(place.module) or module_at(place)
        for name in place.name.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise Terminal(f"{place.module}.{place.name} is not there to be imported") from error
    plain: Callable[..., Any] = found.fn if isinstance(found, Step) else found
    return plain


def module_at(place: Place) -> ModuleType:
    """A module by its name; one that was loaded by its path, by that."""
    try:
        return importlib.import_module(place.module)
    except ImportError:
        if place.file is None:
            raise
    spec = importlib.util.spec_from_file_location(place.module, Path(place.file))
    if spec is None or spec.loader is None:
        raise ImportError(f"{place.file} is no Python file")
    module = sys.modules[place.module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
