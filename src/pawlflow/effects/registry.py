"""The registry: which function carries out an effect, and how its arguments are found."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, overload

import msgspec

from pawlflow.effects.context import Context
from pawlflow.model.intents import Call

P = ParamSpec("P")
R = TypeVar("R")


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often a failed attempt is made again, and after how long."""

    max: int = 3
    backoff: str = "exponential"
    initial: str = "1s"
    cap: str = "60s"


class Step(Generic[P, R]):
    """A function that an engine can carry out; without one it is still the plain function."""

    def __init__(self, fn: Callable[P, R], name: str | None, **policy: Any) -> None:
        self.fn = fn
        self.name = name or fn.__name__
        self.policy = policy
        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plain function."""
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<step {self.name}>"


@overload
def step(fn: Callable[P, R], /) -> Step[P, R]: ...
@overload
def step(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: str | None = None,
    undo: str | None = None,
) -> Callable[[Callable[P, R]], Step[P, R]]: ...
def step(
    fn: Callable[P, R] | None = None, /, *, name: str | None = None, **policy: Any
) -> Step[P, R] | Callable[[Callable[P, R]], Step[P, R]]:
    """Make a function a step. `name` is the effect it stands for; the function's own by default."""
    if fn is not None:
        return Step(fn, name, **policy)
    return lambda decorated: Step(decorated, name, **policy)


class BindError(Exception):
    """The parameters of a call do not fit the function."""


class Executor(msgspec.Struct, frozen=True):
    """A function under an effect's name, ready to be called."""

    name: str
    fn: Callable[..., Any]
    is_async: bool
    names: tuple[str, ...]  # its parameters, without `ctx`
    required: frozenset[str]
    takes_ctx: bool
    takes_any: bool

    def arguments(self, call: Call, ctx: Context | None) -> dict[str, Any]:
        """The arguments by name. Raises BindError, naming what is missing or too much."""
        if not self.names and not self.takes_any:
            return {"ctx": ctx} if self.takes_ctx else {}
        given = self.given(call)
        arguments = self.chosen(given)
        missing = self.required - arguments.keys()
        if missing:
            known = ", ".join(sorted(given)) or "nothing"
            raise BindError(f"{self.name} needs {', '.join(sorted(missing))}; `with` gives {known}")
        if self.takes_ctx:
            arguments["ctx"] = ctx
        return arguments

    def given(self, call: Call) -> Mapping[str, Any]:
        """What the call brings; an undo without `with` brings the command and its result."""
        params = call.params.value
        if not isinstance(params, dict):
            return {"value": params}
        if call.direction == "undo" and params.keys() == {"command", "result"}:
            command = params["command"]
            named = command if isinstance(command, dict) else {}
            return {**named, **params}
        return params

    def chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What of it the function takes. One that takes a single other thing gets it all."""
        if self.takes_any:
            return dict(given)
        chosen = {name: given[name] for name in self.names if name in given}
        if not chosen and len(self.names) == 1 and self.required:
            return {self.names[0]: dict(given)}
        return chosen


class Registry:
    """Executors by effect name, and agents by role."""

    def __init__(self) -> None:
        self.effects: dict[str, Executor] = {}
        self.agents: dict[str, Executor] = {}

    def add(self, name: str, fn: Callable[..., Any]) -> None:
        """Let a function carry out an effect."""
        self.effects[name] = executor_of(name, fn)

    def add_agent(self, role: str, fn: Callable[..., Any]) -> None:
        """Let a function do the tasks of an agent's role."""
        self.agents[role] = executor_of(role, fn)

    def add_module(self, module: Any) -> list[str]:
        """Register every step a module has; returns their names."""
        found = [each for each in vars(module).values() if isinstance(each, Step)]
        for each in found:
            self.add(each.name, each.fn)
        return sorted({each.name for each in found})

    def find(self, call: Call) -> Executor | None:
        """Who carries this call out. A task for a role may also be a function of that name."""
        if call.by_agent:
            role = call.role or call.target
            return self.agents.get(role) or self.effects.get(role) or self.agents.get("*")
        return self.effects.get(call.target) or self.effects.get("*")

    def knows(self, target: str, *, by_agent: bool) -> bool:
        """Is there an executor for this?"""
        places = (self.agents, self.effects) if by_agent else (self.effects,)
        return any(target in place for place in places) or "*" in places[0]


def executor_of(name: str, fn: Callable[..., Any]) -> Executor:
    """Look at a function once."""
    plain = fn.fn if isinstance(fn, Step) else fn
    parameters = inspect.signature(plain).parameters
    kinds = inspect.Parameter
    named = [
        p
        for p in parameters.values()
        if p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]
    rest = [p for p in named if p.name != "ctx"]
    return Executor(
        name,
        plain,
        inspect.iscoroutinefunction(plain),
        tuple(p.name for p in rest),
        frozenset(p.name for p in rest if p.default is kinds.empty),
        "ctx" in parameters,
        any(p.kind is kinds.VAR_KEYWORD for p in parameters.values()),
    )
