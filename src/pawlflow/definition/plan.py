"""The plan: a definition compiled once per hash into integers, counters and closures.

Linear in steps and edges. Nothing here changes while an instance runs; what changes is in state.
"""

from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Any, Final

import msgspec

from pawlflow.definition.bound import Bound, bind
from pawlflow.definition.canonical import definition_from_bytes, definition_hash
from pawlflow.definition.correlate import correlation_of
from pawlflow.definition.express import compile_expression, compile_template
from pawlflow.definition.rules import rules_of
from pawlflow.definition.shape import (
    ASKED_KINDS,
    Gate,
    OnFailure,
    OnTimeout,
    Retention,
    Retry,
    Rung,
    Step,
    StepKind,
    Undo,
    Workflow,
)
from pawlflow.model.codec import encode
from pawlflow.model.ids import Digest, DurationMs, StepName, WorkflowName

MILLIONTHS: Final = 1_000_000  # amounts of a budget are whole numbers of these
PLANS_MAX: Final = 1_024  # definitions at work at one time; a plan of ten steps takes 20 KB
NO_RETRY: Final = Retry(max_retries=0)
RETRY_ONCE: Final = Retry(max_retries=1)  # failurePolicy: retry, for steps without a policy
START_ROOTS: Final = frozenset({"input", "instance"})
FORWARD_ROOTS: Final = frozenset({"input", "steps", "instance", "item", "index"})
MATCH_ROOTS: Final = FORWARD_ROOTS | {"event"}
UNDO_ROOTS: Final = FORWARD_ROOTS | {"command", "result"}


class UndoPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a step is undone; its own policy, or the step's."""

    by_agent: bool
    target: str
    params: Bound | None
    retry: Retry
    span_ms: DurationMs | None


class PolicyPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the policies in force are asked before each attempt."""

    action: str
    resource: Bound | None
    about: dict[str, Any]  # what is known of the step beforehand

    def request(self, principal: tuple[str, str], resource: Any, known: dict[str, Any]) -> Any:
        """Who would do what to what, and all that is known about it."""
        return {
            "action": self.action,
            "principal": {"type": principal[0], "id": principal[1]},
            "resource": resource,
            "context": self.about | known,
        }


class StepPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step, ready to be decided about."""

    index: int
    name: StepName
    kind: StepKind
    target: str
    attempted: bool  # made in attempts by an executor: run and agent
    opened: bool  # begun without an attempt, by waiting for what may not come: wait and approval
    takes_input: bool  # has a `with`: these, children and emit
    by_agent: bool
    needs: tuple[int, ...]  # its dependencies
    leads_to: tuple[tuple[int, bool], ...]  # (successor, does it require success?)
    depth: int  # of the longest way that leads here
    when: Bound | None
    when_item: bool  # `when` asks about the item: each is skipped or not
    for_each: Bound | None
    limit: int  # items at a time
    params: Bound | None
    shown: Bound | None
    match: Bound | None
    correlation: tuple[str, Bound] | None  # a path into the event, and what `match` wants there
    gate: Gate | None
    guards: tuple[int, ...]  # of a gate: the steps it approves the parameters of
    revise: tuple[int, ...]  # of a gate: the steps it may send back
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
    policy: PolicyPlan | None
    cost: dict[str, int]  # that an attempt may cost, in millionths
    priority: int


class SlotPlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many instances with the same key may run at one time."""

    key: Bound
    limit: int


class RatePlan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How many instances with the same key may start within a span of time."""

    key: Bound
    limit: int
    per_ms: DurationMs


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
    rate: RatePlan | None
    priority: int  # in the lines of both
    undo_continues: bool
    parallel_undo: bool
    ladder: tuple[Rung, ...]  # who is asked about an escalation, one after another
    guarded_by: dict[int, list[int]]  # by step, the gates that must agree to what it would do
    rules: int  # that instances are decided by which start now
    budget: dict[str, tuple[int | None, int | None]]  # soft and hard limits, in millionths
    output: Bound | None
    search: tuple[tuple[str, Bound], ...]  # what an instance may be found by
    input_schema: bytes | None  # canonical, for admission
    retention: Retention | None  # how long instances are kept once they are closed

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
    """Compile a checked definition."""
    index = {step.name: i for i, step in enumerate(workflow.steps)}
    leads_to: list[list[tuple[int, bool]]] = [[] for _ in workflow.steps]
    for i, step in enumerate(workflow.steps):
        for edge in step.depends_on:
            leads_to[index[edge.step]].append((i, edge.require_success))
    depths = depths_of(workflow, index) if workflow.parallel_undo else [0] * len(index)
    steps = tuple(
        plan_step(workflow, step, i, tuple(leads_to[i]), index, depths[i])
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
        rate=plan_rate(workflow),
        priority=workflow.priority,
        undo_continues=workflow.on_undo_failure == "continue",
        parallel_undo=workflow.parallel_undo,
        ladder=workflow.escalation,
        guarded_by=guarded_by(steps),
        rules=rules_of(workflow),
        budget=plan_budget(workflow),
        output=bound_template(workflow.output, FORWARD_ROOTS, index),
        search=tuple(
            (name, bind(compile_expression(source, roots=START_ROOTS), {}))
            for name, source in workflow.search.items()
        ),
        input_schema=None if workflow.input is None else encode(workflow.input),
        retention=workflow.retention,
    )


def plan_step(
    workflow: Workflow,
    step: Step,
    i: int,
    leads_to: tuple[tuple[int, bool], ...],
    index: dict[StepName, int],
    depth: int,
) -> StepPlan:
    """Compile one step with the workflow's defaults applied."""
    default = RETRY_ONCE if workflow.failure_policy == "retry" else NO_RETRY
    retry = step.retry or default
    match = step.wait.match if step.wait else None
    when = bound_expression(step.when, FORWARD_ROOTS, index, i)
    return StepPlan(
        index=i,
        name=step.name,
        kind=step.kind,
        target=step.target,
        attempted=step.kind in ("run", "agent"),
        opened=step.kind in ("wait", "approval"),
        takes_input=step.kind in ASKED_KINDS,
        by_agent=step.kind == "agent",
        needs=tuple(index[edge.step] for edge in step.depends_on),
        leads_to=leads_to,
        depth=depth,
        when=when,
        when_item=when is not None
        and bool({"item", "index"} & {ref[0] for ref in when.program.refs}),
        for_each=bound_expression(step.for_each, FORWARD_ROOTS, index, i),
        limit=step.limit,
        params=bound_template(step.params, FORWARD_ROOTS, index, i),
        shown=bound_template(step.show, FORWARD_ROOTS, index, i),
        match=bound_expression(match, MATCH_ROOTS, index, i),
        correlation=correlation_of(match, FORWARD_ROOTS, index, i),
        gate=step.gate,
        guards=tuple(index[name] for name in step.gate.guards) if step.gate else (),
        revise=plan_revise(workflow, step, index),
        event=step.wait.event if step.wait else step.target if step.kind == "emit" else "",
        span_ms=span_of(step),
        heartbeat_ms=step.heartbeat_ms,
        grace_ms=step.grace_ms,
        retry=retry,
        max_corrections=step.max_corrections if step.kind in ("run", "agent") else 0,
        check=None if step.check is None else encode(step.check),
        on_failure=step.on_failure or ON_FAILURE[workflow.failure_policy],
        on_timeout=step.on_timeout,
        undo=plan_undo(step.undo, step, retry, index) if step.undo and step.mutates else None,
        undo_on_failure=step.undo_on_failure,
        mutates=step.mutates,
        policy=plan_policy(workflow, step, index, i),
        cost=costs_of(step),
        priority=step.priority,
    )


def plan_policy(
    workflow: Workflow, step: Step, index: dict[StepName, int], i: int
) -> PolicyPlan | None:
    """Compile what is asked before dispatch; what is not dispatched asks nobody."""
    if step.policy is None or step.kind not in ASKED_KINDS:
        return None
    resource = bound_template(step.policy.get("resource"), FORWARD_ROOTS, index, i)
    about: dict[str, Any] = {
        "workflow": workflow.name,
        "version": workflow.version,
        "step": step.name,
        "kind": step.kind,
        "effect": step.target,
        "priority": step.priority,
        "cost": costs_of(step),
    }
    if domains := workflow.metadata.get("domainsInvolved"):
        about["domains"] = domains
    return PolicyPlan(action=step.policy["action"], resource=resource, about=about)


def costs_of(step: Step) -> dict[str, int]:
    """What an attempt may cost, in millionths."""
    return {name: millionths(amount) for name, amount in (step.cost or {}).items()}


def plan_revise(workflow: Workflow, step: Step, index: dict[StepName, int]) -> tuple[int, ...]:
    """What `onReject: changes` sends back: as it says, or else the agents right before it."""
    if step.gate is None or step.gate.revise:
        return tuple(index[name] for name in step.gate.revise) if step.gate else ()
    needs = (index[edge.step] for edge in step.depends_on)
    return tuple(need for need in needs if workflow.steps[need].kind == "agent")


def guarded_by(steps: tuple[StepPlan, ...]) -> dict[int, list[int]]:
    """The gates over each step that has some."""
    found: dict[int, list[int]] = {}
    for gate in steps:
        for step in gate.guards:
            found.setdefault(step, []).append(gate.index)
    return found


def millionths(amount: float) -> int:
    """An amount that adds up exactly."""
    return round(amount * MILLIONTHS)


def plan_budget(workflow: Workflow) -> dict[str, tuple[int | None, int | None]]:
    """The soft and the hard limit of each unit of account."""
    found = {}
    for name, bound in (workflow.budget or {}).items():
        soft, hard = bound.get("soft"), bound.get("hard")
        found[name] = (
            None if soft is None else millionths(soft),
            None if hard is None else millionths(hard),
        )
    return found


def depths_of(workflow: Workflow, index: dict[StepName, int]) -> list[int]:
    """How many steps lie before each, on the longest way."""
    needs = [[index[edge.step] for edge in step.depends_on] for step in workflow.steps]
    graph = TopologicalSorter(dict(enumerate(needs)))
    depths = [0] * len(needs)
    for i in graph.static_order():
        depths[i] = max((depths[need] + 1 for need in needs[i]), default=0)
    return depths


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


def plan_rate(workflow: Workflow) -> RatePlan | None:
    """Compile the rate of a workflow."""
    rate = workflow.rate
    if rate is None or rate.per_ms is None:
        return None
    key = bind(compile_expression(rate.key, roots=START_ROOTS), {})
    return RatePlan(key=key, limit=rate.limit, per_ms=rate.per_ms)


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
