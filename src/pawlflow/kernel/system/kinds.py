"""Kinds: the system cells there are, by the name that stands where a workflow's would."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import System, SystemDraft, registry, slots, topic
from pawlflow.kernel.system.listeners import Topic
from pawlflow.model.ids import CellId, WorkflowName
from pawlflow.model.inputs import Input
from pawlflow.model.system import REGISTRY, SLOTS, TOPIC


class Kind(msgspec.Struct, frozen=True):
    """One kind: how it begins, decides, and is written and read."""

    new: Callable[[CellId], System]
    decide: Callable[[SystemDraft[Any], Input], Rejected | None]
    format: int
    facts: type[Any]  # a record led by format, turn, now and rules
    facts_of: Callable[[Any], Any]
    from_facts: Callable[[Any, CellId], System]


KINDS: Final[dict[WorkflowName, Kind]] = {
    SLOTS: Kind(
        slots.Slots,
        slots.decide,
        slots.FORMAT,
        slots.SlotsFacts,
        slots.facts_of,
        slots.from_facts,
    ),
    TOPIC: Kind(
        Topic,
        topic.decide,
        topic.FORMAT,
        topic.TopicFacts,
        topic.facts_of,
        topic.from_facts,
    ),
    REGISTRY: Kind(
        registry.Registry,
        registry.decide,
        registry.FORMAT,
        registry.RegistryFacts,
        registry.facts_of,
        registry.from_facts,
    ),
}
