"""Hands: executors of a user's steps. They answer by stubs, by the user's functions, or as drawn.

An executor does one attempt once, however often it is told; another attempt of the same key it does
again, unless the user says that its step is idempotent. A ledger keeps what was truly done.
"""

import asyncio
import atexit
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from pawlflow.effects.registry import Registry
from pawlflow.effects.runner import Job as Attempt
from pawlflow.effects.runner import Runner
from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.ids import NO_ITEM, CellId, StepKey
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call, Intent, Stop
from pawlflow.policing import judged
from pawlflow.testing.acting import receipt_of
from pawlflow.testing.runner import spellings
from pawlflow.testing.scenario import Answer
from pawlflow.testing.sim.bus import Bus
from pawlflow.testing.sim.executors import name_of
from pawlflow.testing.stand_ins import STAND_IN
from pawlflow.testing.usersim.clockwork import Clockwork
from pawlflow.testing.usersim.kinds import FAILURES, UNDO_FAILURES, UNDO_TRIES
from pawlflow.testing.usersim.sampling import sample
from pawlflow.testing.usersim.watch import Watch
from pawlflow.testing.usersim.workload import Workload

QUICK_MS: Final = (1, 800)
LONG_MS: Final = (10_000, 100_000)  # where there is no timeout to go by
Bring = Callable[[CellId, Receipt, str], None]


class Effect(msgspec.Struct, frozen=True):
    """Something that was truly done."""

    at: int
    key: StepKey
    attempt: int
    name: str  # of the step, with its item and the path to it; `undo/` before it


class Job:
    """One attempt in somebody's hands."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.at_work = True
        self.stopped = False
        self.answers: list[Receipt] = []


class Hands:
    """Everybody who carries out steps."""

    def __init__(self, world: Clockwork, bus: Bus, work: Workload, watch: Watch) -> None:
        self.world = world
        self.bus = bus
        self.work = work
        self.watch = watch
        self.bring: Bring = lambda *_: None
        self.jobs: dict[tuple[StepKey, int], Job] = {}
        self.remembered: dict[StepKey, Receipt] = {}
        self.asked: Counter[tuple[str, str]] = Counter()
        self.ledger: dict[str, list[Effect]] = {}  # by the instance it hangs below
        self.met: Counter[str] = Counter()  # outcomes
        self.hanging: dict[tuple[StepKey, int], str] = {}  # what never answers

    # Told

    def command(self, _: str, intent: Intent) -> None:
        """The engine publishes an intent."""
        call = intent.call if isinstance(intent, Stop) else intent
        if isinstance(intent, Stop):  # a stop that is lost is a deaf executor: another fault
            self.world.after(1, lambda: self.stop(intent))
            return
        if call.direction == "ask":  # in the engine's own process, where nothing is lost
            told = f"receipt:{name_of(call)}:judged"
            answer = judged(call, self.work.policies)
            self.world.after(1, lambda: self.bring(call.cell, answer, told))
            return
        self.bus.send(f"call:{name_of(call)}", lambda: self.hear(call))

    def hear(self, call: Call) -> None:
        """A call arrives, perhaps once more."""
        job = self.jobs.get((call.key, call.attempt))
        if job is not None and (job.at_work or job.stopped):
            return
        if job is not None and job.answers and not self.forgets(call):
            self.met["asked again"] += 1
            for answer in job.answers:
                self.send(call, answer)
            return
        self.begin(call)

    def forgets(self, call: Call) -> bool:
        """Has its executor no memory of what it did?"""
        if self.work.remembers(call.step):
            return False
        return self.world.faults.fires("exec.forgets", name_of(call))

    def stop(self, intent: Stop) -> None:
        """It is no longer wanted: what was not done yet is not done any more.

        Who is told that it is cancelled says what became of it, whatever that was.
        """
        call = intent.call
        job = self.jobs.get((call.key, call.attempt))
        if job is not None and self.world.faults.fires("exec.deaf", name_of(call)):
            return
        if job is not None and job.answers and intent.reason == "cancel":
            self.bring(call.cell, job.answers[0], f"receipt:{name_of(call)}:stopped")
        if job is not None and (job.answers or job.stopped):
            return
        if job is None:
            job = self.jobs[call.key, call.attempt] = Job(call)
        job.stopped = True
        cancelled = Receipt(call.key, call.attempt, "cancelled")
        self.bring(call.cell, cancelled, f"receipt:{name_of(call)}:cancelled")

    # At work

    def begin(self, call: Call) -> None:
        """Somebody takes it into their hands."""
        job = self.jobs[call.key, call.attempt] = Job(call)
        name, faults = name_of(call), self.world.faults
        if faults.fires("exec.crash", name):
            job.at_work = False
            return
        slow = faults.fires("undo.slow" if call.direction == "undo" else "exec.slow", name)
        wait = self.long(call) if slow else self.world.dice.between(f"work:{name}", *QUICK_MS)
        self.world.after(wait, lambda: self.do(job))

    def long(self, call: Call) -> int:
        """A time around the timeout, before or after it."""
        if call.timeout_ms is None:
            return self.world.dice.between(f"long:{name_of(call)}", *LONG_MS)
        half = max(1, call.timeout_ms // 2)
        return self.world.dice.between(f"long:{name_of(call)}", half, 5 * half)

    def do(self, job: Job) -> None:
        """The moment in which it happens, or does not."""
        call = job.call
        if job.stopped:
            return
        known = self.remembered.get(call.key)
        if known is not None:
            self.met["remembered"] += 1
            again = msgspec.structs.replace(known, attempt=call.attempt)
            self.settle(job, [again])
            return
        class_ = self.drawn_failure(call)
        if class_ is not None:
            self.settle(job, [failed(call, class_)])
            return
        stub = self.stub_of(call)
        if stub is None:
            self.done(job, self.carried_out(call))
        elif stub.hang:
            self.met["hangs"] += 1
            self.hanging[call.key, call.attempt] = self.named(call)[1]
        elif stub.after_ms:
            receipts = (receipt_of(call, stub),) * (2 if stub.twice else 1)
            self.world.after(stub.after_ms, lambda: self.done(job, *receipts))
        else:
            self.done(job, *(receipt_of(call, stub),) * (2 if stub.twice else 1))

    def drawn_failure(self, call: Call) -> str | None:
        """The class of a failure that strikes this attempt, if one does."""
        name, faults = name_of(call), self.world.faults
        if call.direction == "do":
            found = next((kind for kind in FAILURES if faults.fires(kind, name)), None)
            return None if found is None else found.partition(".")[2]
        if call.attempt <= UNDO_TRIES and faults.fires("undo.transient", name):
            return UNDO_FAILURES["undo.transient"]
        return UNDO_FAILURES["undo.fails"] if faults.fires("undo.fails", name) else None

    def carried_out(self, call: Call) -> Receipt:
        """By the user's function, or with a result of the shape that the step asks for."""
        registry = self.work.registry
        executor = None if registry is None else registry.find(call)
        if executor is not None:
            return FUNCTIONS.call(Attempt(call, executor))
        plan = None if call.direction == "undo" else self.work.checks
        check = None if plan is None else plan.get(f"{call.cell.workflow}.{call.step}")
        value = sample(check, self.world.dice, f"result:{name_of(call)}") if check else {}
        return receipt_of(call, Answer(ok=value))

    def done(self, job: Job, *receipts: Receipt) -> None:
        """It is done, if the first receipt says so; then the answers set out, or do not."""
        call, faults, name = job.call, self.world.faults, name_of(job.call)
        if job.stopped:
            return
        if receipts[0].outcome == "ok":
            self.record(call)
            if faults.fires("exec.unsure", name):
                receipts = (failed(call, "external"),)
            elif self.work.remembers(call.step):
                self.remembered[call.key] = receipts[0]
        self.settle(job, list(receipts))

    def settle(self, job: Job, receipts: list[Receipt]) -> None:
        """The attempt is over, as far as its executor is concerned."""
        name, faults, first = name_of(job.call), self.world.faults, receipts[0]
        job.at_work, job.answers = False, receipts
        kind = first.failure.kind if first.failure is not None else first.outcome
        self.met[str(kind)] += 1
        if first.outcome == "ok" and faults.fires("exec.lost", name):
            return
        forward = job.call.direction == "do"
        late = forward and first.outcome == "ok" and faults.fires("exec.late", name)
        wait = self.long(job.call) if late else 0
        for receipt in receipts:
            self.world.after(wait, lambda r=receipt: self.send(job.call, r))  # type: ignore[misc]

    def record(self, call: Call) -> None:
        """Put it into the ledger."""
        root, name = self.named(call)
        made = self.ledger.setdefault(root, [])
        made.append(Effect(self.world.now, call.key, call.attempt, name))
        before = sum(each.key == call.key for each in made)
        again = "" if before == 1 else f" for the {nth(before)} time under the same key"
        undone = call.direction == "undo"
        did = f"{name.removeprefix('undo/')} is undone" if undone else f"{name} is carried out"
        self.world.say(call.cell.key, f"{did}{again} (attempt {call.attempt})")
        self.world.tell(f"effect {name_of(call)}")

    def send(self, call: Call, receipt: Receipt) -> None:
        """An answer sets out."""
        name = f"receipt:{name_of(call)}:{receipt.outcome}"
        self.bus.send(name, lambda: self.bring(call.cell, receipt, name))

    # Names and stubs

    def named(self, call: Call) -> tuple[str, str]:
        """The instance it hangs below, and its name there."""
        root, path = self.watch.path_of(call.cell)
        item = "" if call.item == NO_ITEM else f"[{call.item}]"
        name = path.removesuffix("/") if call.target == STAND_IN else f"{path}{call.step}{item}"
        return root, f"undo/{name}" if call.direction == "undo" else name

    def stub_of(self, call: Call) -> Answer | None:
        """What the stubs say to it: answers in order, the last repeats."""
        root, name = self.named(call)
        undo = "undo/" if call.direction == "undo" else ""
        plain = name.removeprefix("undo/")
        stubs = next(filter(None, map(self.work.stubs.get, spellings(undo, plain))), None)
        if stubs is None:
            return None
        self.asked[root, name] += 1
        return stubs[min(self.asked[root, name], len(stubs)) - 1]


def failed(call: Call, kind: str) -> Receipt:
    """A failure as drawn."""
    class_: FailureClass = kind  # type: ignore[assignment]
    said = f"a drawn failure: {kind}"
    failure = failure_of(class_, f"sim.{kind}", said, tenant=call.cell.tenant)
    return Receipt(call.key, call.attempt, "failed", failure=failure)


def nth(number: int) -> str:
    """2nd, 3rd, 4th."""
    return f"{number}{ {2: 'nd', 3: 'rd'}.get(number, 'th') }"


class Functions:
    """The user's functions, called as the engine's own runner calls them, one at a time."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.runner = Runner(Registry(), lambda *_: None, threads=1)

    def call(self, attempt: Attempt) -> Receipt:
        """Call one, to its end."""
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
            atexit.register(self.loop.close)
        receipt = self.loop.run_until_complete(self.runner.attempt(attempt))
        assert receipt is not None  # a function is done when it returns
        return receipt


FUNCTIONS: Final = Functions()
