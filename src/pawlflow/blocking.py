"""Blocking: an engine for programs without an event loop. It has one of its own, on a thread.

Every method may be called from any thread, also from one whose own loop is running, as in a
notebook; only a function that runs on the engine's loop may not wait for the engine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self, TypeVar

from pawlflow import requests
from pawlflow.blocking_runs import BlockingRun, BlockingStarted, Loop, done, next_started
from pawlflow.definition.shape import Workflow
from pawlflow.effects.endpoints import TRANSIENT, Header, Mode
from pawlflow.hosting import Hosted
from pawlflow.library import Runnable
from pawlflow.model.batches import BatchVerb
from pawlflow.model.failure import FailureClass
from pawlflow.moments import Moment
from pawlflow.operations import PAGE, Where
from pawlflow.starts import Many
from pawlflow.trouble import PawlError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class BlockingPawl:
    """An engine in this process: `with Pawl.blocking("sqlite:///pawl.db") as pawl: ...`."""

    def __init__(self, pawl: Hosted) -> None:
        self._pawl = pawl
        self._loop: Loop | None = None

    # Coming and going

    def open(self) -> Self:
        """Own the store, and go on with everything in flight; `close` is for you to call."""
        if self._loop is not None:
            raise PawlError("engine.open", "this engine is open already: make another one")
        self._loop = Loop()
        try:
            self._loop.do(self._pawl.open())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Stop. What is in flight is in the journal, and goes on when somebody opens it again."""
        loop, self._loop = self._loop, None
        if loop is None:
            return
        closing = asyncio.run_coroutine_threadsafe(self._pawl.close(), loop.loop)
        interrupted = False
        while not closing.done():  # an impatient Ctrl-C must not leave the store half closed
            try:
                closing.exception()
            except KeyboardInterrupt:
                interrupted = True
        loop.stop()
        closing.result()
        if interrupted:
            raise KeyboardInterrupt

    def __enter__(self) -> Self:
        """Own the store, and go on with everything in flight."""
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop. What is in flight is in the journal, and goes on when somebody enters again."""
        self.close()

    @property
    def _open(self) -> Loop:
        """The loop it runs on."""
        if self._loop is None:
            message = "the engine is not open: `with pawl:`, or `pawl.open()` first"
            raise PawlError("engine.not_open", message)
        return self._loop

    def _do(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Have something done on the loop; nothing is made of it while there is none."""
        return self._open.do(work())

    def _at_once(self, work: Callable[[], T]) -> T:
        """Have something done that an engine takes before it runs, too."""
        return work() if self._loop is None else self._loop.do(done(work))

    # What it can run

    def load(self, *paths: str | Path) -> list[str]:
        """Read workflows and schedules from files and folders; published when the engine runs."""
        return self._at_once(lambda: self._pawl.load(*paths))

    def add(self, workflow: Workflow | Runnable) -> None:
        """Make a workflow known under its name; a flow brings its functions and its children."""
        self._at_once(lambda: self._pawl.add(workflow))

    def effect(self, name: str, *, pool: str | None = None) -> Callable[[F], F]:
        """Let a function carry out an effect: `@pawl.effect("git.checkout")`."""
        return lambda fn: self._at_once(lambda: self._pawl.effect(name, pool=pool)(fn))

    def agent(self, role: str, *, pool: str | None = None) -> Callable[[F], F]:
        """Let a function do the tasks of an agent's role: `@pawl.agent("technical-writer")`."""
        return lambda fn: self._at_once(lambda: self._pawl.agent(role, pool=pool)(fn))

    def http(  # noqa: PLR0913  # what may be said of an endpoint
        self,
        name: str,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, Header] | None = None,
        timeout: str | float = "30s",
        mode: Mode = "sync",
        retry_on: Iterable[int | str] = TRANSIENT,
        retry_after: str | float = "5m",
        allow: Iterable[str] = (),
        ports: Iterable[int] = (),
        redirects: int = 0,
        ca: str | Path | None = None,
    ) -> None:
        """Let an endpoint carry out an effect: `pawl.http("payment.charge", "https://...")`."""
        how: Any = {"method": method, "headers": headers, "timeout": timeout, "mode": mode}
        how |= {"retry_on": retry_on, "retry_after": retry_after, "redirects": redirects}
        how |= {"allow": allow, "ports": ports, "ca": ca}
        self._at_once(lambda: self._pawl.http(name, url, **how))

    def register(self, *found: Callable[..., Any] | ModuleType | Runnable) -> list[str]:
        """Register steps and flows, or all that a module has, under their own names."""
        return self._at_once(lambda: self._pawl.register(*found))

    # Starting

    def start(  # what a start consists of
        self,
        workflow: str | Workflow | Runnable,
        input: Any = None,  # the word of the documents
        *,
        id: str | None = None,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> BlockingRun:
        """Start an instance; durable when this returns. The same id and input: the same run."""
        begin = self._pawl.start
        run = self._do(lambda: begin(workflow, input, id=id, tenant=tenant, by=by, at=at))
        return BlockingRun(self._open, run)

    def start_many(  # what starts consist of
        self,
        workflow: str | Workflow | Runnable,
        inputs: Many,
        *,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> Sequence[BlockingStarted]:
        """Start an instance for each input, or (id, input): an answer for each, in order."""
        begin = self._pawl.start_many
        found = self._do(lambda: begin(workflow, inputs, tenant=tenant, by=by, at=at))
        return [BlockingStarted(self._open, each) for each in found]

    def starting(  # what starts consist of
        self,
        workflow: str | Workflow | Runnable,
        inputs: Many,
        *,
        tenant: str | None = None,
        by: str = "python",
        at: Moment | None = None,
    ) -> Iterator[BlockingStarted]:
        """The same, each answer as it comes: for more starts than anybody wants to keep."""
        loop = self._open
        found = self._pawl.starting(workflow, inputs, tenant=tenant, by=by, at=at)
        while (started := loop.do(next_started(found))) is not None:
            yield BlockingStarted(loop, started)

    def run(self, id: str, tenant: str | None = None) -> BlockingRun:
        """A run that was started before."""
        return BlockingRun(self._open, self._do(lambda: done(lambda: self._pawl.run(id, tenant))))

    # Acting

    def signal(
        self,
        id: str,
        event: str,
        data: Any = None,
        *,
        by: str = "python",
        tenant: str | None = None,
    ) -> None:
        """Tell one instance; it is kept until a wait matches it."""
        self._do(lambda: self._pawl.signal(id, event, data, by=by, tenant=tenant))

    def emit(
        self, event: str, data: Any = None, *, by: str = "python", tenant: str | None = None
    ) -> None:
        """Tell everybody who waits for, or is started by, an event."""
        self._do(lambda: self._pawl.emit(event, data, by=by, tenant=tenant))

    def complete(  # noqa: PLR0913  # what may be said of an attempt
        self,
        key: str,
        result: Any = None,
        *,
        fail: FailureClass | None = None,
        message: str = "",
        findings: Sequence[Any] = (),
        attempt: int | None = None,
        usage: Mapping[str, float] | None = None,
        instance: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Say what became of an attempt that was left open, by the key of its request."""
        said: Any = {"fail": fail, "message": message, "findings": findings, "attempt": attempt}
        said |= {"usage": usage, "instance": instance, "tenant": tenant}
        self._do(lambda: self._pawl.complete(key, result, **said))

    def approve(
        self,
        id: str,
        step: str,
        *,
        by: str,
        limits: Mapping[str, float] | None = None,
        **more: str | None,
    ) -> None:
        """Agree to a gate, or raise a budget; `role`, `comment` and `tenant` may be given."""
        self._do(lambda: self._pawl.approve(id, step, by=by, limits=limits, **more))

    def reject(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Refuse at a gate; `role`, `comment` and `tenant` may be given."""
        self._do(lambda: self._pawl.reject(id, step, by=by, **more))

    def claim(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Look after an open review; `role`, `comment` and `tenant` may be given."""
        self._do(lambda: self._pawl.claim(id, step, by=by, **more))

    def cancel(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Stop an instance; with failurePolicy compensate its work is undone."""
        self._do(lambda: self._pawl.cancel(id, by=by, **more))

    def pause(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Start nothing new in an instance."""
        self._do(lambda: self._pawl.pause(id, by=by, **more))

    def unpause(self, id: str, *, by: str = "python", **more: str | None) -> None:
        """Let a paused instance go on."""
        self._do(lambda: self._pawl.unpause(id, by=by, **more))

    def pause_schedule(self, name: str, *, by: str = "python", **more: str | None) -> None:
        """Let a schedule start nothing; it keeps its place in time."""
        self._do(lambda: self._pawl.pause_schedule(name, by=by, **more))

    def unpause_schedule(self, name: str, *, by: str = "python", **more: str | None) -> None:
        """Let a schedule go on; its catchUp says what becomes of the times it missed."""
        self._do(lambda: self._pawl.unpause_schedule(name, by=by, **more))

    def remove_schedule(self, name: str, *, by: str = "python", tenant: str | None = None) -> None:
        """A schedule that stands by itself is no more; a workflow's own goes with it."""
        self._do(lambda: self._pawl.remove_schedule(name, by=by, tenant=tenant))

    def backfill(
        self,
        name: str,
        first: Moment,
        last: Moment,
        *,
        by: str = "python",
        tenant: str | None = None,
    ) -> None:
        """Start what a schedule would have started between two times, unless it exists."""
        self._do(lambda: self._pawl.backfill(name, first, last, by=by, tenant=tenant))

    def retire_policy(
        self,
        name: str,
        *,
        by: str = "python",
        comment: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Let a policy no longer be in force; a higher version may be published."""
        self._do(lambda: self._pawl.retire_policy(name, by=by, comment=comment, tenant=tenant))

    def resume(self, id: str, step: str, *, by: str, **more: str | None) -> None:
        """Let an escalated step go on; `role`, `comment` and `tenant` may be given."""
        self._do(lambda: self._pawl.resume(id, step, by=by, **more))

    def reassign(self, id: str, step: str, to: str, *, by: str, **more: str | None) -> None:
        """Give an escalated step to another role; `role` is the one in which they act."""
        self._do(lambda: self._pawl.reassign(id, step, to, by=by, **more))

    def retry(
        self,
        id: str,
        step: str,
        *,
        by: str,
        with_: Any = requests.NOT_GIVEN,
        **more: str | None,
    ) -> None:
        """Try an escalated step again, with another input if one is given."""
        self._do(lambda: self._pawl.retry(id, step, by=by, with_=with_, **more))

    def settle(self, id: str, step: str, *, by: str, comment: str, **more: str | None) -> None:
        """Say what became of an effect that succeeded after nobody waited for it any more."""
        self._do(lambda: self._pawl.settle(id, step, by=by, comment=comment, **more))

    # Operating

    def list(  # what a list may be narrowed by
        self,
        where: Where = (),
        *,
        state: Where = (),
        workflow: str | None = None,
        limit: int = PAGE,
        after: str | None = None,
        tenant: str | None = None,
    ) -> Sequence[dict[str, Any]]:
        """Instances as `pawl ls --json` gives them, newest first; `after` is the last one's id."""
        said: dict[str, Any] = {"state": state, "workflow": workflow, "limit": limit}
        said |= {"after": after, "tenant": tenant}
        return self._do(lambda: done(lambda: self._pawl.list(where, **said)))

    def batch(  # noqa: PLR0913  # what an act on many consists of
        self,
        verb: BatchVerb,
        *,
        where: Where,
        by: str,
        comment: str | None = None,
        step: str = "",
        event: str = "",
        data: Any = requests.NOT_GIVEN,
        tenant: str | None = None,
    ) -> dict[str, Any]:
        """One act on all open instances that a filter means now, followed to its end."""
        about: dict[str, Any] = {"comment": comment, "step": step, "event": event, "data": data}
        batch = self._pawl.batch
        return self._do(lambda: batch(verb, where=where, by=by, tenant=tenant, **about))

    def alerts(self, tenant: str | None = None) -> Sequence[dict[str, Any]]:
        """Effects that nobody here can carry out though instances wait for them, since when."""
        return self._do(lambda: done(lambda: self._pawl.alerts(tenant)))
