"""The words of a flow beside its steps: gates, waits, children, agents, events, lists."""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Literal, TypeVar, overload

from pawlflow.effects.refs import Expr, FlowError, Ref
from pawlflow.effects.steps import Step
from pawlflow.flows.trace import Tracing, current, name_from, written
from pawlflow.flows.values import duration_of, expression_of, template_of

T = TypeVar("T")
R = TypeVar("R")
Duration = str | float | timedelta
After = Any  # Refs, names of steps, success(...), one or several
Undo = str | Step[..., Any] | Mapping[str, Any]  # an effect, the step that does it, or as in YAML


def approval(  # noqa: PLR0913  # what a gate consists of
    name: str,
    *,
    role: str | None = None,
    show: Any = None,
    quorum: int | None = None,
    not_by: Literal["requester"] | None = None,
    expires: Duration | None = None,
    on_reject: Literal["cancel", "fail", "changes"] | None = None,
    on_expire: Literal["escalate", "fail"] | None = None,
    guards: Iterable[str | Step[..., Any]] = (),
    revise: Iterable[str | Step[..., Any]] = (),
    on_failure: str | None = None,
    undo: Undo | None = None,
    undo_on_failure: bool | None = None,
    after: After = (),
    when: Any = None,
) -> Ref[dict[str, Any]]:
    """A gate: the flow waits until people agree. Its result is `{by, comment}`.

    `undo` takes back what was granted; with `undo_on_failure` also what was rejected or expired.
    """
    tracing = current("approval")
    gate = some(
        role=role,
        quorum=quorum,
        notBy=not_by,
        expires=None if expires is None else duration_of(expires),
        onReject=on_reject,
        onExpire=on_expire,
        guards=names_of(guards),
        revise=names_of(revise),
    )
    read: set[str] = set()
    fields: dict[str, Any] = {"approval": gate}
    if show is not None:
        fields["show"] = template_of(show, read)
    fields |= some(onFailure=on_failure, **undoing(tracing, undo, failed=undo_on_failure))
    return tracing.add(name, fields, read, after=after, when=when)


def sleep(
    duration: Duration, *, name: str = "sleep", after: After = (), when: Any = None
) -> Ref[None]:
    """Let time pass: `sleep("10m", after=[promoted])`."""
    fields = {"sleep": duration_of(duration)}
    return current("sleep").add(name, fields, set(), after=after, when=when)


def wait_for(  # noqa: PLR0913  # what a wait consists of
    event: str,
    *,
    match: Any = None,
    timeout: Duration | None = None,
    name: str | None = None,
    on_timeout: str | None = None,
    on_failure: str | None = None,
    undo: Undo | None = None,
    undo_on_failure: bool | None = None,
    after: After = (),
    when: Any = None,
) -> Ref[Any]:
    """Wait for an event or a signal; `match=lambda event: event.id == order.id` chooses which.

    Its result is the event's data. `undo` takes back what it stands for; with `undo_on_failure`
    also where it did not come in time.
    """
    tracing = current("wait_for")
    read: set[str] = set()
    wait = some(
        event=event,
        match=None if match is None else expression_of(match, read, "event"),
        timeout=None if timeout is None else duration_of(timeout),
    )
    fields = {"wait": wait, **some(onTimeout=on_timeout, onFailure=on_failure)}
    fields |= undoing(tracing, undo, failed=undo_on_failure)
    return tracing.add(name or name_from(event), fields, read, after=after, when=when)


def child(
    workflow: Any,
    input: Any = None,
    *,
    name: str | None = None,
    after: After = (),
    when: Any = None,
    **options: Any,
) -> Ref[Any]:
    """Run another flow, or a workflow by its name, as a child. Its output is the result."""
    tracing = current("child")
    read: set[str] = set()
    called = workflow_name(tracing, workflow)
    fields = {"workflow": called, **written(options)}
    given = {} if input is None else template_of(input, read)
    if given:
        fields["with"] = given
    return tracing.add(name or called, fields, read, after=after, when=when)


def agent(  # noqa: PLR0913  # what a task consists of
    role: str,
    action: str | None = None,
    *,
    skill: str | None = None,
    input: Any = None,
    name: str | None = None,
    undo: Mapping[str, Any] | None = None,
    after: After = (),
    when: Any = None,
    **options: Any,
) -> Ref[Any]:
    """A task for an agent of this role. Options are those of a step."""
    tracing = current("agent")
    read: set[str] = set()
    fields: dict[str, Any] = {"agent": role, **some(action=action, skill=skill)}
    fields |= written(options)
    given = {} if input is None else template_of(input, read, secrets=True)
    if given:
        fields["with"] = given
    if undo is not None:
        fields["undo"] = template_of(undo, set(), secrets=True)
    return tracing.add(name or name_from(role), fields, read, after=after, when=when)


def effect(  # what a call consists of
    effect: str,
    input: Any = None,
    *,
    name: str | None = None,
    undo: Mapping[str, Any] | None = None,
    after: After = (),
    when: Any = None,
    **options: Any,
) -> Ref[Any]:
    """An effect by its name, carried out elsewhere: a command for a service, an HTTP endpoint.

    Options are those of a step; `undo={"run": NAME, "with": {"id": expr("result.id")}}`.
    """
    tracing = current("effect")
    read: set[str] = set()
    fields: dict[str, Any] = {"run": effect, **written(options)}
    given = {} if input is None else template_of(input, read, secrets=True)
    if given:
        fields["with"] = given
    if undo is not None:
        fields["undo"] = template_of(undo, set(), secrets=True)
    return tracing.add(name or name_from(effect), fields, read, after=after, when=when)


def emit(
    event: str,
    data: Any = None,
    *,
    name: str | None = None,
    after: After = (),
    when: Any = None,
) -> Ref[None]:
    """Publish a domain event: other workflows may be started by it, or wait for it."""
    tracing = current("emit")
    read: set[str] = set()
    fields: dict[str, Any] = {"emit": event}
    given = {} if data is None else template_of(data, read)
    if given:
        fields["with"] = given
    return tracing.add(name or name_from(event), fields, read, after=after, when=when)


@overload
def each(
    items: Iterable[T],
    fn: Step[[T], R],
    *,
    limit: int | None = ...,
    name: str | None = ...,
    after: After = ...,
    when: Any = ...,
) -> Ref[list[R]]: ...
@overload
def each(
    items: Any,
    fn: Callable[..., Any],
    *,
    limit: int | None = ...,
    name: str | None = ...,
    after: After = ...,
    when: Any = ...,
) -> Ref[list[Any]]: ...
def each(
    items: Any,
    fn: Any,
    *,
    limit: int | None = None,
    name: str | None = None,
    after: After = (),
    when: Any = None,
) -> Ref[list[Any]]:
    """Run a step once per item: `each(request.targets, build, limit=8)`; the results are a list.

    With more arguments, give a function that calls one step:
    `each(request.targets, lambda target: build(target, tree=checkout.tree))`.
    """
    tracing = current("each")
    if tracing.fan is not None:
        raise FlowError("flow.each", "each() inside each(): put the inner one into a child flow")
    read: set[str] = set()
    fields: dict[str, Any] = {"forEach": expression_of(items, read), **some(limit=limit)}
    item: Ref[Any] = Ref(Expr("item"))
    index: Ref[Any] = Ref(Expr("index"))
    options = some(name=name, after=after if is_given(after) else None, when=when)
    with tracing.fanning(fields, read) as fanned:
        if isinstance(fn, Step):
            _ = fn.options(**options)(item)
        elif is_flow(fn):
            _ = child(fn, item, **options)
        else:
            if options:
                raise FlowError("flow.each", "give name, after and when to the step that is called")
            fn(*(item, index)[: parameters_of(fn)])
    if len(fanned) != 1:
        called = ", ".join(fanned) or "none"
        raise FlowError(
            "flow.each",
            f"the function given to each() must call exactly one step; it called {called}. "
            "Put several into a flow of their own, and give that",
        )
    return Ref(Expr(step_text(fanned[0]), frozenset(fanned), tracing))


def step_text(name: str) -> str:
    """The results of a step that ran for each item."""
    return f"steps.{name}" if name.isidentifier() else f"steps['{name}']"


def is_given(after: After) -> bool:
    """Does `after` name anything? To ask a Ref for its truth is refused."""
    return after is not None and not (isinstance(after, tuple) and not after)


def parameters_of(fn: Callable[..., Any]) -> int:
    """Does it take the item alone, or its index too?"""
    if not callable(fn):
        raise FlowError("flow.each", f"each() takes a step, a flow or a function, not {fn!r}")
    code = getattr(fn, "__code__", None)
    needed = 1 if code is None else code.co_argcount - len(fn.__defaults__ or ())
    if needed > 2:
        said = (
            f"the function given to each() takes {needed} arguments; there is an item and its index"
        )
        raise FlowError("flow.each", said)
    return 1 if code is None else min(2, max(1, code.co_argcount))


def workflow_name(tracing: Tracing, workflow: Any) -> str:
    """The name of a child; a flow is remembered, since whoever starts the parent needs it."""
    if isinstance(workflow, str):
        return workflow
    if not is_flow(workflow):
        raise FlowError("flow.child", f"child() takes a flow or a name, not {workflow!r}")
    tracing.children[workflow.name] = workflow
    return str(workflow.name)


def is_flow(what: Any) -> bool:
    """Is this a flow, or something else that has a workflow of its own?"""
    return not isinstance(what, Ref | Step) and hasattr(type(what), "workflow")


def undoing(tracing: Tracing, undo: Undo | None, *, failed: bool | None) -> dict[str, Any]:
    """How a gate or a wait is undone. A function is remembered, since whoever starts needs it."""
    if isinstance(undo, Step):
        tracing.know(undo)
        undo = undo.name
    if isinstance(undo, str):
        undo = {"run": undo}
    made = None if undo is None else template_of(undo, set(), secrets=True)
    return some(undo=made, undoOnFailure=failed)


def names_of(steps: Iterable[str | Step[..., Any]]) -> list[str] | None:
    """Steps by their names; most are called further down, so there is no Ref of them yet."""
    found = [each if isinstance(each, str) else each.__name__ for each in steps]
    return found or None


def some(**fields: Any) -> dict[str, Any]:
    """The fields that are given."""
    return {name: value for name, value in fields.items() if value is not None}
