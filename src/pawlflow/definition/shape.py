"""The shape of a workflow: what a definition says once it has been read and checked.

Everything here is a frozen value. Readers (YAML, Python) produce a `Workflow`; `compile_plan`
turns it into integers. Durations are milliseconds, expressions are CEL source text without `${}`,
templates are plain values whose strings may hold `${...}`. Fields at their default are left out of
the canonical form, so adding a field with a default never changes the hash of an old definition.
"""

from typing import Any, Final, Literal

import msgspec

from pawlflow.model.ids import DurationMs, EffectName, RoleName, StepName, TimeMs, WorkflowName

StepKind = Literal["run", "agent", "approval", "sleep", "wait", "workflow", "emit"]
CALLED_KINDS: Final = ("run", "agent", "workflow")  # somebody answers, perhaps too late
# What is given to somebody: it takes a `with`, and may ask the policies first.
ASKED_KINDS: Final = (*CALLED_KINDS, "emit")
OnFailure = Literal["abort", "skip", "compensate", "escalate"]
OnTimeout = Literal["fail", "retry", "escalate"]
FailurePolicy = Literal["abort", "skip", "compensate", "retry"]
Backoff = Literal["constant", "linear", "exponential"]
CatchUp = Literal["none", "last", "all"]


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of all shapes: frozen, by keyword, no cycles for the collector to look for."""


class Retry(Value, frozen=True, kw_only=True, gc=False):
    """How often a failed attempt is made again, and after how long."""

    max_retries: int
    backoff: Backoff = "exponential"
    initial_ms: DurationMs = DurationMs(1_000)
    cap_ms: DurationMs = DurationMs(60_000)


class Edge(Value, frozen=True, kw_only=True, gc=False):
    """A dependency. With `require_success` a skipped dependency skips this step too."""

    step: StepName
    require_success: bool = False


class Gate(Value, frozen=True, kw_only=True, gc=False):
    """Who must agree, by when, and what happens if they do not."""

    role: RoleName | None = None
    quorum: int = 1
    not_by_requester: bool = False
    expires_ms: DurationMs | None = None
    on_reject: Literal["cancel", "fail", "changes"] = "cancel"
    on_expire: Literal["escalate", "fail"] = "escalate"
    guards: tuple[StepName, ...] = ()
    revise: tuple[StepName, ...] = ()


class Wait(Value, frozen=True, kw_only=True, gc=False):
    """An event to wait for; `match` decides which one."""

    event: str
    match: str | None = None
    timeout_ms: DurationMs | None = None


class Undo(Value, frozen=True, kw_only=True, gc=False):
    """How a completed step is compensated: an effect (`run`) or an agent's task."""

    kind: Literal["run", "agent"]
    target: str
    action: str | None = None
    params: Any = None  # template; None: {command, result}
    retry: Retry | None = None
    timeout_ms: DurationMs | None = None


class Step(Value, frozen=True, kw_only=True, gc=False):
    """One step. `target` is the effect, agent role, child workflow or event it names."""

    name: StepName
    kind: StepKind
    target: str = ""
    action: str | None = None
    skill: str | None = None
    depends_on: tuple[Edge, ...] = ()
    when: str | None = None
    for_each: str | None = None
    limit: int = 100
    params: Any = None  # template of `with`; None: {}
    show: Any = None  # template of a gate's `show`
    gate: Gate | None = None
    wait: Wait | None = None
    sleep_ms: DurationMs | None = None
    timeout_ms: DurationMs | None = None
    heartbeat_ms: DurationMs | None = None
    grace_ms: DurationMs = DurationMs(30_000)
    retry: Retry | None = None
    max_corrections: int = 0
    check: Any = None  # JSON Schema of the result
    on_failure: OnFailure | None = None  # None: the workflow's failurePolicy
    on_timeout: OnTimeout = "fail"
    undo: Undo | None = None
    undo_on_failure: bool = False
    mutates: bool = True
    irreversible: bool = False
    policy: Any = None
    cost: Any = None
    priority: int = 0


class Trigger(Value, frozen=True, kw_only=True, gc=False):
    """What starts a workflow by itself."""

    event: str | None = None
    condition: str | None = None
    schedule: str | None = None
    timezone: str = "UTC"
    catch_up: CatchUp = "none"


class Schedule(Value, frozen=True, kw_only=True, gc=False):
    """A document of its own that says when a workflow is started, and with what."""

    name: str
    workflow: WorkflowName
    schedule: str
    timezone: str = "UTC"
    catch_up: CatchUp = "none"
    input: Any = None  # template over `schedule`; None: {}
    paused: bool | None = None  # None: as it is


class Policy(Value, frozen=True, kw_only=True, gc=False):
    """A document of its own that says in Cedar what steps may do."""

    name: str
    version: int = 1
    cedar: str


class Keyed(Value, frozen=True, kw_only=True, gc=False):
    """A limit per key: concurrency (no `per_ms`) or rate (with it)."""

    key: str
    limit: int
    per_ms: DurationMs | None = None


class Rung(Value, frozen=True, kw_only=True, gc=False):
    """One rung of the escalation ladder."""

    role: RoleName
    channel: str | None = None
    timeout_ms: DurationMs | None = None


class Retention(Value, frozen=True, kw_only=True, gc=False):
    """How long closed instances are kept."""

    completed_ms: DurationMs | None = None
    failed_ms: DurationMs | None = None

    def until(self, outcome: str, closed_at: TimeMs) -> TimeMs | None:
        """When the time of an instance is over that ended like this; None: it is kept for ever.

        `failed` holds for every end that is no success: failed, timed out, cancelled.
        """
        kept = self.completed_ms if outcome == "completed" else self.failed_ms
        return None if kept is None else TimeMs(closed_at + kept)


class Workflow(Value, frozen=True, kw_only=True, gc=False):
    """A whole workflow definition."""

    name: WorkflowName
    version: int = 1
    description: str | None = None
    input: Any = None  # JSON Schema
    timeout_ms: DurationMs | None = None
    failure_policy: FailurePolicy = "abort"
    max_parallel: int | None = None
    concurrency: Keyed | None = None
    rate: Keyed | None = None
    trigger: Trigger | None = None
    effects: tuple[EffectName, ...] | None = None
    budget: Any = None
    steps: tuple[Step, ...]
    output: Any = None  # template; None: no output
    on_undo_failure: Literal["stop", "continue"] = "stop"
    parallel_undo: bool = False
    priority: int = 0
    search: dict[str, str] = msgspec.field(default_factory=dict)
    retention: Retention | None = None
    escalation: tuple[Rung, ...] = ()
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)  # owner, labels... kept, unread
