"""What is simulated: a user's workflow, who answers its steps, what it is started with."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pawlflow import requests
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Policy, Step, Workflow
from pawlflow.effects.registry import Registry
from pawlflow.engine.admission import admit_start
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.model.inputs import StartInstance
from pawlflow.model.system import PublishDefinition
from pawlflow.testing.scenario import Action, Answer
from pawlflow.testing.sim.chance import Dice
from pawlflow.testing.stand_ins import stand_ins
from pawlflow.testing.usersim import kinds
from pawlflow.testing.usersim.sampling import sample

TENANT: Final = Tenant("default")
STARTER: Final = "sim"  # who starts instances, unless a scenario says
STORMS_MS: Final = (60_000, 180_000, 600_000)
LOOKS: Final = 60  # at the weather, in a storm
STORM_MS_MAX: Final = 7 * 86_400_000
SPREAD_MS: Final = 2_000  # instances begin within this time
INSTANCES: Final = 2


class UnfitInputError(Exception):
    """The input does not fit the workflow."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a run consists of; all of it is drawn from the seed, and all of it is on a tape."""

    seed: int
    nodes: int
    instances: int
    only: tuple[int, ...] | None = None  # of the instances; a shrunk tape keeps few
    storm_ms: int  # faults strike until then
    rates: dict[str, float]
    slow_ms: int = 1  # that a call to the store takes, at most
    turns: int = 500  # in one commit
    hot_cells: int = 4_096  # kept in memory


class Workload(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A workflow under test, and the world around it as far as the user says."""

    workflows: tuple[Workflow, ...]  # the first is started; the others are children
    stubs: dict[str, tuple[Answer, ...]] = {}
    script: tuple[Action, ...] = ()
    policies: tuple[Policy, ...] = ()  # in force from the beginning to the end
    by: str = STARTER
    inputs: tuple[Any, ...] = ()  # none: drawn from the workflow's schema
    people: bool = True
    idempotent: frozenset[str] = frozenset()  # steps whose executors remember keys; "*": all
    signals: dict[str, Any] = {}  # the data of events, by name
    registry: Registry | None = None  # the user's own functions
    instances: int = INSTANCES
    faults: frozenset[str] = frozenset()

    @cached_property
    def everything(self) -> tuple[Workflow, ...]:
        """With stand-ins for children that nobody has defined."""
        return (*self.workflows, *stand_ins(self.workflows))

    @cached_property
    def plan(self) -> Plan:
        """Of the workflow that is started."""
        return plan_of(definition_bytes(self.workflows[0]))

    @cached_property
    def publications(self) -> tuple[PublishDefinition, ...]:
        """What makes the definitions known. Only what is started here is to run: no schedules."""
        made = (requests.publish(each, TENANT, self.by) for each in self.everything)
        return tuple(replace(each, schedule=None) for each in made)

    @cached_property
    def span_ms(self) -> int:
        """A rough guess how long an instance may take when everything waits once."""
        return sum(longest(step) for each in self.workflows for step in each.steps)

    @cached_property
    def checks(self) -> dict[str, Any]:
        """The schema of a step's result, by the name of its workflow and its own."""
        return {
            f"{each.name}.{step.name}": step.check for each in self.workflows for step in each.steps
        }

    def remembers(self, step: str) -> bool:
        """Does the executor of this step do each key once?"""
        return "*" in self.idempotent or step in self.idempotent

    def dice(self, seed: int) -> Dice:
        """The chance of a seed."""
        return Dice(seed)

    def setup(self, seed: int) -> Setup:
        """The setup of a seed."""
        dice = Dice(seed)
        allowed = self.faults
        if not self.people:
            allowed = frozenset(kind for kind in allowed if not kind.startswith(kinds.PEOPLE))
        storm = dice.pick("storm", (*STORMS_MS, max(60_000, 2 * self.span_ms)))
        return Setup(
            seed=seed,
            nodes=dice.pick("nodes", (1, 1, 2, 3)),
            instances=self.instances,
            storm_ms=min(storm, STORM_MS_MAX),
            rates=kinds.drawn(dice, allowed),
            slow_ms=dice.pick("slow", (1, 5, 60)),
            turns=dice.pick("turns", (1, 5, 500)),
            hot_cells=dice.pick("hot", (1, 4_096)),
        )

    def start(self, dice: Dice, number: int) -> tuple[CellId, StartInstance]:
        """The start of an instance. Raises UnfitInputError."""
        workflow = self.workflows[0]
        if self.inputs:
            value = self.inputs[(number - 1) % len(self.inputs)]
        else:
            value = sample(workflow.input, dice, f"input:{number}")
        start = admit_start(self.plan, value, tenant=TENANT, by=self.by)
        if isinstance(start, Rejected):
            shown = msgspec.json.encode(value).decode()
            raise UnfitInputError(f"the input {shown} does not fit the workflow: {start.detail}")
        return CellId(TENANT, workflow.name, InstanceId(f"i{number}")), start


def longest(step: Step) -> int:
    """How long a step may take by its own word."""
    wait = step.wait.timeout_ms if step.wait else None
    gate = step.gate.expires_ms if step.gate else None
    return sum(each or 0 for each in (step.sleep_ms, step.timeout_ms, wait, gate))


def numbers_of(setup: Setup) -> Sequence[int]:
    """The instances that are started."""
    return setup.only if setup.only is not None else range(1, setup.instances + 1)
