"""Steps: plain functions that an engine can carry out, and that flows put in order."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from pawlflow.effects.context import Context
from pawlflow.effects.refs import Ref
from pawlflow.model.intents import Call

P = ParamSpec("P")
R = TypeVar("R")
OPTIONS: Final = ("name", "after", "when")  # of a call inside a flow, beside the arguments


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed attempt is made again, and after how long."""

    max: int = 3
    backoff: str = "exponential"
    initial: str = "1s"
    cap: str = "60s"


class Tracer(Protocol):
    """Who writes calls down while a flow is traced."""

    def call(
        self, step: "Step[..., Any]", args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Ref[Any]:
        """A step is called."""
        ...


TRACING: Final[ContextVar[Tracer | None]] = ContextVar("pawl_tracing", default=None)


class Step(Generic[P, R]):
    """A function that an engine can carry out; without one it is still the plain function."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, /, **policy: Any) -> None:
        self.fn = fn
        self.carried: Callable[..., Any] = fn  # what an engine calls
        self.name = name or fn.__name__  # of the effect it stands for
        self.policy = {key: value for key, value in policy.items() if value is not None}
        self.called: dict[str, Any] = {}  # options of a call, given beforehand
        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def context(self, call: Call, beat: Callable[[], None], _: Any) -> Context:
        """What the function may know of an attempt."""
        return Context(call, beat)

    @cached_property
    def signature(self) -> inspect.Signature:
        """What the function takes, `ctx` included."""
        return inspect.signature(self.fn)

    def options(self, **changed: Any) -> Self:
        """The same step with other options: `charge.options(name="charge-again", timeout="5s")`.

        `name`, `after` and `when` are of the call; all others those that `@step` takes.
        """
        other = type(self)(self.fn, self.name, **self.policy)
        other.called = dict(self.called)
        for key in OPTIONS:
            if key in changed:
                other.called[key] = changed.pop(key)
        other.policy |= changed
        return other

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]: ...
    @overload
    def __call__(
        self, *args: Any, after: Any, when: Any = ..., name: str = ..., **kwargs: Any
    ) -> Ref[R]: ...
    @overload
    def __call__(
        self, *args: Any, when: Any, after: Any = ..., name: str = ..., **kwargs: Any
    ) -> Ref[R]: ...
    @overload
    def __call__(
        self, *args: Any, name: str, after: Any = ..., when: Any = ..., **kwargs: Any
    ) -> Ref[R]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside a flow: write the call down. Elsewhere: call the plain function."""
        tracer = TRACING.get()
        if tracer is not None:
            return tracer.call(self, args, kwargs)
        return self.plain(args, kwargs)

    def plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the function without an engine; a `ctx` that nobody gives is one for trying out."""
        if "ctx" not in self.signature.parameters or "ctx" in kwargs:
            return self.fn(*args, **kwargs)
        if any(isinstance(each, Context) for each in args):
            return self.fn(*args, **kwargs)
        ctx = Context.offline(self.__name__)
        if next(iter(self.signature.parameters)) == "ctx":
            return self.fn(ctx, *args, **kwargs)
        return self.fn(*args, ctx=ctx, **kwargs)

    def __repr__(self) -> str:
        return f"<step {self.name}>"


class Decorator(Protocol):
    """What `@step(...)` gives: it takes a function, with or without `ctx` in front."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Step[P, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Step[..., Any]:
        """Make a function a step."""
        ...


@overload
def step(fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, Coroutine[Any, Any, R]], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[Concatenate[Context, P], R], /) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: str | None = None,
    undo: "str | Step[..., Any] | Mapping[str, Any] | None" = None,
    heartbeat: str | None = None,
    grace: str | None = None,
    mutates: bool | None = None,
    irreversible: bool | None = None,
    on_failure: str | None = None,
    on_timeout: str | None = None,
    undo_on_failure: bool | None = None,
    max_corrections: int | None = None,
    check: Any = None,
    cost: Mapping[str, float] | None = None,
    priority: int | None = None,
    policy: Mapping[str, Any] | None = None,
    pool: str | None = None,
) -> Decorator: ...
def step(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a step. `name` is the effect it stands for; the function's own by default."""
    name = options.pop("name", None)
    if fn is not None:
        return Step(fn, name, **options)
    return lambda decorated: Step(decorated, name, **options)
