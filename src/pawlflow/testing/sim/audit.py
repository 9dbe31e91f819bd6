"""The audit of one instance: its events alone, held against what a journal may say.

It knows the definition and the journal, and none of the kernel's decisions: a kernel that breaks a
promise breaks it in its replay too, so only a second opinion sees it.
"""

from collections.abc import Callable
from typing import Any

from pawlflow.kernel.plan import Plan, StepPlan
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, CellId, StepKey
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Direction, StepKeyParts, step_key

Report = Callable[[str, CellId, str], None]


class Line:
    """What the journal says of one step."""

    __slots__ = ("attempt", "corrections", "done", "late", "ready", "retries", "round", "running")

    def __init__(self) -> None:
        self.attempt = 0
        self.round = 1
        self.running = 0  # the attempt in flight, if any
        self.retries = 0
        self.corrections = 0
        self.ready = False  # parameters were fixed
        self.done = False
        self.late = False


class Audit:
    """One instance, as an outsider reads its journal."""

    def __init__(self, cell: CellId, plan: Plan, report: Report) -> None:
        self.cell = cell
        self.plan = plan
        self.report = report
        self.nonce = b""
        self.now = 0
        self.created = self.closed = False
        self.started = False
        self.slot = ""
        self.lines: dict[int, Line] = {}
        self.due: dict[int, int] = {}
        self.stack: list[int] = []  # completed steps with an undo
        self.undoing: int | None = None
        self.undo_retries = 0
        self.undo_attempts: dict[int, int] = {}
        self.undo_failed = False
        self.keys: dict[StepKey, tuple[int, Direction, int]] = {}
        self.succeeded: list[StepKey] = []  # by receipts: each has an effect in the world
        self.tick = False
        self.input: Any = None

    def bad(self, monitor: str, why: str) -> None:
        """Something that must not be."""
        self.report(monitor, self.cell, why)

    def line(self, step: int) -> Line:
        """What is known of a step."""
        found = self.lines.get(step)
        if found is None:
            found = self.lines[step] = Line()
        return found

    def step(self, step: int) -> StepPlan:
        """What the definition says of a step."""
        return self.plan.steps[step]

    def key(self, step: int, direction: Direction, round_: int) -> StepKey:
        """The step key by its formula, and who it stands for."""
        name = self.step(step).name
        parts = StepKeyParts(self.cell.tenant, self.nonce, direction, name, NO_ITEM, round_)
        made = step_key(parts)
        self.keys[made] = (step, direction, round_)
        return made

    def judge_failure(self, receipt: Receipt) -> None:
        """A failure settles its own attempt, or none."""
        found = self.keys.get(receipt.key)
        if found is None:
            self.bad("19", "a failure of an unknown step key was taken")
            return
        step, direction, round_ = found
        line = self.line(step)
        own = line.running == receipt.attempt and line.round == round_
        if direction == "undo":
            own = self.undoing == step and self.undo_attempts.get(step) == receipt.attempt
        if not own:
            self.bad("19", f"attempt {receipt.attempt} of s{step} failed for another attempt")

    def fire(self, place: int, what: str) -> None:
        """A deadline acts: there must be one, and its time must have come."""
        due = self.due.pop(place, None)
        if due is None:
            self.bad("15", f"{what} fires without a deadline, or twice")
        elif self.now < due:
            self.bad("15", f"{what} fires {due - self.now} ms early")

    def arm(self, place: int, due: int | None) -> None:
        """The deadline of a step from now on."""
        if due is None:
            self.due.pop(place, None)
        else:
            self.due[place] = due

    def settle(self, step: int) -> Line:
        """A step ends, once."""
        line = self.line(step)
        if line.done:
            self.bad("7", f"s{step} is settled twice")
        line.done = True
        line.running = 0
        self.due.pop(step, None)
        return line

    def by_time(self, step: int, failure: Failure) -> None:
        """A failure because time was up: was it?"""
        if self.tick and failure.kind == "timeout":
            self.fire(step, f"the timeout of s{step}")

    def unsure(self, step: int, attempt: int, failure: Failure) -> None:
        """A failed step may ask to be undone all the same."""
        plan = self.step(step)
        unknown = plan.undo_on_failure or failure.kind == "unknown_outcome"
        if plan.undo is not None and attempt and unknown:
            self.stack.append(step)

    def prove(self, what: str) -> None:
        """A success came by a receipt: the ledger must know it."""
        if isinstance(self.input, Receipt):
            self.succeeded.append(self.input.key)
        else:
            self.bad("4", f"{what} succeeded without a receipt")
