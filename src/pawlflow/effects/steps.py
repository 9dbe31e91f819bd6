"""Steps: plain functions that an engine can carry out, and that flows put in order."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from pawlflow.definition.fields import DURATION_FORM, duration_ms
from pawlflow.effects.context import Context
from pawlflow.effects.refs import TRACING as TRACING
from pawlflow.effects.refs import FlowError, Ref
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


# Options as Python spells them, and as YAML does.
FIELDS: Final = {
    "timeout": "timeout",
    "heartbeat": "heartbeat",
    "grace": "grace",
    "mutates": "mutates",
    "irreversible": "irreversible",
    "on_failure": "onFailure",
    "on_timeout": "onTimeout",
    "undo_on_failure": "undoOnFailure",
    "max_corrections": "maxCorrectionAttempts",
    "check": "check",
    "cost": "cost",
    "priority": "priority",
    "policy": "policy",
}
NOT_WRITTEN: Final = ("pool",)  # how a function is carried out here: no part of the definition
KNOWN: Final = ("retry", "undo", *FIELDS, *NOT_WRITTEN)
DURATIONS: Final = ("timeout", "heartbeat", "grace")


class Step(Generic[P, R]):
    """A function that an engine can carry out; without one it is still the plain function."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, /, **policy: Any) -> None:
        self.fn = fn
        self.carried: Callable[..., Any] = fn  # what an engine calls
        own = plain_name(fn, name)
        self.name = name or own  # of the effect it stands for
        check_options(own, policy)
        self.policy = {key: value for key, value in policy.items() if value is not None}
        self.called: dict[str, Any] = {}  # options of a call, given beforehand
        self.__doc__ = fn.__doc__
        self.__name__ = own
        self.__qualname__ = getattr(fn, "__qualname__", own)
        self.__module__ = getattr(fn, "__module__", None) or "__main__"
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
        check_options(self.__name__, changed)
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
        at = list(self.signature.parameters).index("ctx")
        ctx = Context.offline(self.__name__)
        if len(args) < at or self.signature.parameters["ctx"].kind is KEYWORD_ONLY:
            return self.fn(*args, ctx=ctx, **kwargs)
        return self.fn(*args[:at], ctx, *args[at:], **kwargs)

    def __repr__(self) -> str:
        return f"<step {self.name}>"


KEYWORD_ONLY: Final = inspect.Parameter.KEYWORD_ONLY


def plain_name(fn: Callable[..., Any], given: str | None) -> str:
    """The name of a function; something else that can be called must be given one."""
    name = getattr(fn, "__name__", None) or given
    if name is None:
        said = f"{fn!r} has no name: write a function, or give @step(name=...)"
        raise FlowError("flow.function", said)
    return str(name)


def check_options(step: str, options: Mapping[str, Any]) -> None:
    """Refuse at once what is no option of a step, and what is no duration."""
    for name in options:
        if name not in KNOWN:
            known = ", ".join(KNOWN)
            said = f"{name!r} is no option of a step ({step}); known are: {known}"
            raise FlowError("flow.option", said)
    for name in DURATIONS:
        value = options.get(name)
        if isinstance(value, str) and duration_ms(value) is None:
            said = f"{name}={value!r} of {step} is not {DURATION_FORM}"
            raise FlowError("flow.option", said)


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
