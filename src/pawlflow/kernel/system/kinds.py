"""Kinds: the system cells there are, by the name that stands where a workflow's would."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pawlflow.kernel.refused import Rejected
from pawlflow.kernel.system import (
    System,
    SystemDraft,
    batch,
    loop,
    policies,
    rate,
    registry,
    schedule,
    slots,
    topic,
)
from pawlflow.kernel.system.listeners import Topic
from pawlflow.model.batches import BATCH
from pawlflow.model.checkpoints import LOOP
from pawlflow.model.ids import CellId, WorkflowName
from pawlflow.model.inputs import Input
from pawlflow.model.policies import POLICIES
from pawlflow.model.system import REGISTRY, SLOTS, TOPIC
from pawlflow.model.timed import RATE, SCHEDULE


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
    RATE: Kind(
        rate.Rate,
        rate.decide,
        rate.FORMAT,
        rate.RateFacts,
        rate.facts_of,
        rate.from_facts,
    ),
    SCHEDULE: Kind(
        schedule.Schedule,
        schedule.decide,
        schedule.FORMAT,
        schedule.ScheduleFacts,
        schedule.facts_of,
        schedule.from_facts,
    ),
    TOPIC: Kind(
        Topic,
        topic.decide,
        topic.FORMAT,
        topic.TopicFacts,
        topic.facts_of,
        topic.from_facts,
    ),
    BATCH: Kind(
        batch.Batch,
        batch.decide,
        batch.FORMAT,
        batch.BatchFacts,
        batch.facts_of,
        batch.from_facts,
    ),
    LOOP: Kind(
        loop.Loop,
        loop.decide,
        loop.FORMAT,
        loop.LoopFacts,
        loop.facts_of,
        loop.from_facts,
    ),
    POLICIES: Kind(
        policies.Policies,
        policies.decide,
        policies.FORMAT,
        policies.PoliciesFacts,
        policies.facts_of,
        policies.from_facts,
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
