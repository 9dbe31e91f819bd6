"""The registry: what a tenant has published: definitions, and when and by what they are started.

The highest version of a name is its latest; among equal versions the one published last. Topics are
told when the latest definition of a name starts by another event than the one before it, or anew;
schedules when it starts at other times, or under another definition.
"""

from typing import Final

from pawlflow.definition.shape import Workflow
from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, misplaced
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import CellId, Digest, TimeMs, WorkflowName
from pawlflow.model.inputs import CancelInstance, Input, Receipt, StartInstance
from pawlflow.model.payload import Payload, nothing
from pawlflow.model.records import Record
from pawlflow.model.system import (
    TOPIC,
    ChildRefused,
    ChildStarted,
    ChildStopped,
    DefinitionPublished,
    PublishDefinition,
    StartChild,
    StopChild,
    Subscribe,
    Unsubscribe,
    topic_key,
)
from pawlflow.model.timed import (
    SCHEDULE,
    Cron,
    PublishSchedule,
    RemoveSchedule,
    SchedulePublished,
    ScheduleWithdrawn,
    SetSchedule,
    WithdrawSchedule,
    schedule_key,
)

FORMAT: Final = 2  # 2: schedules
# Of one workflow, beside its own: each is told when the workflow changes. Part of the rules.
SCHEDULES_MAX: Final = 256
# Children of children. A workflow that starts itself must not fill the disk. Part of the rules.
GENERATIONS_MAX: Final = 64


class Published(Record, frozen=True, gc=False):
    """A definition under its name and version."""

    name: WorkflowName
    version: int
    definition: Digest
    event: str | None
    condition: str | None
    schedule: Cron | None = None


class Planned(Record, frozen=True, gc=False):
    """A schedule that stands by itself, under its name."""

    name: str
    workflow: WorkflowName
    cron: Cron
    input: Payload
    paused: bool | None


class Registry(System):
    """All definitions of a tenant, by name and version, and the schedules that stand beside."""

    __slots__ = ("names", "newest", "planned", "schedules")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.names: dict[WorkflowName, dict[int, Published]] = {}
        self.schedules: dict[str, Planned] = {}
        self.newest: dict[WorkflowName, Published] = {}  # follows from the names
        self.planned: dict[WorkflowName, dict[str, Planned]] = {}  # schedules by workflow

    def latest(self, name: str) -> tuple[int, Digest] | None:
        """The version and definition that a start by name means."""
        found = self.newest.get(WorkflowName(name))
        return None if found is None else (found.version, found.definition)

    def versions(self, name: str) -> list[tuple[int, Digest]]:
        """Every version of a name, lowest first."""
        found = self.names.get(WorkflowName(name), {})
        return [(version, found[version].definition) for version in sorted(found)]


def decide(draft: SystemDraft[Registry], incoming: Input) -> Rejected | None:
    """Apply one input to the draft. A refusal comes before the first event, or not at all."""
    match incoming:
        case PublishDefinition():
            return publish(draft, incoming)
        case StartChild():
            start_child(draft, incoming)
        case StopChild():
            stop_child(draft, incoming)
        case PublishSchedule():
            return publish_schedule(draft, incoming)
        case WithdrawSchedule():
            return withdraw_schedule(draft, incoming)
        case _:
            return misplaced(draft.state, incoming)
    return None


def publish(draft: SystemDraft[Registry], incoming: PublishDefinition) -> Rejected | None:
    """Record the definition; if it is the latest now, tell the topics and schedules."""
    state = draft.state
    name, version, definition = incoming.name, incoming.version, incoming.definition
    known = state.names.get(name, {}).get(version)
    if known and (known.definition, known.schedule) == (definition, incoming.schedule):
        return Rejected("definition.same", f"{name} version {version}")
    if incoming.schedule is not None and name in state.schedules:
        return Rejected("schedule.taken", name)
    before = state.newest.get(name)
    starts = (incoming.event, incoming.condition)
    draft.emit(
        DefinitionPublished(name, version, definition, *starts, incoming.by, incoming.schedule)
    )
    after = state.newest[name]
    if after is not before:
        tell_topics(draft, before, after)
        tell_schedules(draft, before, after, incoming.by)
    return None


def start_child(draft: SystemDraft[Registry], incoming: StartChild) -> None:
    """Start the latest definition of a name; if there is none, the parent's attempt has failed."""
    name, parent = incoming.name, incoming.parent
    found = draft.state.latest(name)
    if found is None:
        said = f"no workflow {name} is published: `pawl apply` or `load` its file, then try again"
        refuse_child(draft, incoming, "child.unknown", said)
        return
    if parent.generation > GENERATIONS_MAX:
        said = f"{name} would have {parent.generation} parents above it: does it start itself?"
        refuse_child(draft, incoming, "child.too_deep", said)
        return
    definition = found[1]
    draft.emit(ChildStarted(name, incoming.child, definition))
    draft.send(name, incoming.child, StartInstance(definition, incoming.input, incoming.by, parent))


def refuse_child(draft: SystemDraft[Registry], incoming: StartChild, code: str, said: str) -> None:
    """The parent's attempt has failed: nothing was started."""
    draft.emit(ChildRefused(incoming.name, incoming.child))
    failure = failure_of("terminal", code, said, tenant=draft.state.cell.tenant)
    parent = incoming.parent
    refused = Receipt(parent.step_key, parent.attempt, "failed", failure=failure)
    draft.send(parent.workflow, parent.key, refused)


def stop_child(draft: SystemDraft[Registry], incoming: StopChild) -> None:
    """Tell a child that it is no longer wanted. Sends keep their order: it has begun by then."""
    draft.emit(ChildStopped(incoming.name, incoming.child))
    draft.send(incoming.name, incoming.child, CancelInstance(incoming.by))


def tell_topics(draft: SystemDraft[Registry], before: Published | None, after: Published) -> None:
    """The event that started the old definition no longer does; that of the new one does."""
    if before is not None and before.event is not None and before.event != after.event:
        draft.send(TOPIC, topic_key(before.event), Unsubscribe(after.name))
    if after.event is not None:
        subscribe = Subscribe(after.name, after.definition, after.condition)
        draft.send(TOPIC, topic_key(after.event), subscribe)


def tell_schedules(
    draft: SystemDraft[Registry], before: Published | None, after: Published, by: str
) -> None:
    """The workflow's own schedule, if it has or had one, and those that stand beside it."""
    if after.schedule is not None:
        empty = nothing("map", draft.state.cell.tenant)
        made = SetSchedule(after.name, after.definition, after.schedule, empty, by)
        draft.send(SCHEDULE, schedule_key(after.name), made)
    elif before is not None and before.schedule is not None:
        draft.send(SCHEDULE, schedule_key(after.name), RemoveSchedule(by))
    for _, beside in sorted(draft.state.planned.get(after.name, {}).items()):
        set_schedule(draft, beside, after, by, paused=None)


def set_schedule(
    draft: SystemDraft[Registry], made: Planned, of: Published, by: str, *, paused: bool | None
) -> None:
    """Tell a schedule what it starts, and when."""
    asked = SetSchedule(made.workflow, of.definition, made.cron, made.input, by, paused)
    draft.send(SCHEDULE, schedule_key(made.name), asked)


def publish_schedule(draft: SystemDraft[Registry], incoming: PublishSchedule) -> Rejected | None:
    """Record a schedule that stands by itself, and tell it."""
    state, name = draft.state, incoming.name
    said = (name, incoming.workflow, incoming.cron, incoming.input, incoming.paused)
    made, of = Planned(*said), state.newest.get(incoming.workflow)
    if state.schedules.get(name) == made:
        return Rejected("schedule.same", name)
    if of is None:
        return Rejected("workflow.unknown", incoming.workflow)
    own = state.newest.get(WorkflowName(name))
    if own is not None and own.schedule is not None:
        return Rejected("schedule.taken", name)
    beside = state.planned.get(incoming.workflow, {})
    if name not in beside and len(beside) >= SCHEDULES_MAX:
        return Rejected("schedule.too_many", f"{SCHEDULES_MAX} of {incoming.workflow}")
    draft.emit(SchedulePublished(*said, incoming.by))
    set_schedule(draft, made, of, incoming.by, paused=incoming.paused)
    return None


def withdraw_schedule(draft: SystemDraft[Registry], incoming: WithdrawSchedule) -> Rejected | None:
    """A schedule that stands by itself is no more; one of a workflow goes with its definition."""
    name = incoming.name
    if name not in draft.state.schedules:
        own = draft.state.newest.get(WorkflowName(name))
        kept = own is not None and own.schedule is not None
        return Rejected("schedule.of_workflow" if kept else "schedule.unknown", name)
    draft.emit(ScheduleWithdrawn(name, incoming.by))
    draft.send(SCHEDULE, schedule_key(name), RemoveSchedule(incoming.by))
    return None


def trigger_of(workflow: Workflow) -> tuple[str | None, str | None]:
    """The event that starts a workflow and the condition on it, for whoever publishes."""
    trigger = workflow.trigger
    if trigger is None or trigger.event is None:
        return None, None
    return trigger.event, trigger.condition


def schedule_of(workflow: Workflow) -> Cron | None:
    """When a workflow starts by itself, for whoever publishes."""
    trigger = workflow.trigger
    if trigger is None or trigger.schedule is None:
        return None
    return Cron(trigger.schedule, trigger.timezone, trigger.catch_up)


# Evolve


def on_published(state: Registry, event: DefinitionPublished) -> None:
    """It takes the place of its version, and leads if no version is higher."""
    name = event.name
    starts = (event.event, event.condition, event.schedule)
    keep(state, Published(name, event.version, event.definition, *starts))


def keep(state: Registry, made: Published) -> None:
    """Put a definition under its name."""
    state.names.setdefault(made.name, {})[made.version] = made
    newest = state.newest.get(made.name)
    if newest is None or made.version >= newest.version:
        state.newest[made.name] = made


def on_schedule(state: Registry, event: SchedulePublished) -> None:
    """It takes the place of an older one of its name."""
    said = (event.name, event.workflow, event.cron, event.input, event.paused)
    plan(state, Planned(*said))


def plan(state: Registry, made: Planned) -> None:
    """Put a schedule under its name, and beside its workflow."""
    withdraw(state, made.name)
    state.schedules[made.name] = made
    state.planned.setdefault(made.workflow, {})[made.name] = made


def on_withdrawn(state: Registry, event: ScheduleWithdrawn) -> None:
    """It is neither here nor there."""
    withdraw(state, event.name)


def withdraw(state: Registry, name: str) -> None:
    """The reverse of plan, if there is such a schedule."""
    old = state.schedules.pop(name, None)
    if old is not None:
        del state.planned[old.workflow][name]


def on_child(_: Registry, __: ChildStarted | ChildRefused | ChildStopped) -> None:
    """What became of a child is its own story."""


# What is written


class RegistryFacts(Record, frozen=True):
    """The facts of a registry, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    published: tuple[Published, ...]
    schedules: tuple[Planned, ...]


def facts_of(state: Registry) -> RegistryFacts:
    """All that a state is rebuilt from."""
    published = (each for found in state.names.values() for each in found.values())
    ordered = sorted(published, key=lambda each: (each.name, each.version))
    beside = sorted(state.schedules.values(), key=lambda each: each.name)
    lists = (tuple(ordered), tuple(beside))
    return RegistryFacts(FORMAT, state.turn, state.now, state.rules, *lists)


def from_facts(found: RegistryFacts, cell: CellId) -> Registry:
    """The state these are the facts of."""
    state = Registry(cell)
    for each in found.published:
        keep(state, each)
    for beside in found.schedules:
        plan(state, beside)
    return state
