"""System cells: their names, what may enter them, and what happens in them.

Slots hand out concurrency keys, a topic brings one event to those who listen, a registry knows the
published definitions. They are cells like any other: inputs in, events and sends out. The records
keep the rules of inputs.py and events.py: tags never change, fields are only appended.
"""

from hashlib import sha256
from typing import Final

from pawlflow.model.batches import BatchEvent, BatchInput
from pawlflow.model.checkpoints import LoopEvent, LoopInput
from pawlflow.model.codec import encode
from pawlflow.model.ids import CellId, Digest, InstanceId, StepName, Tenant, WorkflowName
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.policies import PolicyInput, PolicySetEvent
from pawlflow.model.records import Record
from pawlflow.model.timed import Cron, TimedEvent, TimedInput

SLOTS: Final = WorkflowName("$slots")
TOPIC: Final = WorkflowName("$topic")
REGISTRY: Final = WorkflowName("$registry")
TRIGGER: Final = "event:"  # before the name of an event: who started the instances it triggered
KEY_DIGITS: Final = 32  # of a hash in a cell's key: 128 bits never meet by chance


def is_system(workflow: str) -> bool:
    """Does this name a kind of system cell? No workflow's name begins like that."""
    return workflow.startswith("$")


def slots_key(workflow: str, value: object) -> InstanceId:
    """The slots that instances of a workflow with this concurrency key share."""
    return InstanceId(f"{SLOTS}/{workflow}/{sha256(encode(value)).hexdigest()[:KEY_DIGITS]}")


def topic_key(event: str) -> InstanceId:
    """The topic of an event."""
    return InstanceId(f"{TOPIC}/{event}")


def topic_cell(tenant: Tenant, event: str) -> CellId:
    """The cell that brings an event to those who listen."""
    return CellId(tenant, TOPIC, topic_key(event))


def registry_cell(tenant: Tenant) -> CellId:
    """The cell that knows a tenant's definitions."""
    return CellId(tenant, REGISTRY, InstanceId(REGISTRY))


# Inputs of slots; what they answer an instance is in inputs.py


class AcquireSlot(Record, frozen=True, tag="slot.acquire", gc=False):
    """An instance asks for a slot, by the limit of its definition; `label` is the key in words."""

    workflow: WorkflowName
    key: InstanceId
    limit: int
    label: str
    priority: int = 0  # higher ones go first


class ReleaseSlot(Record, frozen=True, tag="slot.release", gc=False):
    """An instance gives back its slot, or its place in the queue."""

    workflow: WorkflowName
    key: InstanceId


# Inputs of a topic


class AwaitEvent(Record, frozen=True, tag="topic.await", gc=False):
    """A wait is open. With a `path`, only events that hold `value` there can match it."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName
    path: str = ""
    value: Payload | None = None


class StopAwaiting(Record, frozen=True, tag="topic.leave", gc=False):
    """A wait is open no longer."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName


class Subscribe(Record, frozen=True, tag="topic.subscribe", gc=False):
    """Events for which `condition` holds start this workflow, under this definition."""

    workflow: WorkflowName
    definition: Digest
    condition: str | None


class Unsubscribe(Record, frozen=True, tag="topic.unsubscribe", gc=False):
    """Events no longer start this workflow."""

    workflow: WorkflowName


class EmitEvent(Record, frozen=True, tag="topic.emit", gc=False):
    """Bring an event to all who listen now; never to `origin`, the instance that emits it."""

    data: Payload
    by: str
    origin: str  # empty: it comes from outside


class Continue(Record, frozen=True, tag="continue", gc=False):
    """Go on where the last turn had to stop: sent by a cell to itself."""


# Inputs of the registry


class PublishDefinition(Record, frozen=True, tag="definition.publish", gc=False):
    """Make a definition known under its name; `data` holds its canonical bytes."""

    name: WorkflowName
    version: int
    definition: Digest
    data: Payload
    event: str | None  # that starts it
    condition: str | None
    by: str
    schedule: Cron | None = None


class StartChild(Record, frozen=True, tag="child.start", gc=False):
    """Start the latest definition of a name as the child of an instance."""

    name: WorkflowName
    child: InstanceId
    input: Payload
    by: str
    parent: Parent


class StopChild(Record, frozen=True, tag="child.stop", gc=False):
    """A child is no longer wanted. By the way of its start, so that it cannot come before that."""

    name: WorkflowName
    child: InstanceId
    by: str


# Events of slots


class SlotLimited(Record, frozen=True, tag="slot.limited", gc=False):
    """How many may hold a slot at one time, from now on."""

    limit: int
    label: str


class SlotTaken(Record, frozen=True, tag="slot.taken", gc=False):
    """The instance holds a slot."""

    workflow: WorkflowName
    key: InstanceId


class SlotQueued(Record, frozen=True, tag="slot.queued", gc=False):
    """The instance waits for a slot, behind all of its priority who waited before."""

    workflow: WorkflowName
    key: InstanceId
    priority: int = 0


class SlotReleased(Record, frozen=True, tag="slot.released", gc=False):
    """The instance holds no slot and waits for none."""

    workflow: WorkflowName
    key: InstanceId


# Events of a topic


class WaitListed(Record, frozen=True, tag="wait.listed", gc=False):
    """The wait is told of events from now on; an older one of the same step is forgotten."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName
    path: str = ""
    value: Payload | None = None


class WaitDropped(Record, frozen=True, tag="wait.dropped", gc=False):
    """The wait is told of nothing more."""

    workflow: WorkflowName
    key: InstanceId
    step: StepName


class TriggerAdded(Record, frozen=True, tag="trigger.added", gc=False):
    """Events start this workflow; one that was there before keeps its place in the order."""

    workflow: WorkflowName
    definition: Digest
    condition: str | None


class TriggerRemoved(Record, frozen=True, tag="trigger.removed", gc=False):
    """Events no longer start this workflow."""

    workflow: WorkflowName


class EventEmitted(Record, frozen=True, tag="event.emitted", gc=False):
    """The event is on its way, to all who listen at this moment."""

    number: int
    data: Payload
    by: str
    origin: str


class EventRelayed(Record, frozen=True, tag="event.relayed", gc=False):
    """So many were told in this turn. With `after`, those behind that place are still to come."""

    number: int
    count: int
    after: int = 0


# Events of the registry


class DefinitionPublished(Record, frozen=True, tag="definition.published", gc=False):
    """The definition is known under its name."""

    name: WorkflowName
    version: int
    definition: Digest
    event: str | None
    condition: str | None
    by: str
    schedule: Cron | None = None


class ChildStarted(Record, frozen=True, tag="child.started", gc=False):
    """The child is on its way, under this definition."""

    name: WorkflowName
    child: InstanceId
    definition: Digest


class ChildRefused(Record, frozen=True, tag="child.refused", gc=False):
    """Nothing is published under this name, or its family goes too deep; the parent is told."""

    name: WorkflowName
    child: InstanceId


class ChildStopped(Record, frozen=True, tag="child.stopped", gc=False):
    """The child is told that it is no longer wanted."""

    name: WorkflowName
    child: InstanceId


SystemInput = (
    AcquireSlot
    | ReleaseSlot
    | AwaitEvent
    | StopAwaiting
    | Subscribe
    | Unsubscribe
    | EmitEvent
    | Continue
    | PublishDefinition
    | StartChild
    | StopChild
    | TimedInput
    | BatchInput
    | LoopInput
    | PolicyInput
)
SystemEvent = (
    SlotLimited
    | SlotTaken
    | SlotQueued
    | SlotReleased
    | WaitListed
    | WaitDropped
    | TriggerAdded
    | TriggerRemoved
    | EventEmitted
    | EventRelayed
    | DefinitionPublished
    | ChildStarted
    | ChildRefused
    | ChildStopped
    | TimedEvent
    | BatchEvent
    | LoopEvent
    | PolicySetEvent
)
