"""`@loop`: an async function that runs as one step and keeps what it has found under names.

A crash resumes after the last checkpoint, however the function was changed in between: a checkpoint
is found by its name, and one that is no longer asked for is reported.
"""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, overload

from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.finding import Place
from pawlflow.definition.shape import Workflow
from pawlflow.effects.checkpoints import LoopContext
from pawlflow.effects.context import Context
from pawlflow.effects.progress import Host
from pawlflow.effects.refs import FlowError, Ref, expr_of
from pawlflow.effects.steps import Retry, Step
from pawlflow.flows.flow import Brought, Traced, defined
from pawlflow.flows.trace import Tracing, name_from
from pawlflow.model.ids import STEP_NAME
from pawlflow.model.intents import Call

P = ParamSpec("P")
R = TypeVar("R")


class Loop(Step[P, R]):
    """A step whose function has checkpoints; by itself it is a workflow of one step."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        /,
        *,
        strict: bool = False,
        **policy: Any,
    ) -> None:
        super().__init__(fn, name, **policy)
        self.carried = self.run_once
        self.strict = strict  # a checkpoint that is kept and not asked for fails the loop
        code = fn.__code__
        self.where = Place(code.co_filename, code.co_firstlineno, 1)
        if not inspect.iscoroutinefunction(fn):
            raise FlowError(
                "loop.function",
                f"{fn.__name__} is no `async def`: a loop awaits ctx.do",
                self.where,
            )
        if next(iter(self.signature.parameters), "") != "ctx":
            raise FlowError(
                "loop.function",
                f"the first parameter of {fn.__name__} is not ctx: `async def {fn.__name__}(ctx, "
                "...)`; a loop without checkpoints is a @step",
                self.where,
            )

    def options(self, **changed: Any) -> Self:
        """The same loop with other options; `strict` is one of them."""
        strict = changed.pop("strict", self.strict)
        other = super().options(**changed)
        other.strict = strict
        return other

    # Carried out by an engine, and without one

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]: ...
        @overload
        def __call__(
            self, ctx: LoopContext, /, *args: P.args, **kwargs: P.kwargs
        ) -> Coroutine[Any, Any, R]: ...
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
        def __call__(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[misc]
            """A Step's, and one with a context in front, to try the loop out."""

    def context(self, call: Call, beat: Callable[[], None], host: Host) -> Context:
        """The context of an attempt."""
        return LoopContext(call, beat, host)

    async def run_once(self, ctx: LoopContext, **arguments: Any) -> Any:
        """One attempt: from what was kept to the result, and what the names say then."""
        await ctx.begin()
        try:
            result = await self.fn(ctx=ctx, **arguments)
        except Exception:
            ctx.failed()
            raise
        ctx.end(strict=self.strict)
        return result

    def plain(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the function without an engine: `ctx` may be left out, or be an offline one."""
        given = dict(kwargs)
        ctx = given.pop("ctx", None)
        if ctx is None and args and isinstance(args[0], LoopContext):
            ctx, args = args[0], args[1:]
        bound = self.signature.bind(ctx or LoopContext.offline(self.__name__), *args, **given)
        arguments: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            several = self.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD
            arguments |= value if several else {name: value}
        return self.run_once(**arguments)

    # By itself

    @property
    def workflow(self) -> Workflow:
        """A workflow of this one step: its input is the loop's arguments, its output the result."""
        return self.traced.workflow

    @property
    def plan_hash(self) -> str:
        """The hash of that definition: equal for a YAML file that says the same."""
        return definition_hash(self.workflow).hex()

    def brought(self) -> Brought:
        """What must be there so that it can run."""
        return self.traced.brought

    @cached_property
    def traced(self) -> Traced:
        """The workflow, and what it needs."""
        name = self.name if STEP_NAME.match(self.name) else name_from(self.name)
        tracing = Tracing(name, self.where)
        tracing.know(self)
        fields = {"run": self.name, **tracing.policy_of(self), "with": "${ input }"}
        output = expr_of(tracing.add(name, fields, set())).text
        return defined(
            tracing, {"steps": list(tracing.steps.values()), "output": f"${{ {output} }}"}
        )

    def __repr__(self) -> str:
        return f"<loop {self.name}>"


@overload
def loop(fn: Callable[Concatenate[LoopContext, P], Coroutine[Any, Any, R]], /) -> Loop[P, R]: ...
@overload
def loop(
    *,
    name: str | None = None,
    retry: Retry | None = None,
    timeout: str | None = None,
    heartbeat: str | None = None,
    undo: "str | Step[..., Any] | Mapping[str, Any] | None" = None,
    strict: bool = False,
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
) -> Callable[[Callable[Concatenate[LoopContext, P], Coroutine[Any, Any, R]]], Loop[P, R]]: ...
def loop(fn: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make an async function a loop. With `strict`, a checkpoint that was renamed fails it."""
    name = options.pop("name", None)
    if fn is not None:
        return Loop(fn, name, **options)
    return lambda decorated: Loop(decorated, name, **options)
