"""`@flow`: a workflow written as a function. It is traced once, into the same plan as YAML."""

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

import msgspec

from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.finding import Finding, Place
from pawlflow.definition.frame import PAWL
from pawlflow.definition.shape import Workflow
from pawlflow.definition.workflow import check_workflow
from pawlflow.effects.refs import Expr, FlowError, Ref, expression, is_name
from pawlflow.effects.steps import OPTIONS, TRACING, Step
from pawlflow.flows.code import CodeSource, node_of
from pawlflow.flows.trace import DURATIONS, Functions, Tracing
from pawlflow.flows.values import duration_of, template_of
from pawlflow.flows.words import child

P = ParamSpec("P")
R = TypeVar("R")
# Options as Python spells them, and as YAML does.
FIELDS: Final = {
    "description": "description",
    "input": "input",
    "timeout": "timeout",
    "failure_policy": "failurePolicy",
    "max_parallel": "maxParallel",
    "concurrency": "concurrency",
    "rate": "rate",
    "trigger": "trigger",
    "effects": "effects",
    "budget": "budget",
    "on_undo_failure": "onUndoFailure",
    "parallel_undo": "parallelUndo",
    "priority": "priority",
    "search": "search",
    "retention": "retention",
    "escalation": "escalation",
}


class Brought(msgspec.Struct, frozen=True):
    """What must be there so that a flow can run: functions by effect, and flows by name."""

    functions: Functions
    children: dict[str, Any]


class Traced(msgspec.Struct, frozen=True):
    """What tracing a flow gave."""

    workflow: Workflow
    findings: list[Finding]  # warnings
    brought: Brought


class Flow(Generic[P, R]):
    """A workflow written as a function."""

    def __init__(
        self,
        fn: Callable[P, R],
        *,
        name: str | None = None,
        version: int | None = None,
        build: bool = False,
        **options: Any,
    ) -> None:
        code = getattr(fn, "__code__", None)
        if code is None:
            said = f"{fn!r} is no function: @flow stands on a `def`"
            raise FlowError("flow.function", said)
        self.where = Place(code.co_filename, code.co_firstlineno, 1)
        self.check_function(fn)
        if inspect.iscoroutinefunction(fn):
            raise FlowError(
                "flow.async",
                f"{fn.__name__} is async: a flow is a plain `def`, and calls its steps "
                "without await. For a function that runs and waits, use @loop",
                self.where,
            )
        unknown = sorted(options.keys() - FIELDS.keys())
        if unknown:
            known = ", ".join(("name", "version", "build", *FIELDS))
            raise FlowError(
                "flow.option",
                f"{unknown[0]!r} is no option of a flow; known are: {known}",
                self.where,
            )
        self.fn = fn
        self.name = name or fn.__name__
        self.version = version
        self.build = build
        self.given = {key: value for key, value in options.items() if value is not None}
        self.__doc__ = fn.__doc__
        self.__name__ = fn.__name__
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def check_function(self, fn: Callable[..., Any]) -> None:
        """Refuse functions that cannot be read as a flow."""
        parameters = inspect.signature(fn).parameters
        rest = [p.name for p in parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            said = "it is a generator: a flow calls its steps and returns, it does not yield"
        elif rest:
            said = f"*{rest[0]} has no names: a flow takes the input whole, or members by name"
        elif next(iter(parameters), "") == "self":
            said = "it is a method: a flow is a plain function, there is no self to read it with"
        else:
            return
        raise FlowError("flow.function", f"{fn.__name__}: {said}", self.where)

    @cached_property
    def traced(self) -> Traced:
        """What the function says, read once."""
        if self.build:
            raise FlowError(
                "flow.build",
                f"{self.name} is built from its input: start it, or ask built(input)",
                self.where,
            )
        return self.trace({each.name: self.argument(each) for each in self.parameters()})

    @property
    def workflow(self) -> Workflow:
        """The workflow, as a YAML file of the same content would give it."""
        return self.traced.workflow

    @property
    def plan_hash(self) -> str:
        """The hash of the definition: equal for a YAML file that says the same."""
        return definition_hash(self.workflow).hex()

    def brought(self) -> Brought:
        """What must be there so that it can run."""
        return self.traced.brought

    def built(self, input: Any) -> Traced:
        """The plan of a flow with `build=True` for this input."""
        parameters = self.parameters()
        if len(parameters) == 1:
            return self.trace({parameters[0].name: input})
        input = {} if input is None else input
        if not isinstance(input, Mapping):
            raise FlowError("flow.input", f"the input of {self.name} is a mapping", self.where)
        try:
            bound = inspect.signature(self.fn).bind(**input)
        except TypeError as error:
            raise FlowError("flow.input", f"{self.name}: {error}", self.where) from None
        bound.apply_defaults()
        return self.trace(bound.arguments)

    def parameters(self) -> list[inspect.Parameter]:
        """What the function takes: the whole input, or members of it by name."""
        return list(inspect.signature(self.fn).parameters.values())

    def argument(self, parameter: inspect.Parameter) -> Ref[Any]:
        """One parameter, while the flow is traced."""
        if len(self.parameters()) == 1:
            return Ref(Expr("input"))
        name = parameter.name
        text = f"input.{name}" if is_name(name) else f"input['{name}']"
        if parameter.default is parameter.empty:
            return Ref(Expr(text))
        try:
            default = expression(parameter.default).text
        except FlowError as error:
            said = f"the default of {name}: {error.said}"
            raise FlowError(error.code, said, self.where) from None
        return Ref(Expr(f"has({text}) ? {text} : {default}", binds=1))

    def trace(self, arguments: Mapping[str, Any]) -> Traced:
        """Run the function, and read what it wrote down."""
        tracing = Tracing(self.name, self.where)
        token = TRACING.set(tracing)
        try:
            positional = [p for p in self.parameters() if p.kind is not p.KEYWORD_ONLY]
            named = {p.name: arguments[p.name] for p in self.parameters() if p not in positional}
            returned = self.fn(*(arguments[p.name] for p in positional), **named)
            output = self.output_of(returned)
        finally:
            TRACING.reset(token)
        spec: dict[str, Any] = self.spec()
        spec["steps"] = list(tracing.steps.values())
        if output is not None:
            spec["output"] = output
        return defined(tracing, spec, self.version)

    def output_of(self, returned: Any) -> Any:
        """What the flow gives back; what cannot be is told of the function that returned it."""
        try:
            return None if returned is None else template_of(returned, set())
        except FlowError as error:
            raise FlowError(error.code, f"the output: {error.said}", self.where) from None

    def spec(self) -> dict[str, Any]:
        """The options, as YAML says them."""
        found: dict[str, Any] = {}
        parameters = self.parameters()
        if len(parameters) > 1:  # members by name: those without a default must be there
            needed = [p.name for p in parameters if p.default is p.empty]
            found["input"] = {"type": "object", **({"required": needed} if needed else {})}
        for name, value in self.given.items():
            if name in DURATIONS:
                found[FIELDS[name]] = duration_of(value)
            elif name == "input" and isinstance(value, type):
                found["input"] = schema_of(value)
            else:
                found[FIELDS[name]] = plain_value(value)
        return found

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Ref[R]:
        """Inside another flow: run this one as a child."""
        if TRACING.get() is None:
            raise FlowError(
                "flow.called",
                f"{self.name} is a flow: start it with `await pawl.start({self.__name__}, input)`. "
                "Its steps can be called and tested by themselves",
            )
        parameters = self.parameters()
        own = {each.name for each in parameters}
        options: dict[str, Any] = {
            key: kwargs.pop(key) for key in OPTIONS if key in kwargs and key not in own
        }
        try:
            bound = inspect.signature(self.fn).bind(*args, **kwargs)
        except TypeError as error:
            raise FlowError("flow.arguments", f"{self.name}: {error}") from None
        given = bound.arguments
        whole = given.get(parameters[0].name) if len(parameters) == 1 else dict(given)
        return child(self, whole, **options)

    def __repr__(self) -> str:
        return f"<flow {self.name}>"


def defined(tracing: Tracing, spec: dict[str, Any], version: int | None = None) -> Traced:
    """The workflow that was written down, by the rules of a file."""
    about: dict[str, Any] = {"name": tracing.flow}
    if version is not None:
        about["version"] = version
    document = {"apiVersion": PAWL, "kind": "Workflow", "metadata": about, "spec": spec}
    workflow, findings = check_workflow(node_of(document, CodeSource(tracing.where)))
    if workflow is None:
        raise refused(tracing.flow, [each for each in findings if each.severity == "error"])
    return Traced(workflow, findings, Brought(tracing.functions, tracing.children))


def refused(name: str, errors: list[Finding]) -> FlowError:
    """What a flow says is no valid definition: the first reason, and how many there are."""
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    way_out = f": {first.hint}" if first.hint else ""
    message = f"{name} is no valid workflow: {first.message}{way_out} [{first.code}]{more}"
    error = FlowError("flow.invalid", message, Place(first.file, first.line, first.column))
    error.add_note("\n".join(f"{Path(e.file).name}:{e.line}: {e.message}" for e in errors))
    return error


def schema_of(kind: type) -> Any:
    """The JSON Schema of a type: a dataclass, a TypedDict, a struct, or a pydantic model."""
    own = getattr(kind, "model_json_schema", None)
    if callable(own):
        return own()
    try:
        (schema,), components = msgspec.json.schema_components([kind])
    except TypeError as error:
        raise FlowError(
            "flow.input", f"there is no JSON Schema of {kind.__name__}: {error}"
        ) from None
    return {**schema, "$defs": components} if components else schema


def plain_value(value: Any) -> Any:
    """An option as plain values: tuples as lists, mappings as dicts."""
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain_value, value))
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, Step):
        return value.name
    return value


@overload
def flow(fn: Callable[P, R], /) -> Flow[P, R]: ...
@overload
def flow(
    *,
    name: str | None = None,
    version: int | None = None,
    build: bool = False,
    timeout: str | None = None,
    failure_policy: str | None = None,
    description: str | None = None,
    input: Any = None,
    max_parallel: int | None = None,
    concurrency: Mapping[str, Any] | None = None,
    rate: Mapping[str, Any] | None = None,
    trigger: Mapping[str, Any] | None = None,
    effects: Any = None,
    budget: Mapping[str, Any] | None = None,
    on_undo_failure: str | None = None,
    parallel_undo: bool | None = None,
    priority: int | None = None,
    search: Mapping[str, str] | None = None,
    retention: Mapping[str, str] | None = None,
    escalation: Any = None,
) -> Callable[[Callable[P, R]], Flow[P, R]]: ...
def flow(fn: Callable[P, R] | None = None, /, **options: Any) -> Any:
    """Make a function a flow. With `build=True` it is traced for each start, with its input."""
    if fn is not None:
        return Flow(fn)
    return lambda decorated: Flow(decorated, **options)
