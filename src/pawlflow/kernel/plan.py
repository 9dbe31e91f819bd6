"""The plan: a definition compiled once per hash into integers, counters and closures.

Linear in steps and edges. Nothing here changes while an instance runs; what changes is in state.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec

from pawlflow.definition.canonical import definition_from_bytes, definition_hash
from pawlflow.definition.express import compile_expression, compile_template
from pawlflow.definition.shape import Gate, OnFailure, OnTimeout, Retry, Step, Undo, Workflow
from pawlflow.kernel.correlate import correlation_of
from pawlflow.kernel.scope import Bound, bind
from pawlflow.model.codec import encode
from pawlflow.model.ids import Digest, DurationMs, StepName, WorkflowName

Kind = Literal["run", "agent", "approval", "sleep", "wait", "emit"]

PLANS_MAX: Final = 1_024  # definitions at work at one time; a plan of ten steps takes 20 KB
NO_RETRY: Final = Retry(max_retries=0)
RETRY_ONCE: Final = Retry(max_retries=1)  # failurePolicy: retry, for steps without a policy
START_ROOTS: Final = frozenset({"input", "instance"})
FORWARD_ROOTS: Final = frozenset({"input", "steps", "instance", "item", "index"})
MATCH_ROOTS: Final = FORWARD_ROOTS | {"event"}
UNDO_ROOTS: Final = FORWARD_ROOTS | {"command", "result"}


class UnsupportedError(Exception):
    """The definition is valid, but this version cannot run what it asks for."""

    code = "definition.unsupported"


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a step is undone; its own policy, or the step's."""

    by_agent: bool
    target: str
    params: Bound | None
    retry: Retry
    span_ms: DurationMs | None


class StepPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step, ready to be decided about."""

    index: int
    name: StepName
    kind: Kind
    target: str
    attempted: bool  # made in attempts by an executor: run and agent
    takes_input: bool  # has a `with`: these, and emit
    by_agent: bool
    needs: tuple[int, ...]  # its dependencies
    leads_to: tuple[tuple[int, bool], ...]  # (successor, does it require success?)
    when: Bound | None
    params: Bound | None
    shown: Bound | None
    match: Bound | None
    correlation: tuple[str, Bound] | None  # a path into the event, and what `match` wants there
    gate: Gate | None
    event: str  # that is awaited or emitted
    span_ms: DurationMs | None  # timeout of an attempt or wait, expiry of a gate, length of a sleep
    heartbeat_ms: DurationMs | None
    grace_ms: DurationMs
    retry: Retry
    max_corrections: int
    check: bytes | None  # JSON Schema of the result, canonical; admission judges by it
    on_failure: OnFailure
    on_timeout: OnTimeout
    undo: UndoPlan | None  # only if the step mutates
    undo_on_failure: bool
    mutates: bool


class SlotPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many instances with the same key may run at one time."""

    key: Bound
    limit: int


class Plan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole definition, compiled."""

    workflow: WorkflowName
    version: int
    definition: Digest
    steps: tuple[StepPlan, ...]
    index: dict[StepName, int]
    needs: tuple[int, ...]
    roots: tuple[int, ...]
    timeout_ms: DurationMs | None
    compensates: bool  # what failurePolicy means for the instance itself: its timeout, its cancel
    max_parallel: int | None
    slot: SlotPlan | None
    undo_continues: bool
    output: Bound | None
    input_schema: bytes | None  # canonical, for admission

    def ancestors(self, step: int) -> list[int]:
        """Every step that comes before one, in the order of the file."""
        found: set[int] = set()
        rest = list(self.steps[step].needs)
        while rest:
            parent = rest.pop()
            if parent not in found:
                found.add(parent)
                rest += self.steps[parent].needs
        return sorted(found)


@lru_cache(PLANS_MAX)
def plan_of(definition: bytes) -> Plan:
    """The plan of a definition in its canonical bytes, compiled once."""
    return compile_plan(definition_from_bytes(definition))


def compile_plan(workflow: Workflow) -> Plan:
    """Compile a checked definition. Raises UnsupportedError for what is not run yet."""
    refuse_unsupported(workflow)
    index = {step.name: i for i, step in enumerate(workflow.steps)}
    leads_to: list[list[tuple[int, bool]]] = [[] for _ in workflow.steps]
    for i, step in enumerate(workflow.steps):
        for edge in step.depends_on:
            leads_to[index[edge.step]].append((i, edge.require_success))
    steps = tuple(
        plan_step(workflow, step, i, tuple(leads_to[i]), index)
        for i, step in enumerate(workflow.steps)
    )
    needs = tuple(len(step.needs) for step in steps)
    return Plan(
        workflow=workflow.name,
        version=workflow.version,
        definition=definition_hash(workflow),
        steps=steps,
        index=index,
        needs=needs,
        roots=tuple(i for i, count in enumerate(needs) if count == 0),
        timeout_ms=workflow.timeout_ms,
        compensates=workflow.failure_policy == "compensate",
        max_parallel=workflow.max_parallel,
        slot=plan_slot(workflow),
        undo_continues=workflow.on_undo_failure == "continue",
        output=bound_template(workflow.output, FORWARD_ROOTS, index),
        input_schema=None if workflow.input is None else encode(workflow.input),
    )


def plan_step(
    workflow: Workflow,
    step: Step,
    i: int,
    leads_to: tuple[tuple[int, bool], ...],
    index: dict[StepName, int],
) -> StepPlan:
    """Compile one step with the workflow's defaults applied."""
    default = RETRY_ONCE if workflow.failure_policy == "retry" else NO_RETRY
    retry = step.retry or default
    match = step.wait.match if step.wait else None
    return StepPlan(
        index=i,
        name=step.name,
        kind=step.kind,  # type: ignore[arg-type]  # the other kinds were refused above
        target=step.target,
        attempted=step.kind in ("run", "agent"),
        takes_input=step.kind in ("run", "agent", "emit"),
        by_agent=step.kind == "agent",
        needs=tuple(index[edge.step] for edge in step.depends_on),
        leads_to=leads_to,
        when=bound_expression(step.when, FORWARD_ROOTS, index, i),
        params=bound_template(step.params, FORWARD_ROOTS, index, i),
        shown=bound_template(step.show, FORWARD_ROOTS, index, i),
        match=bound_expression(match, MATCH_ROOTS, index, i),
        correlation=correlation_of(match, FORWARD_ROOTS, index, i),
        gate=step.gate,
        event=step.wait.event if step.wait else step.target if step.kind == "emit" else "",
        span_ms=span_of(step),
        heartbeat_ms=step.heartbeat_ms,
        grace_ms=step.grace_ms,
        retry=retry,
        max_corrections=step.max_corrections,
        check=None if step.check is None else encode(step.check),
        on_failure=step.on_failure or ON_FAILURE[workflow.failure_policy],
        on_timeout=step.on_timeout,
        undo=plan_undo(step.undo, step, retry, index) if step.undo and step.mutates else None,
        undo_on_failure=step.undo_on_failure,
        mutates=step.mutates,
    )


ON_FAILURE: Final[dict[str, OnFailure]] = {
    "abort": "abort",
    "skip": "skip",
    "compensate": "compensate",
    "retry": "abort",
}


def plan_undo(undo: Undo, step: Step, retry: Retry, index: dict[StepName, int]) -> UndoPlan:
    """Compile an undo; what it does not say follows the step."""
    return UndoPlan(
        by_agent=undo.kind == "agent",
        target=undo.target,
        params=bound_template(undo.params, UNDO_ROOTS, index),
        retry=undo.retry or retry,
        span_ms=undo.timeout_ms or step.timeout_ms,
    )


def plan_slot(workflow: Workflow) -> SlotPlan | None:
    """Compile the concurrency of a workflow."""
    if workflow.concurrency is None:
        return None
    key = bind(compile_expression(workflow.concurrency.key, roots=START_ROOTS), {})
    return SlotPlan(key=key, limit=workflow.concurrency.limit)


def span_of(step: Step) -> DurationMs | None:
    """The one clock a step has while it is open: the shortest that is written."""
    if step.kind == "sleep":
        return step.sleep_ms
    own = step.gate.expires_ms if step.gate else step.wait.timeout_ms if step.wait else None
    return min((span for span in (own, step.timeout_ms) if span is not None), default=None)


def bound_expression(
    source: str | None, roots: frozenset[str], index: dict[StepName, int], before: int
) -> Bound | None:
    """An expression whose names are tied to places in the state."""
    if source is None:
        return None
    return bind(compile_expression(source, roots=roots), index, before)


def bound_template(
    value: Any, roots: frozenset[str], index: dict[StepName, int], before: int | None = None
) -> Bound | None:
    """A template whose names are tied to places in the state."""
    if value is None:
        return None
    return bind(compile_template(value, roots=roots), index, before)


def refuse_unsupported(workflow: Workflow) -> None:
    """Say plainly what this version does not run, rather than run it wrongly."""
    found = [field for field, asked in UNSUPPORTED_IN_WORKFLOW.items() if asked(workflow)]
    found += [
        f"{field} of step {step.name}"
        for step in workflow.steps
        for field, asked_of_step in UNSUPPORTED_IN_STEP.items()
        if asked_of_step(step)
    ]
    if found:
        raise UnsupportedError(f"checked but not yet run by this version: {', '.join(found)}")


UNSUPPORTED_IN_WORKFLOW: Final[dict[str, Callable[[Workflow], bool]]] = {
    "rate": lambda w: w.rate is not None,
    "budget": lambda w: w.budget is not None,
    "escalation": lambda w: bool(w.escalation),
    "parallelUndo": lambda w: w.parallel_undo,
    "priority": lambda w: w.priority != 0,
}
UNSUPPORTED_IN_STEP: Final[dict[str, Callable[[Step], bool]]] = {
    "forEach": lambda s: s.for_each is not None,
    "workflow": lambda s: s.kind == "workflow",
    "policy": lambda s: s.policy is not None,
    "priority": lambda s: s.priority != 0,
    "approval.guards": lambda s: s.gate is not None and bool(s.gate.guards),
    "approval.onReject: changes": lambda s: s.gate is not None and s.gate.on_reject == "changes",
}
