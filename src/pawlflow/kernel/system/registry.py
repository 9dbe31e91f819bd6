"""The registry: which definitions a tenant has published, and which of them events start.

The highest version of a name is its latest; among equal versions the one published last. Topics are
told when the latest definition of a name starts by another event than the one before it, or anew.
"""

from typing import Final

from pawlflow.definition.shape import Workflow
from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import Evolve, System, SystemDraft, misplaced
from pawlflow.model.ids import CellId, Digest, TimeMs, WorkflowName
from pawlflow.model.inputs import Input
from pawlflow.model.records import Record
from pawlflow.model.system import (
    TOPIC,
    DefinitionPublished,
    PublishDefinition,
    Subscribe,
    Unsubscribe,
    topic_key,
)

FORMAT: Final = 1


class Published(Record, frozen=True, gc=False):
    """A definition under its name and version."""

    name: WorkflowName
    version: int
    definition: Digest
    event: str | None
    condition: str | None


class Registry(System):
    """All definitions of a tenant, by name and version."""

    __slots__ = ("names", "newest")

    def __init__(self, cell: CellId) -> None:
        super().__init__(cell)
        self.names: dict[WorkflowName, dict[int, Published]] = {}
        self.newest: dict[WorkflowName, Published] = {}  # follows from the names

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
        case _:
            return misplaced(draft.state, incoming)


def publish(draft: SystemDraft[Registry], incoming: PublishDefinition) -> Rejected | None:
    """Record the definition; if it is the latest now, tell the topics."""
    state = draft.state
    name, version, definition = incoming.name, incoming.version, incoming.definition
    known = state.names.get(name, {}).get(version)
    if known is not None and known.definition == definition:
        return Rejected("definition.same", f"{name} version {version}")
    before = state.newest.get(name)
    event, condition = incoming.event, incoming.condition
    draft.emit(DefinitionPublished(name, version, definition, event, condition, incoming.by))
    after = state.newest[name]
    if after is not before:
        tell_topics(draft, before, after)
    return None


def tell_topics(draft: SystemDraft[Registry], before: Published | None, after: Published) -> None:
    """The event that started the old definition no longer does; that of the new one does."""
    if before is not None and before.event is not None and before.event != after.event:
        draft.send(TOPIC, topic_key(before.event), Unsubscribe(after.name))
    if after.event is not None:
        subscribe = Subscribe(after.name, after.definition, after.condition)
        draft.send(TOPIC, topic_key(after.event), subscribe)


def trigger_of(workflow: Workflow) -> tuple[str | None, str | None]:
    """The event that starts a workflow and the condition on it, for whoever publishes."""
    trigger = workflow.trigger
    if trigger is None or trigger.event is None:
        return None, None
    return trigger.event, trigger.condition


# Evolve


def on_published(state: Registry, event: DefinitionPublished) -> None:
    """It takes the place of its version, and leads if no version is higher."""
    name = event.name
    made = Published(name, event.version, event.definition, event.event, event.condition)
    keep(state, made)


def keep(state: Registry, made: Published) -> None:
    """Put a definition under its name."""
    state.names.setdefault(made.name, {})[made.version] = made
    newest = state.newest.get(made.name)
    if newest is None or made.version >= newest.version:
        state.newest[made.name] = made


EVOLVE: Final[Evolve] = {DefinitionPublished: on_published}


# What is written


class RegistryFacts(Record, frozen=True):
    """The facts of a registry, in order."""

    format: int
    turn: int
    now: TimeMs
    rules: int
    published: tuple[Published, ...]


def facts_of(state: Registry) -> RegistryFacts:
    """All that a state is rebuilt from."""
    published = (each for found in state.names.values() for each in found.values())
    ordered = sorted(published, key=lambda each: (each.name, each.version))
    return RegistryFacts(FORMAT, state.turn, state.now, state.rules, tuple(ordered))


def from_facts(found: RegistryFacts, cell: CellId) -> Registry:
    """The state these are the facts of."""
    state = Registry(cell)
    for each in found.published:
        keep(state, each)
    return state
