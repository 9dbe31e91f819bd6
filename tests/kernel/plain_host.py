"""The plainest host there can be, for golden journals: one instance in memory and virtual time.

Scenarios run on the real shard (`pawlflow.testing.host`). This one stamps every turn as the first
version did, so that the journals of that time can be made again, byte for byte.

It keeps the engine's promises in the plainest way: a turn is journalled before anything leaves, a
crash loses all that was not journalled, and after it every open intent is offered again.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from pawlflow.definition.plan import Plan
from pawlflow.definition.shape import Policy
from pawlflow.engine.admission import admit_receipt
from pawlflow.kernel.draft import Rejected, open_intents
from pawlflow.kernel.replay import fold
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import Instance, next_deadline
from pawlflow.kernel.step import RULES, Cell, Stepped, new_cell, step
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import CellId, Digest, InstanceId, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Receipt, Tick
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.model.journal import Send, Stamps, payloads_of
from pawlflow.model.policies import policies_cell
from pawlflow.model.system import is_system
from pawlflow.policing import shape_of
from pawlflow.projections.verify import Difference, verify
from pawlflow.testing.host import (
    FIRST_ANSWERS,
    THEN_TIMERS,
    Answered,
    Crash,
    LostError,
    Planned,
    answers,
)


class PlainHost:
    """One instance under virtual time."""

    def __init__(
        self,
        cell: CellId,
        plan: Plan,
        answer: Callable[[Call], Planned | None],
        crash: Crash | None,
        rules: int = RULES,
    ) -> None:
        self.id = cell
        self.rules = rules
        self.plan = plan
        self.answer = answer
        self.crash = crash
        self.now = TimeMs(0)
        self.journal: list[tuple[bytes, Digest]] = []
        self.payloads: dict[bytes, bytes] = {}
        self.cell: Cell = new_cell(cell, plan)
        self.others: dict[CellId, tuple[Cell, list[tuple[bytes, Digest]]]] = {}  # system cells
        self.agenda: list[tuple[int, int, int, Answered | Callable[[], None]]] = []
        self.planned = 0
        self.known: dict[Digest, bool] = {}  # calls the world has, and whether they still count

    @property
    def state(self) -> Instance:
        """The instance."""
        assert isinstance(self.cell.state, Instance)
        return self.cell.state

    # The engine's side

    def submit(self, incoming: Input) -> Rejected | None:
        """Decide an input, journal the turn, and only then let anything out."""
        admitted = self.admit(incoming)
        stepped = step(self.cell, admitted, self.stamps(), self.rules)
        if isinstance(stepped, Rejected):
            return stepped
        if self.crash == Crash(stepped.turn.number, "before"):
            self.crash = None
            self.restart()
            return self.submit(incoming)  # it was never acknowledged: it comes again
        self.append(self.journal, stepped)
        if self.crash == Crash(stepped.turn.number, "after"):
            self.crash = None
            self.restart_unchanged()
        else:
            self.publish(stepped.intents)
        self.route(stepped.turn.sends)
        return None

    def route(self, sends: tuple[Send, ...]) -> None:
        """Bring a turn's sends to their cells, each with all that follows from it."""
        for send in sends:
            cell = CellId(self.id.tenant, WorkflowName(send.workflow), InstanceId(send.key))
            self.deliver(cell, send.input)

    def deliver(self, cell: CellId, incoming: Input) -> None:
        """Bring an input to the instance or to a system cell; other instances are not here."""
        if cell == self.id:
            self.submit(incoming)
        elif is_system(cell.workflow):
            other, journal = self.others.setdefault(cell, (new_cell(cell, None), []))
            stamps = Stamps(self.now, len(journal) + 1)
            stepped = step(other, incoming, stamps, self.rules)
            if isinstance(stepped, Stepped):
                self.append(journal, stepped)
                self.route(stepped.turn.sends)

    def admit(self, incoming: Input) -> Input:
        """Give verdicts where the definition asks for them."""
        if isinstance(incoming, Receipt):
            return admit_receipt(self.state, incoming)
        return incoming

    def stamps(self) -> Stamps:
        """Time and chance for the next turn; chance is a function of its place."""
        height = len(self.journal) + 1
        return Stamps(self.now, height, hash_of("scenario", self.id.key, height)[:16])

    def append(self, journal: list[tuple[bytes, Digest]], stepped: Stepped) -> None:
        """The commit."""
        journal.append((stepped.data, stepped.hash))
        for payload in payloads_of(stepped.turn):
            if payload.data is not None:
                self.payloads[payload.addr] = payload.data

    def restart(self) -> None:
        """Forget everything, read the journal, offer what is open again."""
        self.cell = fold(self.id, self.plan, [data for data, _ in self.journal], self.payloads)
        self.publish(tuple(open_intents(self.cell.state)))

    def restart_unchanged(self) -> None:
        """Restart, and see that nothing was lost."""
        before = state_bytes(self.cell.state)
        self.restart()
        if state_bytes(self.cell.state) != before:
            raise LostError(f"after turn {len(self.journal)} the journal tells another state")

    def in_force(self) -> list[Policy]:
        """The policies that decide now."""
        found = self.others.get(policies_cell(self.id.tenant))
        return [] if found is None else [shape_of(each) for each in found[0].state.in_force()]

    def know(self, workflow: object) -> None:
        """The plan was given."""

    def path_of(self, _: CellId) -> str:
        """There are no children here."""
        return ""

    def finish(self) -> None:
        """The journal is here already."""

    def verify(self) -> Difference | None:
        """Decide every journal again."""
        found = [verify(self.id, self.plan, self.journal, self.payloads)]
        found += [verify(id_, None, kept, self.payloads) for id_, (_, kept) in self.others.items()]
        return next((each for each in found if each is not None), None)

    # The world's side

    def publish(self, intents: tuple[Intent, ...]) -> None:
        """Hand calls and stops to the world; it does each call once, however often it is told."""
        for intent in intents:
            if isinstance(intent, Stop):
                self.stop(intent)
            elif intent.id not in self.known:
                self.known[intent.id] = True
                self.plan_answer(intent)

    def plan_answer(self, call: Call) -> None:
        """Put the answer to a call on the agenda."""
        planned = self.answer(call)
        if planned is not None:
            for receipt in planned.receipts:
                self.schedule(
                    self.now + planned.after_ms, FIRST_ANSWERS, Answered(self.id, receipt)
                )

    def stop(self, intent: Stop) -> None:
        """An attempt that is no longer wanted settles at once; if it was cancelled, for good."""
        if self.known.get(intent.call.id) is False:
            return
        self.known[intent.call.id] = False
        gone = (intent.call.key, intent.call.attempt)
        if intent.reason == "cancel":
            self.agenda = [entry for entry in self.agenda if not answers(entry[3], gone)]
            self.agenda.sort()
        settled = Receipt(intent.call.key, intent.call.attempt, "cancelled")
        self.schedule(self.now, FIRST_ANSWERS, Answered(self.id, settled))

    def schedule(self, at: int, rank: int, what: Answered | Callable[[], None]) -> None:
        """Put something on the agenda, behind what is there for the same instant."""
        self.planned += 1
        heappush(self.agenda, (at, rank, self.planned, what))

    def run(self) -> None:
        """Let time pass until the instance is closed or nothing more can happen."""
        while self.state.closed is None:
            due = next_deadline(self.state)
            timer = None if due is None else (int(due[0]), THEN_TIMERS)
            if self.agenda and (timer is None or self.agenda[0][:2] < timer):
                at, _, _, what = heappop(self.agenda)
                self.now = TimeMs(max(self.now, at))
                if isinstance(what, Answered):
                    self.submit(what.receipt)
                else:
                    what()
            elif timer is not None:
                self.now = TimeMs(max(self.now, timer[0]))
                self.submit(Tick())
            else:
                return
