"""People: they decide at gates, send signals, help what is stuck, cancel and pause; or a script.

They come when a step asks for somebody. What they do apart from saying yes is a fault: it is drawn,
it is on the tape, and it can be taken away.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from pawlflow import requests
from pawlflow.definition.express import ExpressionError
from pawlflow.definition.plan import StepPlan
from pawlflow.engine.actions import Accepted
from pawlflow.kernel.children import child_id
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import Unit
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId, StepName
from pawlflow.model.inputs import (
    Approve,
    CancelInstance,
    DeliverEvent,
    Input,
    PauseInstance,
    Reject,
    ResumeStep,
    UnpauseInstance,
)
from pawlflow.model.journal import Turn
from pawlflow.model.system import EmitEvent, topic_cell
from pawlflow.store.port import Address
from pawlflow.testing.acting import input_of
from pawlflow.testing.scenario import Action
from pawlflow.testing.sim.asking import Asking
from pawlflow.testing.usersim.clockwork import Clockwork, Nodes
from pawlflow.testing.usersim.lives import Life, asks
from pawlflow.testing.usersim.watch import Watch
from pawlflow.testing.usersim.workload import TENANT, Workload

NAMES: Final = ("ann", "bob", "cleo", "dan")
SOON_MS: Final = (200, 20_000)
PAUSE_MS: Final = (500, 120_000)
NOBODY_MS: Final = 6 * 3_600_000  # where nothing expires
HELPED_MAX: Final = 8  # times one thing is helped before it is given up
VERBS: Final[dict[type, str]] = {
    Approve: "approves",
    Reject: "rejects",
    ResumeStep: "resumes",
    CancelInstance: "cancels",
    PauseInstance: "pauses",
    UnpauseInstance: "unpauses",
}


class People:
    """Everybody outside who acts on instances."""

    def __init__(self, nodes: Nodes, world: Clockwork, work: Workload, watch: Watch) -> None:
        self.nodes = nodes
        self.world = world
        self.work = work
        self.watch = watch
        self.attended: dict[tuple[Address, int], None] = {}  # steps somebody looks after
        self.helped: Counter[tuple[Address, int]] = Counter()
        self.paused: dict[Address, None] = {}
        self.asked: Counter[tuple[str, str]] = Counter()

    def heard(self, life: Life, turn: Turn, _: list[Event]) -> None:
        """An instance went on: does it need somebody? Does somebody want to interfere?"""
        state = life.state
        if state.parent is None and turn.number == 1:
            self.play(life)
        if not self.work.people or state.closed is not None:
            return
        if turn.number == 1:
            self.signal_early(life)
        self.interfere(life)
        self.let_go_on(life)
        for place in sorted(state.open):
            at = ((life.cell.tenant, life.cell.key), place)
            if at not in self.attended and asks(state.unit(place)):
                self.attended[at] = None
                self.attend(life, place)

    def ask(self, life: Life, incoming: Input, *, cell: CellId | None = None) -> None:
        """Ask until there is an answer."""
        what, who = type(incoming).__name__, f"{life.cell.tenant}/{life.cell.key}"
        self.asked[what, who] += 1
        name = f"{what}{self.asked[what, who]}:{who}"
        where = cell or requests.instance_cell(life.cell.tenant, life.cell.key)
        asking = Asking(self.nodes, where, incoming, name)
        asking.done = partial(self.answered, life, incoming)
        asking.ask()

    def answered(self, life: Life, incoming: Input, outcome: Accepted | Rejected) -> None:
        """What became of it; the story tells what was refused, for the journal does not."""
        if isinstance(outcome, Rejected):
            verb = VERBS.get(type(incoming), "signals")
            by, step = getattr(incoming, "by", "somebody"), getattr(incoming, "step", "")
            said = f"{by} {verb} {step}".rstrip()
            self.world.say(life.name, f"{said}, and is refused ({outcome.code})")
        self.world.tell(f"answer {life.name} {type(incoming).__name__} {outcome!r}")

    # Interfering

    def interfere(self, life: Life) -> None:
        """After any turn somebody may cancel or pause."""
        name, faults = f"{life.cell.tenant}/{life.cell.key}", self.world.faults
        if faults.fires("people.cancel", name):
            wait = self.world.dice.between(f"cancel:{name}", 0, 3_000)
            self.world.after(wait, lambda: self.ask(life, CancelInstance("eve")))
        if not life.state.paused and faults.fires("people.pause", name):
            self.ask(life, PauseInstance("eve"))

    def let_go_on(self, life: Life) -> None:
        """Whoever pauses lets it go on after a while."""
        address = (life.cell.tenant, life.cell.key)
        if life.state.paused and address not in self.paused:
            self.paused[address] = None
            wait = self.world.dice.between(f"pause:{life.name}", *PAUSE_MS)
            self.world.after(wait, lambda: self.unpause(life))

    def unpause(self, life: Life) -> None:
        """If it still is."""
        del self.paused[life.cell.tenant, life.cell.key]
        if life.state.paused and life.state.closed is None:
            self.ask(life, UnpauseInstance("eve"))

    def signal_early(self, life: Life) -> None:
        """What will be awaited comes at once."""
        for plan in life.plan.steps:
            if plan.kind == "wait" and plan.correlation is None:
                site = f"{life.cell.tenant}/{life.cell.key}@{plan.name}"
                if self.world.faults.fires("people.early", site):
                    data = self.data_for(life.state, plan)
                    self.ask(life, requests.signal(plan.event, data, TENANT, "bob"))

    # Attending

    def attend(self, life: Life, place: int) -> None:
        """Somebody will come and look after it; or nobody, until it is too late."""
        unit = life.state.unit(place)
        site = f"{life.cell.tenant}/{life.cell.key}@{life.state.name_of(unit)}"
        wait = self.world.dice.between(f"come:{site}", *SOON_MS)
        if self.world.faults.fires("people.silent", site):
            left = NOBODY_MS if unit.until is None else max(0, unit.until - life.state.now)
            wait += 2 * left
        self.world.after(wait, lambda: self.come(life, place))

    def come(self, life: Life, place: int) -> None:
        """Do what is needed, if it still is, and come again to see whether that helped."""
        state, at = life.state, ((life.cell.tenant, life.cell.key), place)
        done = state.closed is not None or place not in state.open
        unit = None if done else state.unit(place)
        if unit is None or not asks(unit):
            del self.attended[at]
            return
        self.helped[at] += 1
        tries = self.helped[at]
        if tries > HELPED_MAX and asks(unit) == "event":
            return  # nobody knows what it waits for: it is left waiting, and the end says so
        for incoming in self.needed(life, unit, tries):
            self.ask(life, incoming)
        self.attend(life, place)

    def needed(self, life: Life, unit: Unit, tries: int) -> Iterator[Input]:
        """What would serve a step that asks for somebody."""
        state, step = life.state, life.state.name_of(unit)
        plan, faults = state.plan.steps[unit.step], self.world.faults
        site = f"{life.cell.tenant}/{life.cell.key}@{step}"
        who = NAMES[(tries - 1) % len(NAMES)]
        kind = asks(unit)
        if tries > HELPED_MAX:
            yield CancelInstance(who)
        elif kind == "event":
            yield from self.signals(site, state, plan)
        elif kind == "escalation":
            yield ResumeStep(step, who, "resume")
        else:
            gate = gate_of(state, unit)
            role = None if kind == "budget" or gate is None else role_of(unit, gate)
            no = faults.fires("people.reject", site)
            yield Reject(step, who, role) if no else Approve(step, who, role)
            if faults.fires("people.twice", site):
                yield Approve(step, who, role)

    def signals(self, site: str, state: Instance, plan: StepPlan) -> Iterator[Input]:
        """The event that is awaited, perhaps after one that is not, perhaps twice."""
        if self.world.faults.fires("people.stray", site):
            yield requests.signal(plan.event, {"stray": True}, TENANT, "bob")
        signal = requests.signal(plan.event, self.data_for(state, plan), TENANT, "bob")
        yield signal
        if self.world.faults.fires("people.twice", site):
            yield signal

    def data_for(self, state: Instance, plan: StepPlan) -> dict[str, Any]:
        """What the user said, and what `match` asks for as far as it can be read off."""
        data: dict[str, Any] = dict(self.work.signals.get(plan.event, {}))
        if plan.correlation is not None:
            path, bound = plan.correlation
            try:
                value = bound.evaluate(state)
            except ExpressionError:
                return data
            inner = data
            *before, last = path.split(".")
            for key in before:
                inner = inner.setdefault(key, {})
            inner[last] = value
        return data

    # A script

    def play(self, life: Life) -> None:
        """Everything a scenario's script says, counted from the start of each instance."""
        for action in self.work.script:
            self.world.after(action.at_ms, partial(self.perform, life, action))

    def perform(self, life: Life, action: Action) -> None:
        """One line of it; what can no longer be done is passed over."""
        cell, step = self.place_of(life, action)
        if cell is None:
            return
        incoming = input_of(replace(action, step=step), TENANT)
        if isinstance(incoming, DeliverEvent):
            emitted = EmitEvent(incoming.data, action.by, "")
            self.ask(life, emitted, cell=topic_cell(TENANT, incoming.event))
        else:
            self.ask(life, incoming, cell=cell)

    def place_of(self, life: Life, action: Action) -> tuple[CellId | None, StepName | None]:
        """The cell that a line is about: the instance, or a child by its path."""
        *path, step = (action.step or "").split("/")
        state: Instance | None = life.state
        for name in path:
            unit = None if state is None else state.named(name)
            if state is None or unit is None or unit.attempt == 0:
                return None, None
            child = self.watch.lives.get((TENANT, child_id(state, unit)))
            state = None if child is None else child.state
        if state is None or state.closed is not None:
            return None, None
        return requests.instance_cell(TENANT, state.cell.key), StepName(step) or None
