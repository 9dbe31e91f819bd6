"""A host for scenarios: the real shard on a real store, in virtual time, with a scripted world.

The engine here is the one that runs in production. Only time is virtual, and the world answers as
the scenario says. A crash throws the engine away at a commit; what was acknowledged stays, and what
was not comes again.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final, Literal

import msgspec

from pawlflow import requests
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Policy, Workflow
from pawlflow.engine.actions import Accepted, Append, Notify, Publish, Reply, Stopped
from pawlflow.engine.cells import rebuild
from pawlflow.engine.drivers import Engine
from pawlflow.engine.fair import Offer
from pawlflow.engine.places import mail_of
from pawlflow.engine.shard import Shards
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import RULES
from pawlflow.model.codec import hash_of
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Receipt, StartInstance, Tick
from pawlflow.model.intents import Call, Stop
from pawlflow.model.kin import Parent
from pawlflow.policing import in_force
from pawlflow.projections.reading import story_of
from pawlflow.projections.verify import Difference, verify
from pawlflow.store.port import SHARDS, Address, Head, Store, StoreError
from pawlflow.testing.instants import Due, InOrder, Place, place_among
from pawlflow.testing.stand_ins import late_answer

FIRST_ANSWERS: Final = 0  # at one instant: what is done counts as done,
THEN_TIMERS: Final = 1  # then time is up,
THEN_SCRIPT: Final = 2  # and then somebody acts on what they see
DUE_MAX: Final = 1_000_000  # cells with a deadline: all of them


class Crash(msgspec.Struct, frozen=True):
    """Where the engine is to die: before or after the commit of a turn of the instance."""

    turn: int
    when: Literal["before", "after"]


class Answered(msgspec.Struct, frozen=True):
    """An answer of the world, on its way to the cell that asked."""

    cell: CellId
    receipt: Receipt


class Planned(msgspec.Struct, frozen=True):
    """What the world answers to a call: after how long, with which receipts."""

    after_ms: int
    receipts: tuple[Receipt, ...]


World = Callable[[], Store]  # a new store, or the same one again


class LostError(Exception):
    """A crash changed the state: a defect in Pawl, never in a workflow."""


class VirtualClock:
    """Time that passes when the host says so; chance that depends on how often it was asked."""

    def __init__(self, name: str) -> None:
        self.time = TimeMs(0)
        self.name = name
        self.asked = 0

    def now(self) -> TimeMs:
        """The virtual time."""
        return self.time

    def stopwatch(self) -> float:
        """Stepping takes no time here."""
        return 0.0

    def entropy(self) -> bytes:
        """The next sixteen bytes."""
        self.asked += 1
        return hash_of("scenario", self.name, self.asked)[:16]


class Host:
    """One instance under virtual time, its children, and the system cells they talk to."""

    def __init__(
        self,
        cell: CellId,
        plan: Plan,
        answer: Callable[[Call], Planned | None],
        crash: Crash | None,
        store: Callable[[], Store],
    ) -> None:
        self.id = cell
        self.plan = plan
        self.answer = answer
        self.crash = crash
        self.clock = VirtualClock(cell.key)
        self.drawn = 0  # of its chance, up to the last commit
        self.open_store = store
        self.store = store()
        self.agenda: list[tuple[int, int, int, Answered | Callable[[], None]]] = []
        self.due = Due()
        self.planned = 0
        self.paths: dict[str, str] = {}  # of instances, by id
        self.born: dict[Address, int] = {}  # cells, in the order in which they came to be
        self.known: dict[Digest, bool] = {}  # calls the world has, and whether they still count
        self.tokens = 0
        self.waiting: dict[int, tuple[CellId, Input]] = {}  # handed in, not answered yet
        self.answers: dict[int, Accepted | Rejected] = {}
        self.journal: list[tuple[bytes, Digest]] = []  # as the store has it in the end
        self.payloads: dict[bytes, bytes] = {}
        self.rules = RULES
        self.engine = self.begin()

    # The engine's side

    @property
    def now(self) -> TimeMs:
        """The virtual time."""
        return self.clock.time

    @property
    def state(self) -> Instance:
        """The state of the instance, live or read."""
        return self.state_of(self.id.key) or Instance(self.id, self.plan)

    def state_of(self, key: str) -> Instance | None:
        """The state of an instance, live or read; None if there is no such instance."""
        address = (self.id.tenant, InstanceId(key))
        live = self.engine.core.hot.get(address)
        if live is None:
            image = self.store.load([address]).get(address)
            live = None if image is None else rebuild(image, self.plan_of(image.head))
        if live is None or live.cell is None or not isinstance(live.cell.state, Instance):
            return None
        return live.cell.state

    def plan_of(self, head: Head) -> Plan | None:
        """The plan of an instance by its definition; system cells have none."""
        digest = Digest(head.definition)
        return plan_of(self.store.definitions([digest])[digest]) if digest else None

    def path_of(self, cell: CellId) -> str:
        """Where a child hangs, such as `a/b[2]/`; empty for what has no parent."""
        if cell.key not in self.paths:
            state = self.state_of(cell.key)
            parent = None if state is None else state.parent
            self.paths[cell.key] = "" if parent is None else self.path_below(cell.tenant, parent)
        return self.paths[cell.key]

    def path_below(self, tenant: Tenant, parent: Parent) -> str:
        """Where the child of a step hangs."""
        above = CellId(tenant, WorkflowName(parent.workflow), InstanceId(parent.key))
        return f"{self.path_of(above)}{parent.step}/"

    def begin(self) -> "CrashingEngine":
        """An engine that owns the store from now on."""
        return CrashingEngine(self)

    def know(self, workflow: Workflow) -> None:
        """Make a workflow known, as `pawl apply` does."""
        request = requests.publish(workflow, self.id.tenant, "scenario")
        request = msgspec.structs.replace(request, schedule=None)  # one run is played, no others
        refused = self.submit(request, requests.registry_cell(self.id.tenant))
        assert refused is None, refused

    def in_force(self) -> list[Policy]:
        """The policies that decide now."""
        return in_force(self.store, self.id.tenant)

    def submit(self, incoming: Input, cell: CellId | None = None) -> Rejected | None:
        """Hand in an input and let the engine work until it is durable, or refused.

        Starts and receipts come again after a crash, as their senders would send them: they are
        known by their ids. What people do goes by mail, which a crash neither loses nor doubles.
        """
        if not isinstance(incoming, StartInstance | Receipt):
            return self.post(cell or self.id, incoming)
        self.tokens += 1
        token = self.tokens
        self.waiting[token] = (cell or self.id, incoming)
        self.engine.core.submit(cell or self.id, incoming, token)
        self.pump()
        outcome = self.answers.pop(token)
        return outcome if isinstance(outcome, Rejected) else None

    def post(self, cell: CellId, incoming: Input) -> Rejected | None:
        """Put an input into the mailbox, as a second terminal does."""
        [number] = self.store.post([mail_of(cell, incoming)])
        self.engine.core.poked()
        self.pump()
        taken = self.store.answer(number)
        assert taken is not None, "the engine left mail behind"
        return Rejected(taken.code, taken.detail) if taken.code else None

    def pump(self) -> None:
        """Let the engine work; if it dies, another one takes over."""
        while True:
            try:
                self.engine.drain()
            except CrashNow as crashed:
                self.restart(crashed.before)
                continue
            due = self.engine.deadlines.first()
            if due is None:
                return
            self.engine.core.put(Offer(CellId(due[0], WorkflowName(""), due[1]), due, Tick()))

    def place_of(self, address: Address) -> Place:
        """Where a cell stands among those that are due now."""
        return place_among(self.state_of(address[1]), self.born[address])

    def restart(self, before: bytes | None) -> None:
        """A new engine on the same store: everything in memory is gone."""
        self.store.close()
        self.store = self.open_store()
        self.engine = self.begin()
        self.clock.asked = self.drawn  # what was lost is drawn again: a crash changes no id
        self.due = Due()
        for head in self.store.due(range(SHARDS), (-1, 0), DUE_MAX):
            self.due.note(head)
        state = self.state
        if before is not None and state_bytes(state) != before:
            raise LostError("after a crash the journal tells another state")
        for token, (cell, incoming) in list(self.waiting.items()):
            self.engine.core.submit(cell, incoming, token)

    def answered(self, reply: Reply) -> None:
        """What became of an input."""
        self.waiting.pop(reply.token, None)
        self.answers[reply.token] = reply.outcome

    def deliver(self, cell: CellId, incoming: Input) -> Rejected | None:
        """Hand in an input for another cell."""
        return self.submit(incoming, cell)

    def finish(self) -> None:
        """Read what the store says of the instance."""
        if self.store.story((self.id.tenant, self.id.key)) is not None:
            story = story_of(self.store, self.id.tenant, self.id.key)
            self.journal, self.payloads = story.turns, story.payloads

    def verify(self) -> Difference | None:
        """Decide the whole journal again."""
        return verify(self.id, self.plan, self.journal, self.payloads)

    def close(self) -> None:
        """Give the store back."""
        self.store.close()

    # The world's side

    def publish(self, action: Publish) -> None:
        """Hand calls and stops to the world; it does each call once, however often it is told."""
        for intent in action.intents:
            if isinstance(intent, Stop):
                self.stop(intent)
            elif intent.id not in self.known:
                self.known[intent.id] = True
                self.plan_answer(intent)

    def notify(self, action: Notify) -> None:
        """Turns are durable: their cells may be due at other times now."""
        for turn in action.turns:
            self.due.note(turn.head)

    def stopped(self, action: Stopped) -> None:
        """A scenario's store does not fail."""
        raise StoreError(action.code, action.message)

    def plan_answer(self, call: Call) -> None:
        """Put the answer to a call on the agenda."""
        planned = self.answer(call)
        if planned is not None:
            for receipt in planned.receipts:
                answered = Answered(call.cell, receipt)
                self.schedule(self.now + planned.after_ms, FIRST_ANSWERS, answered)

    def stop(self, intent: Stop) -> None:
        """An attempt that is no longer wanted settles at once; if it was cancelled, for good."""
        if self.known.get(intent.call.id) is False:
            return
        self.known[intent.call.id] = False
        gone = (intent.call.key, intent.call.attempt)
        left = intent.reason == "timeout"  # and may still answer
        stopped = [] if left else [entry for entry in self.agenda if answers(entry[3], gone)]
        self.agenda = sorted(entry for entry in self.agenda if entry not in stopped)
        for at, rank, _, what in stopped[:1]:
            assert isinstance(what, Answered)
            late = late_answer(intent.call, what.receipt, self.state_of)
            if late is not None:
                self.schedule(at, rank, Answered(*late))
        settled = Receipt(intent.call.key, intent.call.attempt, "cancelled")
        if left:  # before the next deadline of this instant: it is part of what this one leads to
            self.tokens += 1
            self.waiting[self.tokens] = (intent.call.cell, settled)
            self.engine.core.submit(intent.call.cell, settled, self.tokens)
        else:
            self.schedule(self.now, FIRST_ANSWERS, Answered(intent.call.cell, settled))

    def schedule(self, at: int, rank: int, what: Answered | Callable[[], None]) -> None:
        """Put something on the agenda, behind what is there for the same instant."""
        self.planned += 1
        heappush(self.agenda, (at, rank, self.planned, what))

    def run(self) -> None:
        """Let time pass until the instance is closed or nothing more can happen."""
        while (state := self.state).created is not None and state.closed is None:
            due = self.due.next_at()
            timer = None if due is None else (due, THEN_TIMERS)
            if self.agenda and (timer is None or self.agenda[0][:2] < timer):
                at, _, _, what = heappop(self.agenda)
                self.clock.time = TimeMs(max(self.now, at))
                if isinstance(what, Answered):
                    self.submit(what.receipt, what.cell)
                else:
                    what()
            elif timer is not None:
                self.clock.time = TimeMs(max(self.now, timer[0]))
                self.pump()
            else:
                return


class CrashNow(BaseException):
    """The engine dies here."""

    def __init__(self, before: bytes | None) -> None:
        self.before = before  # the state that must be found again


class CrashingEngine(Engine):
    """The engine, with one appointment."""

    def __init__(self, host: Host) -> None:
        core = Shards(host.store.claim(), host.clock)
        core.deadlines = self.deadlines = InOrder(host.place_of)
        super().__init__(core, host.store, host.clock, host)
        self.host = host
        self.reply = host.answered

    def append(self, action: Append) -> StoreError | None:
        """Commit, unless this is where to die."""
        crash = self.host.crash
        numbers = self.numbers(action) if crash is not None else set()
        if crash is not None and crash.turn in numbers:
            self.host.crash = None
            if crash.when == "before":
                raise CrashNow(None)
            self.store.append(action.batch)
            self.committed(action)
            raise CrashNow(state_bytes(self.host.state))
        error = super().append(action)
        self.committed(action)
        return error

    def committed(self, action: Append) -> None:
        """What the world remembers of a commit, whatever becomes of the engine."""
        self.host.drawn = self.host.clock.asked
        for head in action.batch.heads:
            self.host.born.setdefault((head.cell.tenant, head.cell.key), len(self.host.born))

    def numbers(self, action: Append) -> set[int]:
        """The turns of the instance in this batch."""
        refs = {h.ref for h in action.batch.heads if h.cell.key == self.host.id.key}
        entries = (entry for frame in action.batch.frames for entry in frame.entries)
        return {entry.number for entry in entries if entry.ref in refs}


def answers(what: object, gone: tuple[bytes, int]) -> bool:
    """Is this the answer of that attempt?"""
    return isinstance(what, Answered) and (what.receipt.key, what.receipt.attempt) == gone
