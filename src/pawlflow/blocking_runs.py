"""Blocking runs: a loop on a thread of its own, and instances as those without a loop see them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar

from pawlflow.runs import Run
from pawlflow.starts import Started
from pawlflow.trouble import PawlError

ENDING_S: Final = 1.0  # for whoever still waits to hear that nothing more will come
T = TypeVar("T")


class Loop:
    """An event loop on a thread, and the way to have things done there."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.lock = threading.Lock()
        self.ended = False
        self.thread = threading.Thread(target=self.live, name="pawl-loop", daemon=True)
        self.thread.start()

    def live(self) -> None:
        """On the thread, until somebody stops it; whoever still waits is told first."""
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        rest = asyncio.all_tasks(self.loop)
        if rest:
            self.loop.run_until_complete(asyncio.wait(rest, timeout=ENDING_S))
        for task in rest:
            task.cancel()
        if rest:
            self.loop.run_until_complete(asyncio.wait(rest))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done there, and wait for it. Ctrl-C stops the waiting, and the work."""
        if threading.current_thread() is self.thread:
            work.close()
            message = "an async def runs on the engine's loop and cannot wait for it: write def"
            raise PawlError("engine.own_loop", message)
        with self.lock:
            if self.ended:
                work.close()
                raise PawlError("engine.not_open", "the engine was closed: `open` it again")
            future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread."""
        with self.lock:
            self.ended = True
            self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


async def done(work: Callable[[], T]) -> T:
    """Something that does not wait, done on the loop."""
    return work()


class BlockingRun:
    """One instance."""

    def __init__(self, loop: Loop, run: Run) -> None:
        self._loop = loop
        self._run = run
        self.id = run.id
        self.tenant = run.tenant

    def result(self, timeout: str | float | None = None) -> Any:
        """The output, once the instance has completed. Raises WorkflowFailed, TimeoutError."""
        return self._loop.do(self._run.result(timeout))

    def show(self) -> dict[str, Any]:
        """The instance as `pawl show --json` gives it."""
        return self._loop.do(done(self._run.show))

    def why(self) -> dict[str, Any]:
        """Why it is where it is, as `pawl why --json` gives it."""
        return self._loop.do(done(self._run.why))

    def checkpoints(self, step: str) -> list[dict[str, Any]]:
        """What the loop of a step has kept so far, in order of time."""
        return self._loop.do(done(lambda: self._run.checkpoints(step)))

    def history(self, *, cloudevents: bool = False) -> list[dict[str, Any]]:
        """Every published event so far, in our envelope or as CloudEvents."""
        return self._loop.do(done(lambda: self._run.history(cloudevents=cloudevents)))

    def events(self, *, cloudevents: bool = False) -> Iterator[dict[str, Any]]:
        """Every published event, those still to come included, until the instance is closed."""
        found = self._run.events(cloudevents=cloudevents)
        try:
            while (event := self._loop.do(next_of(found))) is not None:
                yield event
        finally:
            with suppress(PawlError):  # after the engine was closed there is nothing to leave
                self._loop.do(found.aclose())

    def __repr__(self) -> str:
        return repr(self._run)


async def next_of(events: Any) -> dict[str, Any] | None:
    """The next event; None after the last."""
    found: dict[str, Any] | None = await anext(events, None)
    return found


class BlockingStarted:
    """The answer to one start of many."""

    def __init__(self, loop: Loop, started: Started) -> None:
        self._loop = loop
        self._started = started
        self.id = started.id
        self.existing = started.existing
        self.error = started.error

    @property
    def run(self) -> BlockingRun:
        """The run. Raises what the start was refused with."""
        return BlockingRun(self._loop, self._started.run)

    def __repr__(self) -> str:
        return repr(self._started)


async def next_started(answers: Any) -> Started | None:
    """The next answer; None after the last."""
    found: Started | None = await anext(answers, None)
    return found
