"""The audit of one instance: its events alone, held against what a journal may say.

It knows the definition and the journal, and none of the kernel's decisions: a kernel that breaks a
promise breaks it in its replay too, so only a second opinion sees it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from pawlflow.definition.plan import Plan, StepPlan
from pawlflow.definition.rules import SETTLING_RULES
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, CellId, InstanceId, StepKey, StepName
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Direction, StepKeyParts, step_key
from pawlflow.model.journal import Turn
from pawlflow.model.payload import Payload
from pawlflow.model.reviews import PolicyGate
from pawlflow.model.system import StartChild, StopChild
from pawlflow.testing.sim.audit_budget import Money

Report = Callable[[str, CellId, str], None]
Place = tuple[int, int]  # a step, and an item of it
Left = tuple[int, int, Direction, int, int]  # a step, an item, what was asked, round, attempt
INSTANCE: Final = "instance"  # in place of a step: the timeout of the whole, or its time to start


class Line:
    """What the journal says of one run of a step, or of an item of it."""

    def __init__(self, step: int, item: int, before: "Line | None" = None) -> None:
        self.step = step
        self.item = item
        self.attempt: int = before.attempt if before else 0  # counted on when it runs again
        self.round: int = before.round + 1 if before else 1
        self.running = 0  # the attempt in flight, if any; of a child too
        self.retries = self.corrections = 0
        self.params: Payload | None = before.params if before and item == NO_ITEM else None
        self.value: Any = None  # of an item
        self.result: Payload | None = None
        self.queued = self.held = False
        self.opened = False  # a wait or a gate: somebody was asked for an answer
        self.failure: Failure | None = None  # the last of this run
        self.failed = 0  # attempts of this run that did
        self.asks = ""  # the kind of review that is open about it
        self.done = self.skipped = self.late = False
        self.level = 0  # the rung that is asked
        self.voters: list[str] = []
        self.granted: dict[str, bytes] | None = None  # digests of what was approved
        self.questions = 0  # that policies were asked
        self.question: Any = None  # the last of them
        self.unanswered = False
        self.cleared: int | None = None  # when what was asked about was allowed
        self.ruled = self.agreed = b""  # by which policies; the digest that people agreed to
        self.gate: PolicyGate | None = None  # whom the policies ask
        self.children: dict[int, InstanceId] = {}  # by attempt
        self.told: dict[int, None] = {}  # attempts that are no longer wanted, and know it
        self.undo_attempt = self.undo_retries = 0

    def __repr__(self) -> str:
        return f"s{self.step}" if self.item == NO_ITEM else f"s{self.step}[{self.item}]"


class Fan:
    """The items of a step with forEach, as far as they were looked at."""

    def __init__(self, size: int, items: list[Any] | None) -> None:
        self.size = size
        self.items = items  # as an outsider reads the list
        self.next = 0
        self.open = 0


class Audit:
    """One instance, as an outsider reads its journal."""

    def __init__(self, cell: CellId, plan: Plan, lists: dict[int, str], report: Report) -> None:
        self.cell = cell
        self.plan = plan
        self.lists = lists  # the forEach of steps, as it is written
        self.report = report
        self.nonce = b""
        self.by = ""
        self.now = 0
        self.created = self.closed = self.started = self.stopping = self.undo_begun = False
        self.slot = self.rate = ""
        self.start_at: int | None = None
        self.given: Any = None
        self.lines: dict[Place, Line] = {}
        self.past: dict[Place, list[Line]] = {}  # runs that were put aside
        self.fans: dict[int, Fan] = {}
        self.due: dict[object, int] = {}
        self.stack: list[Line] = []  # what was done and has an undo
        self.undoing: list[Line] = []
        self.undo_failed = False
        self.left: dict[Left, int | None] = {}  # attempts that may be at work, at most until then
        self.keys: dict[StepKey, tuple[int, int, Direction, int]] = {}
        self.succeeded: list[StepKey] = []  # by receipts: each has an effect in the world
        self.heard: list[Receipt] = []  # of children, that settled or failed an attempt
        self.money = Money(plan, self.bad)
        self.depths = depths_of(plan)
        self.tick = False
        self.input: Any = None
        self.turn: Turn | None = None

    def bad(self, monitor: str, why: str) -> None:
        """Something that must not be."""
        self.report(monitor, self.cell, why)

    # Lines

    def line(self, step: int, item: int = NO_ITEM) -> Line:
        """The present run of a step or item."""
        found = self.lines.get((step, item))
        if found is None:
            earlier = self.past.get((step, item))
            found = self.lines[step, item] = Line(step, item, earlier[-1] if earlier else None)
            if item != NO_ITEM:
                self.look_at(found)
        return found

    def look_at(self, line: Line) -> None:
        """An item is touched for the first time in this run: in order, and not too many at once."""
        fan = self.fans.get(line.step)
        if fan is None or line.item != fan.next or line.item >= fan.size:
            at = "nothing" if fan is None else f"{fan.next} of {fan.size}"
            self.bad("fan", f"{line} is looked at when {at} is next")
            return
        fan.next += 1
        fan.open += 1
        if fan.open > self.step(line.step).limit:
            self.bad("fan", f"{fan.open} items of s{line.step} are open at one time")
        line.value = None if fan.items is None else fan.items[line.item]

    def of_round(self, step: int, item: int, round_: int) -> Line:
        """The run that a round belongs to."""
        earlier = self.past.get((step, item), ())
        return next((line for line in earlier if round_ <= line.round), None) or self.line(
            step, item
        )

    def undone(self, step: int, item: int, round_: int) -> Line:
        """The run that is undone: the last, or one that was put aside."""
        if not round_:
            return self.line(step, item)
        return self.of_round(step, item, round_)

    def step(self, step: int) -> StepPlan:
        """What the definition says of a step."""
        return self.plan.steps[step]

    def name(self, line: Line) -> StepName:
        """What people call it."""
        name = self.step(line.step).name
        return name if line.item == NO_ITEM else StepName(f"{name}[{line.item}]")

    def is_whole(self, line: Line) -> bool:
        """Does it stand for its items?"""
        return line.item == NO_ITEM and self.step(line.step).for_each is not None

    def attempted(self, line: Line) -> bool:
        """Is it made in attempts by an executor?"""
        return self.step(line.step).attempted and not self.is_whole(line)

    def is_child(self, line: Line) -> bool:
        """Is it made by an instance of its own?"""
        return self.step(line.step).kind == "workflow" and not self.is_whole(line)

    def running(self) -> Iterator[Line]:
        """What an executor works on now."""
        return (line for line in self.lines.values() if line.running and self.attempted(line))

    def key(self, line: Line, direction: Direction, round_: int) -> StepKey:
        """The step key by its formula, and who it stands for."""
        name = self.step(line.step).name
        parts = StepKeyParts(self.cell.tenant, self.nonce, direction, name, line.item, round_)
        made = step_key(parts)
        self.keys[made] = (line.step, line.item, direction, round_)
        return made

    def reviews(self) -> dict[str, str]:
        """What humans are asked now, by the name of step or item."""
        return {self.name(line): line.asks for line in self.lines.values() if line.asks}

    # What happens to them

    def judge_failure(self, receipt: Receipt) -> None:
        """A failure settles its own attempt, or none."""
        found = self.keys.get(receipt.key)
        if found is None:
            self.bad("19", "a failure of an unknown step key was taken")
            return
        step, item, direction, round_ = found
        line = self.of_round(step, item, round_)
        left = (*found, receipt.attempt) in self.left
        own = line.running == receipt.attempt and line.round == round_
        if direction == "undo":
            own = line in self.undoing and line.undo_attempt == receipt.attempt
        elif direction == "ask":
            own = line.unanswered and line.questions == receipt.attempt and line.round == round_
        elif (own or left) and self.is_child(line):
            self.heard.append(receipt)
        elif own or left:
            self.money.spend({}, receipt.usage)  # a failure costs what it says
        if not own and not left:
            self.bad("19", f"attempt {receipt.attempt} of {line} failed for another attempt")

    def fire(self, what: object, words: str) -> None:
        """A deadline acts: there must be one, and its time must have come."""
        due = self.due.pop(what, None)
        if due is None:
            self.bad("15", f"{words} fires without a deadline, or twice")
        elif self.now < due:
            self.bad("15", f"{words} fires {due - self.now} ms early")

    def arm(self, what: object, due: int | None) -> None:
        """The deadline of something from now on."""
        if due is None:
            self.due.pop(what, None)
        else:
            self.due[what] = due

    def end_attempt(self, line: Line) -> None:
        """Nothing of it is in flight any more."""
        if line.running and self.attempted(line):
            self.money.give_back(self.step(line.step).cost)
        line.running = 0
        line.queued = line.held = line.unanswered = False
        line.asks = ""

    def fail(self, line: Line, failure: Failure) -> None:
        """An attempt, or what came before one, failed; the step is not given up."""
        line.failed += bool(line.running)
        line.failure = failure
        self.end_attempt(line)

    def settle(self, line: Line) -> None:
        """A step or item ends, once."""
        if line.done:
            self.bad("7", f"{line} is settled twice")
        self.end_attempt(line)
        line.done = True
        self.due.pop(line, None)
        if line.item != NO_ITEM:
            self.fans[line.step].open -= 1

    def by_time(self, line: Line, failure: Failure) -> None:
        """A failure because time was up: was it? A child is told."""
        if self.tick and failure.kind == "timeout":
            self.fire(line, f"the timeout of {line}")
            self.unwanted(line)
            self.leave(line, "do", line.running)

    def leave(self, line: Line, direction: Direction, attempt: int) -> None:
        """It goes on without this attempt, which may still be at work."""
        if attempt and self.plan.rules >= SETTLING_RULES:
            child = direction == "do" and self.is_child(line)
            until = None if child else self.now + self.step(line.step).grace_ms
            self.left[line.step, line.item, direction, line.round, attempt] = until

    def hear(self, receipt: Receipt) -> None:
        """Whatever it says, the attempt is over."""
        found = self.keys.get(receipt.key)
        if found is None or (*found, receipt.attempt) not in self.left:
            return
        del self.left[*found, receipt.attempt]
        line = self.of_round(found[0], found[1], found[3])
        known = line.done and line.result is not None and not self.is_child(line)
        if receipt.outcome == "ok" and found[2] == "do" and known:
            self.money.spend({}, receipt.usage)  # nobody needs it any more, but it cost something

    def still_at_work(self) -> list[Left]:
        """What was left, has not answered, and has time to."""
        return [left for left, until in self.left.items() if until is None or self.now < until]

    def unwanted(self, line: Line) -> None:
        """Nobody waits for this attempt of a child any more: it must be told, once."""
        if not self.is_child(line) or not line.running or line.running in line.told:
            return
        child = line.children.get(line.running)
        sends = () if self.turn is None else self.turn.sends
        if not any(isinstance(s.input, StopChild) and s.input.child == child for s in sends):
            self.bad("child", f"{line} no longer waits for {child}, which is not told")
        line.told[line.running] = None

    def expect_child(self, line: Line, key: StepKey) -> None:
        """A child is asked for: exactly one, for this attempt."""
        sends = () if self.turn is None else self.turn.sends
        asked = [s.input for s in sends if isinstance(s.input, StartChild)]
        mine = [a for a in asked if a.parent.step_key == key and a.parent.attempt == line.attempt]
        if len(mine) != 1:
            self.bad("child", f"{len(mine)} children are asked for by attempt {line.attempt}")
        line.children[line.attempt] = mine[0].child

    def unsure(self, line: Line, attempt: int, failure: Failure) -> None:
        """A failed step may ask to be undone all the same, once it was attempted or opened."""
        plan = self.step(line.step)
        unknown = plan.undo_on_failure or failure.kind == "unknown_outcome"
        if unknown and (attempt or line.opened):
            self.to_undo(line)

    def to_undo(self, line: Line) -> None:
        """It is done, or may be: should it come to that it is undone, if there is a way."""
        if self.step(line.step).undo is not None and not self.is_whole(line):
            self.stack.append(line)

    def prove(self, line: Line, what: str) -> None:
        """A success came by a receipt: the ledger, or the child, must know it."""
        if not isinstance(self.input, Receipt):
            self.bad("4", f"{what} succeeded without a receipt")
        elif self.is_child(line):
            self.heard.append(self.input)
        else:
            self.succeeded.append(self.input.key)


def depths_of(plan: Plan) -> list[int]:
    """How many steps lie before each, on the longest way."""
    known: dict[int, int] = {}

    def depth(step: int) -> int:
        if step not in known:
            known[step] = max((depth(need) + 1 for need in plan.steps[step].needs), default=0)
        return known[step]

    return [depth(step.index) for step in plan.steps]
