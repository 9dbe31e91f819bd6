"""Checkpoints: results that a loop keeps under names while it runs, and finds again after a crash.

A name that is kept is never run again; one that is not, is run and kept before the loop goes on.
The order in which names are asked for means nothing.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from copy import copy
from functools import partial
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from pawlflow.effects.context import Cancelled, Context, Terminal
from pawlflow.effects.interrupts import called, kept_inside
from pawlflow.effects.progress import (
    SCOPE,
    Host,
    Memory,
    Progress,
    full_name,
    key_inside,
    payload_of,
    typed,
    value_of,
)
from pawlflow.effects.steps import Step
from pawlflow.model.intents import Call

P = ParamSpec("P")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
T = TypeVar("T")


class LoopContext(Context):
    """What a loop gets as `ctx`: a Context, and named checkpoints."""

    def __init__(self, call: Call, beat: Callable[[], None], host: Host | None = None) -> None:
        if host is not None and host.keeper is None:
            raise Terminal(f"{call.target} is a loop, and nobody here keeps checkpoints")
        keeper = Memory({}) if host is None or host.keeper is None else host.keeper
        self._run = Progress(keeper, None if host is None else host.pool)
        self._call = call
        super().__init__(call, beat)

    @classmethod
    def offline(cls, step: str = "loop", *, kept: Mapping[str, Any] | None = None) -> Self:
        """A context for trying a loop out without an engine; `kept` is what an earlier run kept.

        Used for a second run, it resumes the first.
        """
        made = super().offline(step)
        made.remember(kept or {})
        return made

    def remember(self, kept: Mapping[str, Any]) -> None:
        """Keep everything in memory, beginning with this."""
        found = {name: payload_of(name, value, self._call) for name, value in kept.items()}
        self._run.keeper = Memory(found)

    @property
    def cancelled(self) -> bool:
        """Is the attempt no longer wanted?"""
        return self._run.cancelled

    @cancelled.setter
    def cancelled(self, no_longer_wanted: bool) -> None:
        self._run.cancelled = no_longer_wanted

    @property
    def kept(self) -> dict[str, Any]:
        """What earlier runs had kept when this one began, by name."""
        return {name: value_of(name, found) for name, found in self._run.kept.items()}

    # Checkpoints

    @overload
    def do(
        self, name: str, fn: Step[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[P, Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[object, object, T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[Concatenate["LoopContext", P], Coroutine[Any, Any, T]],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[object, object, T]: ...
    @overload
    def do(
        self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[object, object, T]: ...
    @overload
    def do(
        self,
        name: str,
        fn: Callable[Concatenate["LoopContext", P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Coroutine[object, object, T]: ...
    def do(self, name: str, fn: Any, /, *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """A checkpoint: what is kept under the name, or what the function gives, once kept.

        The function may be a plain one, which runs in a thread, an async one, or a step. One that
        takes `ctx` and is not given one gets one, whose key is that of this checkpoint alone.
        """
        return self.checkpoint(full_name(name), fn, args, kwargs)

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Names inside are `NAME/name`: `with ctx.scope(f"round-{n}"): ...`."""
        token = SCOPE.set(full_name(name))
        try:
            yield
        finally:
            SCOPE.reset(token)

    @overload
    async def all(self, a: Awaitable[A], /) -> tuple[A]: ...
    @overload
    async def all(self, a: Awaitable[A], b: Awaitable[B], /) -> tuple[A, B]: ...
    @overload
    async def all(self, a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], /) -> tuple[A, B, C]: ...
    @overload
    async def all(
        self, a: Awaitable[A], b: Awaitable[B], c: Awaitable[C], d: Awaitable[D], /
    ) -> tuple[A, B, C, D]: ...
    @overload
    async def all(self, *parts: Awaitable[T]) -> tuple[T, ...]: ...
    @overload
    async def all(self, parts: Mapping[str, Awaitable[T] | Callable[[], T]], /) -> dict[str, T]: ...
    async def all(self, *parts: Any) -> Any:
        """Several checkpoints at a time; their results in the same order.

        Of a mapping each part is a checkpoint, or a function that becomes one under its key. If one
        fails the others go on to their end, so that nothing is done twice; then it is raised.
        """
        if len(parts) == 1 and isinstance(parts[0], Mapping):
            named = {
                name: part if inspect.isawaitable(part) else self.do(name, part)
                for name, part in parts[0].items()
            }
            return dict(zip(named, await self.together([*named.values()]), strict=True))
        return tuple(await self.together([*parts]))

    def key_of(self, name: str) -> str:
        """The key of a checkpoint: a UUID that stays the same however often it is tried."""
        return key_inside(self._call, full_name(name))

    # How they are made

    async def checkpoint(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """One checkpoint, from its name to its kept result."""
        run = self._run
        self.refuse_unwanted(name)
        run.claim(name)
        try:
            found = run.kept.get(name)
            if found is None:
                result = await kept_inside(self.carry_out(name, fn, args, kwargs))
                made = payload_of(name, result, self._call, self._hidden)
                found = await run.keeper.keep(self._call, name, made)
        except BaseException as error:
            del run.asked[name]  # nothing was kept: it may be asked for again
            if isinstance(error, asyncio.CancelledError):
                self.refuse_cancelled(name)
            raise
        self._beat()
        return typed(name, value_of(name, found), fn)

    async def carry_out(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Call the function; names that it asks for are inside this one."""
        plain = fn.fn if isinstance(fn, Step) else fn
        args, kwargs = self.with_context(name, plain, args, kwargs)
        self._beat()
        token = SCOPE.set(name)
        try:
            if inspect.iscoroutinefunction(plain):
                return await plain(*args, **kwargs)
            loop, context = asyncio.get_running_loop(), copy_context()
            work = partial(context.run, called, plain, args, kwargs)
            result = await loop.run_in_executor(self._run.pool, work)
            return await result if inspect.isawaitable(result) else result
        finally:
            SCOPE.reset(token)

    def with_context(
        self, name: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, with a context for a function that takes one and is not given it."""
        try:
            takes = list(inspect.signature(fn).parameters)
        except (TypeError, ValueError):  # of some builtins nothing is known
            return args, kwargs
        given = [*args, *kwargs.values()]
        if "ctx" not in takes or any(isinstance(each, Context) for each in given):
            return args, kwargs
        inner = copy(self)
        inner.key = key_inside(self._call, name)
        if takes[0] == "ctx":
            return (inner, *args), kwargs
        return args, {**kwargs, "ctx": inner}

    async def together(self, parts: list[Awaitable[Any]]) -> list[Any]:
        """All of them, to the end of the last."""
        tasks = [asyncio.ensure_future(kept_inside(part)) for part in parts]
        if not tasks:
            return []
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # it was heard
            self.refuse_cancelled(self._run.last)
            raise
        errors = [task.exception() for task in tasks if not task.cancelled()]
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            raise first
        return [task.result() for task in tasks]

    # Being stopped

    def refuse_unwanted(self, name: str) -> None:
        """Raise Cancelled once nobody wants the result.

        Whoever caught that and goes on is stopped by what an `except Exception` lets through.
        """
        if not self.cancelled:
            return
        if self._run.told:
            raise asyncio.CancelledError
        self._run.told = True
        step, attempt = self.step, self.attempt
        raise Cancelled(f"attempt {attempt} of {step} is no longer wanted, before {name!r}")

    def refuse_cancelled(self, name: str) -> None:
        """The loop was cancelled while it waited: if nobody wants it any more, it is told so."""
        task = asyncio.current_task()
        if self.cancelled and not self._run.told and task is not None:
            task.uncancel()
            self.refuse_unwanted(name)

    # Runs

    async def begin(self) -> None:
        """Find what was kept."""
        self._run.begin(await self._run.keeper.kept(self._call))

    def failed(self) -> None:
        """The run failed: say what the next one could not know any more."""
        said = self._run.so_far()
        if said:
            self.log(said)

    def end(self, *, strict: bool) -> None:
        """The loop has its result: report what it kept and never asked for. Raises Terminal."""
        report = self._run.report()
        if report and strict:
            raise Terminal(
                f"checkpoints of {self.step} do not fit what was kept: {'; '.join(report)}. "
                "Give them their old names back, or let it go on with strict=False"
            )
        for line in report:
            self.warn(line)
