"""Serving: what an instance that waits for somebody is given, as its journal tells."""

from collections.abc import Callable, Iterator
from typing import Final

from pawlflow import requests
from pawlflow.definition.plan import StepPlan
from pawlflow.kernel.gates import AnyGate, gate_of, role_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import ESCALATED, WAITING, Unit
from pawlflow.model.ids import CellId, RoleName, StepName, Tenant
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    ClaimReview,
    Input,
    Reject,
    ResumeStep,
)
from pawlflow.model.payload import Payload
from pawlflow.testing.sim.shadows import Shadow
from pawlflow.testing.sim.world import World

PEOPLE: Final = ("ann", "bob", "eve")
TRIES_MAX: Final = 6  # of a step with one input: an executor may keep a bad result for its key
HOPELESS: Final = 12  # times that somebody tried to help after the storm

Ask = Callable[[str, CellId, Input], None]


class Serving:
    """Everybody who looks after instances, one at a time."""

    def __init__(self, world: World, ask: Ask) -> None:
        self.world = world
        self.ask = ask
        self.tried: dict[str, int] = {}

    def needs(self, name: str, shadow: Shadow, state: Instance) -> Iterator[Input]:
        """What an instance waits for, as the inputs that would serve it."""
        for place in sorted(state.open):
            unit = state.unit(place)
            plan, called = state.plan.steps[unit.step], state.name_of(unit)
            site = f"{name}.{called}"
            if unit.status == ESCALATED and self.is_away(site, state):
                continue
            if unit.status == ESCALATED:
                yield from self.claim(site, called, None)
                yield self.relieve(site, called, shadow.id.tenant, state, unit)
            elif unit.held:
                yield from self.claim(site, called, None)
                yield self.decide_budget(site, called, state, unit)
            elif unit.status == WAITING and unit.wait == "approval":
                gate = gate_of(state, unit)
                role = None if gate is None else role_of(unit, gate)
                yield from self.claim(site, called, role)
                yield self.decide(site, called, role, gate)
            elif unit.status == WAITING and unit.wait == "event":
                yield from self.signal(name, plan, shadow.id.tenant, state)

    def claim(self, site: str, step: StepName, role: RoleName | None) -> Iterator[Input]:
        """Somebody says that they look after it."""
        if self.world.faults.fires("client.claim", site, "is claimed"):
            yield ClaimReview(step, self.world.dice.pick(f"claims:{site}", PEOPLE), role)

    def signal(self, name: str, plan: StepPlan, tenant: Tenant, state: Instance) -> Iterator[Input]:
        """The event that is awaited, to the one who waits or to all."""
        if self.is_hopeless(f"{name}.{plan.name}"):
            yield CancelInstance("ann")
            return
        value = state.input.value
        data = {"n": value.get("n", 7) if isinstance(value, dict) else 7}
        if self.world.faults.fires("client.emit", name, "a broadcast instead of a signal"):
            topic = requests.topic_cell(tenant, plan.event)
            data["n"] = self.world.dice.pick(f"emit:{name}", (data["n"], 7))
            emitted = requests.emit(plan.event, data, tenant, "bob")
            self.ask(f"emit:{name}.{plan.name}", topic, emitted)
        else:
            yield requests.signal(plan.event, data, tenant, "bob")

    def is_hopeless(self, site: str) -> bool:
        """Has somebody tried to help often enough?"""
        self.tried[site] = self.tried.get(site, 0) + self.world.faults.healed
        return self.tried[site] > HOPELESS

    def relieve(
        self, site: str, step: StepName, tenant: Tenant, state: Instance, unit: Unit
    ) -> Input:
        """Let an escalated step go on; what nobody can help is given up in the end."""
        if self.is_hopeless(site):
            return CancelInstance("ann")
        plan = state.plan.steps[unit.step]
        edits = plan.takes_input and (step != plan.name or plan.for_each is None)
        tired = unit.attempt > TRIES_MAX and edits
        return self.resume(site, step, tenant, edits=edits, must=tired, acting=self.acting(state))

    def acting(self, state: Instance) -> RoleName | None:
        """In which role somebody acts, where a ladder asks; perhaps not the right one."""
        roles: list[RoleName | None] = [None, *(rung.role for rung in state.plan.ladder)]
        where = f"acting:{state.cell.tenant}/{state.cell.key}"
        return None if self.world.faults.healed else self.world.dice.pick(where, roles)

    def resume(  # what a human decision consists of
        self,
        site: str,
        step: StepName,
        tenant: Tenant,
        *,
        edits: bool,
        must: bool,
        acting: RoleName | None,
    ) -> Input:
        """With the same input or another, by the same role or another."""
        name = site.partition(".s")[0]
        edited = edits and self.world.faults.fires("client.edit", name, "its input is changed")
        if edited or must:
            params = Payload.of({"edited": True}, tenant)
            return ResumeStep(step, "ann", "retry", params=params, acting=acting)
        if edits and self.world.dice.roll(f"reassign:{name}") < 0.3:
            return ResumeStep(step, "ann", "reassign", role=RoleName("Clerk"), acting=acting)
        return ResumeStep(step, "ann", "resume", acting=acting)

    def is_away(self, site: str, state: Instance) -> bool:
        """Is nobody there whom the present rung asks?"""
        faults = self.world.faults
        return bool(state.plan.ladder) and faults.fires("client.away", site, "nobody is there")

    def decide(
        self, site: str, step: StepName, role: RoleName | None, gate: AnyGate | None
    ) -> Input:
        """Approve or reject, as somebody who may."""
        who, faults = self.world.dice.pick(f"who:{site}", PEOPLE), self.world.faults
        changes = gate is not None and gate.on_reject == "changes"
        if changes and faults.fires("client.changes", site, "changes are asked for"):
            return Reject(step, who, role)
        if faults.fires("client.reject", site, "is rejected"):
            return Reject(step, who, role)
        return Approve(step, who, role)

    def decide_budget(self, site: str, step: StepName, state: Instance, unit: Unit) -> Input:
        """Raise the limits: by what is needed, or to an amount; or do not."""
        who = self.world.dice.pick(f"who:{site}", PEOPLE)
        if self.world.faults.fires("client.reject", site, "is not paid for"):
            return Reject(step, who, None)
        limits = None
        if self.world.faults.fires("client.limits", site, "a limit is set"):
            amount = self.world.dice.pick(f"limit:{site}", (1, 4, 9))
            limits = Payload.of({"usd": amount}, state.cell.tenant)
        return Approve(step, who, None, limits=limits)
