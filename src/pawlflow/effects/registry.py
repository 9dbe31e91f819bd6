"""The registry: which function carries out an effect, and how its arguments are found."""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pawlflow.effects.context import Context
from pawlflow.effects.processes import Place, place_of
from pawlflow.effects.secrets import Secrets
from pawlflow.effects.steps import Step
from pawlflow.effects.typed import Convert, ConvertError, converters_of
from pawlflow.model.intents import Call
from pawlflow.model.trouble import PawlError

log = logging.getLogger("pawl.effects")
NOTED: set[tuple[str, str, str]] = set()  # parameters that were found to be renamed
UNDO_NAMES: Final = ("command", "result")


class BindError(Exception):
    """The parameters of a call do not fit the function."""


def plain_context(call: Call, beat: Callable[[], None], _: Any) -> Context:
    """The context of an attempt, whoever carries it out."""
    return Context(call, beat)


class Source(msgspec.Struct, frozen=True):
    """Which function this is, however often its module was imported or its cell was run."""

    module: str
    name: str
    file: str

    def same(self, other: "Source") -> bool:
        """Is this the same function? A file may be two modules: `__main__`, and its own name."""
        one_place = self.module == other.module or (self.file and self.file == other.file)
        return self.name == other.name and bool(one_place)

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Executor(msgspec.Struct, frozen=True):
    """A function under an effect's name, ready to be called."""

    name: str
    fn: Callable[..., Any]
    is_async: bool
    names: tuple[str, ...]  # its parameters, without `ctx`
    required: frozenset[str]
    takes_ctx: bool
    takes_any: bool
    made: Mapping[str, Convert] = {}  # parameters that want a type of their own
    place: Place | None = None  # of one that runs in a process of its own
    context: Callable[[Call, Callable[[], None], Any], Context] = plain_context
    traced: bool = False  # flows call it by the names of its parameters, and by nothing else
    source: "Source | None" = None  # the function that somebody wrote

    def arguments(self, call: Call, ctx: Context | None, params: Any = None) -> dict[str, Any]:
        """The arguments by name. Raises BindError, naming what is missing or too much.

        `params` are those of the call with secrets in them, if it has any.
        """
        if not self.names and not self.takes_any:
            return {"ctx": ctx} if self.takes_ctx else {}
        given = self.given(call, call.params.value if params is None else params)
        arguments = self.chosen(given)
        missing = self.required - arguments.keys()
        if missing:
            known = ", ".join(sorted(given)) or "nothing"
            raise BindError(f"{self.name} needs {', '.join(sorted(missing))}; `with` gives {known}")
        for name, convert in self.made.items():
            if name in arguments:
                try:
                    arguments[name] = convert(arguments[name])
                except ConvertError as error:
                    raise BindError(f"{self.name} cannot take {name}: {error}") from error
        if self.takes_ctx:
            arguments["ctx"] = ctx
        return arguments

    async def close(self) -> None:
        """Let go of what it holds: a function holds nothing."""

    def given(self, call: Call, params: Any) -> Mapping[str, Any]:
        """What the call brings; an undo without `with` brings the command and its result."""
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
        if self.traced and (renamed := self.renamed(given)):
            return chosen | {renamed[1]: given[renamed[0]]}
        if not chosen and len(self.names) == 1 and self.required:
            return {self.names[0]: dict(given)}
        return chosen

    def renamed(self, given: Mapping[str, Any]) -> tuple[str, str] | None:
        """The one parameter that has another name now than when a flow was traced."""
        missing = self.required - given.keys()
        unknown = given.keys() - {*self.names, *UNDO_NAMES}
        if len(missing) != 1 or len(unknown) != 1:
            return None
        [old], [new] = unknown, missing
        if (self.name, old, new) not in NOTED:
            NOTED.add((self.name, old, new))
            log.warning("%s is called with %s, and gets it as %s", self.name, old, new)
        return old, new

    def misfit(self, call: Call) -> str:
        """Why it cannot carry out a call that an earlier version of it was meant for."""
        if not self.traced or call.direction == "undo" or self.takes_any:
            return ""
        given = self.given(call, call.params.value)
        missing = self.required - given.keys()
        if not missing or self.renamed(given):
            return ""
        needs, gives = ", ".join(sorted(missing)), ", ".join(sorted(given)) or "nothing"
        return f"the function here needs {needs}, and the call gives {gives}"


class Registry:
    """Executors by effect name, and agents by role."""

    def __init__(self) -> None:
        self.effects: dict[str, Executor] = {}
        self.agents: dict[str, Executor] = {}
        self.secrets: Secrets | None = None  # for executors that are no function
        self.elsewhere: Callable[[str], bool] = lambda _: False  # effects that services carry out

    def add(
        self, name: str, fn: Callable[..., Any], pool: str | None = None, *, traced: bool = False
    ) -> None:
        """Let a function carry out an effect.

        Raises PawlError if it cannot in this pool, or if the name is another function's.
        """
        known = self.effects.get(name)
        if known is not None:
            refuse_other(known, fn, "effect")
            traced = traced or known.traced
        self.effects[name] = replace(executor_of(name, fn, pool), traced=traced)

    def put(self, executor: Executor) -> None:
        """Let something else than a function carry out an effect. Raises PawlError as `add` does.

        The same once more takes the place of the one before.
        """
        known = self.effects.get(executor.name)
        if known is not None and known.source != executor.source:
            said = f"the effect {executor.name!r} is carried out by {known.source} already"
            raise PawlError("effect.taken", f"{said}: give {executor.source} a name of its own")
        self.effects[executor.name] = executor

    async def close(self) -> None:
        """Let executors go of what they hold, such as connections."""
        for executor in {id(each): each for each in self.effects.values()}.values():
            await executor.close()

    def add_agent(self, role: str, fn: Callable[..., Any], pool: str | None = None) -> None:
        """Let a function do the tasks of an agent's role. Raises PawlError as `add` does."""
        if role in self.agents:
            refuse_other(self.agents[role], fn, "role")
        self.agents[role] = executor_of(role, fn, pool)

    def add_module(self, module: Any) -> list[str]:
        """Register every step a module has; returns their names.

        Those of a module with flows are called by flows, of this version or an earlier one; those
        of a module without are for files. A loop is a workflow of its own, too.
        """
        held = list(vars(module).values())
        has_flows = any(is_flow(each) and not isinstance(each, Step) for each in held)
        found = [each for each in held if isinstance(each, Step)]
        self.refuse_taken(found)
        for each in found:
            self.add(each.name, each, traced=has_flows or is_flow(each))
        return sorted({each.name for each in found})

    def refuse_taken(self, steps: Iterable[Step[..., Any]]) -> None:
        """Refuse before any of these is registered, if one of their names is another's."""
        for each in steps:
            if each.name in self.effects:
                refuse_other(self.effects[each.name], each, "effect")

    def free_for(self, step: Step[..., Any]) -> bool:
        """Is the name of this step nobody else's?"""
        known = self.effects.get(step.name)
        return known is None or known.source is None or known.source.same(source_of(step))

    def find(self, call: Call) -> Executor | None:
        """Who carries this call out. A task for a role may also be a function of that name."""
        if call.by_agent:
            role = call.role or call.target
            return self.agents.get(role) or self.effects.get(role) or self.agents.get("*")
        found = self.effects.get(call.target) or self.effects.get("*")
        return None if found is not None and found.traced and found.misfit(call) else found

    def knows(self, target: str, *, by_agent: bool) -> bool:
        """Is there an executor for this?"""
        if not by_agent and self.elsewhere(target):
            return True
        places = (self.agents, self.effects) if by_agent else (self.effects,)
        return any(target in place for place in places) or "*" in places[0]


def is_flow(what: object) -> bool:
    """Is this a workflow that is written in Python: a flow, or a loop by itself?"""
    return hasattr(type(what), "workflow") and hasattr(type(what), "brought")


def source_of(fn: Callable[..., Any]) -> Source:
    """Which function this is; of an object that is called, its class."""
    plain = inspect.unwrap(fn.fn if isinstance(fn, Step) else fn)
    while isinstance(plain, partial):
        plain = plain.func
    named = plain if hasattr(plain, "__qualname__") else type(plain)
    code = getattr(plain, "__code__", None)
    return Source(
        str(named.__module__), named.__qualname__, code.co_filename if code is not None else ""
    )


def refuse_other(known: Executor, fn: Callable[..., Any], what: str) -> None:
    """Refuse a function whose name is another's: instances in flight would be given to it."""
    new = source_of(fn)
    if known.source is not None and not known.source.same(new):
        free = f"{new.module.rpartition('.')[2].strip('_')}.{known.name}"
        raise PawlError(
            "effect.taken",
            f"the {what} {known.name!r} is carried out by {known.source} already, and {new} is "
            f'another function: give one of them a name of its own, as @step(name="{free}")',
        )


def executor_of(name: str, fn: Callable[..., Any], pool: str | None = None) -> Executor:
    """Look at a function once. Raises PawlError if it cannot run in the pool that is asked for."""
    plain = fn.fn if isinstance(fn, Step) else fn
    carried = fn.carried if isinstance(fn, Step) else fn
    asked = pool or (fn.policy.get("pool") if isinstance(fn, Step) else None) or "thread"
    if asked not in ("thread", "process"):
        raise PawlError("step.pool", f'{name}: pool={asked!r} is none; use "thread" or "process"')
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
        carried,
        inspect.iscoroutinefunction(carried),
        tuple(p.name for p in rest),
        frozenset(p.name for p in rest if p.default is kinds.empty),
        "ctx" in parameters,
        any(p.kind is kinds.VAR_KEYWORD for p in parameters.values()),
        converters_of(plain),
        place_of(name, plain) if asked == "process" else None,
        fn.context if isinstance(fn, Step) else plain_context,
        source=source_of(fn),
    )
