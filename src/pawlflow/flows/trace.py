"""Tracing: a flow's function runs once, and each step it calls is written down as in YAML."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pawlflow.definition.finding import Place
from pawlflow.definition.read import Node
from pawlflow.effects.refs import Expr, FlowError, Ref, expr_of, here, is_name
from pawlflow.effects.steps import FIELDS, KNOWN, OPTIONS, TRACING, Retry, Step
from pawlflow.flows.code import CodeSource, node_of
from pawlflow.flows.values import duration_of, expression_of, steps_named, template_of
from pawlflow.model.ids import STEP_NAME

UNFIT: Final = re.compile(r"[^a-z0-9_-]+")
DURATIONS: Final = ("timeout", "heartbeat", "grace", "expires")
Functions = dict[str, Step[..., Any]]


class Tracing:
    """What a flow has called so far. Steps of a flow know each other by name."""

    def __init__(self, flow: str, where: Place) -> None:
        self.flow = flow
        self.where = where
        self.steps: dict[str, Node] = {}
        self.order: dict[str, int] = {}
        self.functions: Functions = {}
        self.children: dict[str, Any] = {}  # flows that are children, by name
        self.fan: dict[str, Any] | None = None  # what the one step inside each() gets
        self.fanned: list[str] = []

    # Calls

    def call(
        self, step: Step[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Ref[Any]:
        """A step is called: bind its arguments, and write it down."""
        options, given = self.split(step, kwargs)
        self.know(step)
        read: set[str] = set()
        params = template_of(bound(step, args, given), read, secrets=True)
        fields = {"run": step.name, **self.policy_of(step)}
        if params:
            fields["with"] = params
        return self.add(options.pop("name", None) or step.__name__, fields, read, **options)

    def split(
        self, step: Step[..., Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Options of the call, and arguments of the function; its own parameters go first."""
        own = step.signature.parameters
        options = dict(step.called)
        given = dict(kwargs)
        for name in OPTIONS:
            if name in given and name not in own:
                options[name] = given.pop(name)
        return options, given

    def know(self, step: Step[..., Any]) -> None:
        """Remember the function, and that of its undo: whoever starts the flow needs both."""
        known = self.functions.setdefault(step.name, step)
        if known.fn is not step.fn:
            raise FlowError(
                "flow.two_functions",
                f"two functions stand for the effect {step.name!r}: "
                f"{qualified(known)} and {qualified(step)}. Give one another @step(name=...)",
            )
        undo = undo_function(step)
        if undo is not None and undo.name not in self.functions:
            self.know(undo)

    def policy_of(self, step: Step[..., Any]) -> dict[str, Any]:
        """What `@step(...)` says, as YAML says it."""
        fields = written(step.policy)
        undo = step.policy.get("undo")
        if isinstance(undo, Step):
            fields["undo"] = {"run": undo.name}
        elif isinstance(undo, str):
            fields["undo"] = {"run": undo}
        elif undo is not None:
            fields["undo"] = template_of(undo, set(), secrets=True)
        return fields

    # Steps

    def add(
        self,
        name: str,
        fields: dict[str, Any],
        read: set[str],
        *,
        after: Any = (),
        when: Any = None,
    ) -> Ref[Any]:
        """Write a step down, with its dependencies; gives the Ref of its result."""
        name = self.free_name(name)
        place = here()
        if when is not None:
            fields["when"] = expression_of(when, read)
        if self.fan is not None:
            read |= self.fan["read"]
            fields |= self.fan["fields"]
            self.fanned.append(name)
        edges = steps_named(after)
        wanted = {each if isinstance(each, str) else each["step"]: each for each in edges}
        for each in read:
            wanted.setdefault(each, each)
        self.refuse_strangers(wanted)
        if wanted:
            fields["dependsOn"] = [wanted[each] for each in sorted(wanted, key=self.position)]
        self.order[name] = len(self.order)
        self.steps[name] = node_of({"name": name, **fields}, CodeSource(place))
        return Ref(step_expr(name, self))

    def free_name(self, name: str) -> str:
        """The name of a step; each is given once."""
        if not STEP_NAME.match(name) or name == "undo":
            raise FlowError(
                "flow.name",
                f"{name!r} cannot be the name of a step: small letters, digits, - and _, beginning "
                f'with a letter. Give the call a name: name="{name_from(name)}"',
            )
        if name in self.order:
            raise FlowError(
                "flow.step_twice",
                f"{self.flow} has a step {name!r} already: give this call a name of its own, "
                f'name="{name}-2", or use each() for a list',
            )
        return name

    def position(self, step: str) -> int:
        """Where a step stands in the flow; one that is not there comes last, and is refused."""
        return self.order.get(step, len(self.order))

    def refuse_strangers(self, wanted: Mapping[str, Any]) -> None:
        """A step that this flow has not called cannot be waited for."""
        for name in wanted:
            if name not in self.order:
                raise FlowError(
                    "flow.foreign_ref",
                    f"{name!r} is no step of {self.flow} so far; "
                    f"steps are: {', '.join(self.order) or 'none'}",
                )

    @contextmanager
    def fanning(self, fields: dict[str, Any], read: set[str]) -> Iterator[list[str]]:
        """The one step called inside runs once per item."""
        self.fan, self.fanned = {"fields": fields, "read": read}, []
        try:
            yield self.fanned
        finally:
            self.fan = None


def step_expr(name: str, tracing: Tracing) -> Expr:
    """The result of a step."""
    text = f"steps.{name}" if is_name(name) else f"steps['{name}']"
    return Expr(text, frozenset({name}), tracing)


def bound(step: Step[..., Any], args: Sequence[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name; `ctx` is the engine's to give."""
    signature = step.signature
    parameters = [each for each in signature.parameters.values() if each.name != "ctx"]
    try:
        found = signature.replace(parameters=parameters).bind(*args, **given)
    except TypeError as error:
        hint = ""
        if any(name in given for name in OPTIONS):
            hint = "; options of the call that are also parameters go into .options(...)"
        if any(name in KNOWN for name in given):
            hint = f"; options of the step go into {step.__name__}.options(...)(...)"
        if next(iter(signature.parameters), "") == "self":
            hint = "; a step is a plain function, not a method: there is no self to call it on"
        raise FlowError("flow.arguments", f"{step.name}: {error}{hint}") from None
    arguments: dict[str, Any] = {}
    for name, value in found.arguments.items():
        kind = signature.parameters[name].kind
        if kind is kind.VAR_KEYWORD:
            arguments |= value
        elif kind is kind.VAR_POSITIONAL or kind is kind.POSITIONAL_ONLY:
            raise FlowError(
                "flow.arguments", f"{step.name}: {name} has no name to be kept under; name it"
            )
        else:
            arguments[name] = value
    return arguments


def undo_function(step: Step[..., Any]) -> Step[..., Any] | None:
    """The function of a step's undo, if it can be found: given, or beside the step by its name."""
    undo = step.policy.get("undo")
    if isinstance(undo, Step):
        return undo
    name = undo.get("run") if isinstance(undo, Mapping) else undo
    near = vars_of(step.fn).values()
    return next((each for each in near if isinstance(each, Step) and each.name == name), None)


def vars_of(fn: Callable[..., Any]) -> dict[str, Any]:
    """What a function can see: the names of its module, and of the function around it."""
    seen = dict(getattr(fn, "__globals__", {}))
    code, cells = getattr(fn, "__code__", None), getattr(fn, "__closure__", None)
    for name, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=False):
        try:
            seen[name] = cell.cell_contents
        except ValueError:  # not filled yet: defined further down
            continue
    return seen


def written(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as the fields of a step."""
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name == "retry":
            fields["retryPolicy"] = retry_of(value)
        elif name in FIELDS:
            fields[FIELDS[name]] = plain_option(name, value)
        elif name not in KNOWN:
            known = ", ".join(KNOWN)
            raise FlowError("flow.option", f"{name!r} is no option of a step; known are: {known}")
    return fields


def plain_option(name: str, value: Any) -> Any:
    """An option as YAML has it."""
    if name in DURATIONS:
        return duration_of(value)
    return dict(value) if isinstance(value, Mapping) else value


def retry_of(retry: Any) -> dict[str, Any]:
    """A retry policy as YAML has it; a number is that many retries."""
    if isinstance(retry, int):
        retry = Retry(max=retry)
    if isinstance(retry, Mapping):
        return dict(retry)
    if not isinstance(retry, Retry):
        raise FlowError("flow.option", f"retry takes Retry(max=3, ...), not {retry!r}")
    return {
        "maxRetries": retry.max,
        "backoff": retry.backoff,
        "initialDelay": duration_of(retry.initial),
        "maxDelay": duration_of(retry.cap),
    }


def qualified(step: Step[..., Any]) -> str:
    """A function as people find it."""
    return f"{step.__module__}.{step.__qualname__}"


def current(word: str) -> Tracing:
    """The flow that is being traced; words like `approval` make sense in one only."""
    tracing = TRACING.get()
    if not isinstance(tracing, Tracing):
        raise FlowError(
            "flow.outside", f"{word}() belongs into a function with @flow; here no flow is traced"
        )
    return tracing


def name_from(words: str) -> str:
    """A step's name made of something else: an event, a role."""
    name = UNFIT.sub("-", words.lower()).strip("-_")[:63]
    return name if name[:1].isalpha() and name != "undo" else f"step-{name}"[:63].rstrip("-")


def of_one_step(ref: Any) -> str | None:
    """The step whose whole result a Ref is."""
    if not isinstance(ref, Ref):
        return None
    steps = expr_of(ref).steps
    return next(iter(steps)) if len(steps) == 1 else None
