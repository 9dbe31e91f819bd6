"""What an IOA document does, worked out the plain way from spec 003: one calendar, no engine.

It shares nothing with the engine, not even the reading of a definition. Gates are not part of IOA
documents; they are here so that the same graphs can be tried with one.
"""

import re
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple

Document = dict[str, Any]
ANSWER, DEADLINE, SCRIPT = 0, 1, 2  # of one instant: work that is done counts, then time is up
RETRIED = ("transient", "external", "agent")
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
OVER = ("succeeded", "failed", "skipped", "cancelled")
IOA = {"completed": "completed", "cancelled": "failed", "escalated": "blocked"}


class Says(NamedTuple):
    """What an agent answers to one attempt: `ok`, a class of failure, or nothing (`hang`)."""

    kind: str
    after_ms: int


class Act(NamedTuple):
    """What a person does: cancel, or approve, reject, resume a gate."""

    at_ms: int
    verb: str
    step: str = ""


def ms_of(text: str | None) -> int | None:
    """A duration like 5m or 1h30m."""
    if text is None:
        return None
    return sum(int(n) * UNITS_MS[unit] for n, unit in re.findall(r"(\d+)(ms|[smhd])", text))


class Reference:
    """One run of a document, from its start to its end."""

    def __init__(
        self, document: Document, says: dict[str, list[Says]], acts: Sequence[Act]
    ) -> None:
        spec = document["spec"]
        self.policy = spec.get("failurePolicy", "abort")
        self.steps = {step["name"]: step for step in spec["steps"]}
        self.undoable = {each["step"] for each in spec.get("compensation", ())}
        self.says = says
        self.now = 0
        self.calendar: list[tuple[int, int, int, Callable[[], None]]] = []
        self.numbers = count(1)  # workflow's own deadline has number 0: it goes before all others
        self.states = dict.fromkeys(self.steps, "pending")
        self.undo = dict.fromkeys(self.steps, "none")
        self.attempts = dict.fromkeys(self.steps, 0) | {f"undo/{s}": 0 for s in self.undoable}
        self.retries = dict.fromkeys(self.attempts, 0)
        self.open: dict[str, int] = {}  # what runs or waits, and which of its attempts it is
        self.order: list[str] = []
        self.done: list[str] = []  # in order of completion
        self.to_undo: list[str] = []
        self.outcome: str | None = None
        self.error: str | None = None
        self.state = "running"
        self.rollback = "none"
        if (limit := ms_of(spec.get("timeout"))) is not None:
            heappush(self.calendar, (limit, DEADLINE, 0, self.time_is_up))
        for act in acts:
            self.at(act.at_ms, SCRIPT, lambda act=act: self.act(act))
        self.go_on()
        while self.calendar and self.state == "running":
            self.now, _, _, happen = heappop(self.calendar)
            happen()

    def at(self, when: int, rank: int, happen: Callable[[], None]) -> None:
        """Note something in the calendar."""
        heappush(self.calendar, (when, rank, next(self.numbers), happen))

    def go_on(self) -> None:
        """Start what may start (5.1: independent steps run in parallel, a join waits for all)."""
        for name, step in self.steps.items():
            needs = step.get("dependsOn", ())
            met = all(self.states[need] in ("succeeded", "skipped") for need in needs)
            if self.states[name] == "pending" and met and self.outcome is None:
                self.begin(name)
        if all(state in ("succeeded", "skipped") for state in self.states.values()):
            self.state = "completed"

    def begin(self, name: str) -> None:
        """Dispatch the next attempt of a step or an undo, or open a gate."""
        step = self.steps[name.removeprefix("undo/")]
        gate = step.get("approval")
        if gate is not None:
            self.states[name], self.open[name] = "waiting", self.open.get(name, 0) + 1
            self.limit(name, ms_of(gate.get("expires")), lambda: self.expire(name))
            return
        self.attempts[name] += 1
        number = self.open[name] = self.attempts[name]
        self.order.append(f"{name}#{number}")
        if name in self.states:
            self.states[name] = "running"
        given = self.says.get(name, [Says("ok", 0)])
        said = given[min(number, len(given)) - 1]
        if said.kind != "hang":
            when = self.now + said.after_ms
            self.at(when, ANSWER, lambda: self.answer(name, number, said.kind))
        # 3.4: a step's timeout triggers its failure. An undo follows the step it undoes.
        self.limit(name, ms_of(step.get("timeout")), lambda: self.failed(name, "timeout"))

    def limit(self, name: str, span: int | None, late: Callable[[], None]) -> None:
        """Let something happen after a while, if this is still open then."""
        number = self.open[name]
        if span is not None:
            happen = lambda: late() if self.open.get(name) == number else None  # noqa: E731
            self.at(self.now + span, DEADLINE, happen)

    def answer(self, name: str, number: int, kind: str) -> None:
        """An agent answers; whoever does not wait any more does not listen."""
        if self.open.get(name) != number:
            return
        if kind != "ok":
            self.failed(name, kind)
        elif name in self.states:
            self.succeed(name)
        else:
            del self.open[name]
            self.undo[name.removeprefix("undo/")] = "done"
            self.undo_next()

    def succeed(self, name: str) -> None:
        """Done; it stays done."""
        del self.open[name]
        self.states[name] = "succeeded"
        self.done.append(name)
        self.go_on()

    def failed(self, name: str, kind: str) -> None:
        """3.1, 3.2: some classes are tried again with a delay, up to maxRetries."""
        step = self.steps[name.removeprefix("undo/")]
        default = {"maxRetries": 1} if self.policy == "retry" else {"maxRetries": 0}
        policy = step.get("retryPolicy", default)
        del self.open[name]
        if kind in RETRIED and self.retries[name] < policy["maxRetries"]:
            self.retries[name] += 1
            if name in self.states:
                self.states[name] = "backoff"
            self.open[name] = -self.retries[name]  # no attempt: nobody can answer it
            self.limit(name, delay_ms(policy, self.retries[name]), lambda: self.begin(name))
        elif name in self.states:
            self.give_up(name)
        else:  # 4.2 rule 4: a failed undo triggers no further compensation
            self.undo[name.removeprefix("undo/")] = "failed"
            self.close("partial")

    def give_up(self, name: str) -> None:
        """3.3: onFailure decides; the step wins over the workflow's policy."""
        default = "abort" if self.policy == "retry" else self.policy
        match self.steps[name].get("onFailure", default):
            case "skip":
                self.states[name] = "skipped"
                self.go_on()
            case action:
                self.states[name] = "failed"
                self.stop("failed", name, compensate=action == "compensate")

    def expire(self, name: str) -> None:
        """Nobody decided: a human is asked, or the gate fails; it is never passed."""
        del self.open[name]
        if self.steps[name]["approval"].get("onExpire", "escalate") == "escalate":
            self.states[name] = "escalated"
        else:
            self.give_up(name)

    def time_is_up(self) -> None:
        """3.4: the workflow's timeout triggers failurePolicy; compensation is not cut short."""
        if self.outcome is None:
            self.stop("failed", None, compensate=self.policy == "compensate")

    def act(self, act: Act) -> None:
        """Somebody does something; what does not fit is refused and changes nothing."""
        if self.outcome is not None:
            return
        state = self.states.get(act.step)
        match act.verb:
            case "cancel":
                self.stop("cancelled", None, compensate=self.policy == "compensate")
            case "approve" if state == "waiting":
                self.succeed(act.step)
            case "resume" if state == "escalated":
                self.begin(act.step)
            case "reject" if state == "waiting":
                del self.open[act.step]
                if self.steps[act.step]["approval"].get("onReject", "cancel") == "cancel":
                    self.states[act.step] = "failed"
                    self.stop("cancelled", act.step, compensate=self.policy == "compensate")
                else:
                    self.give_up(act.step)

    def stop(self, outcome: str, error: str | None, *, compensate: bool) -> None:
        """Start nothing new, cancel what runs, then undo (4.1: last completed first) or close."""
        self.outcome, self.error = outcome, error
        self.open.clear()
        if not compensate:
            self.close("none")
            return
        self.to_undo = [name for name in self.done if name in self.undoable]
        for name in self.to_undo:
            self.undo[name] = "pending"
        self.undo_next()

    def undo_next(self) -> None:
        """4.2 rules 1 and 2: only completed steps, one after another."""
        if not self.to_undo:
            self.close("full")
            return
        name = self.to_undo.pop()
        self.undo[name] = "running"
        self.begin(f"undo/{name}")

    def close(self, rollback: str) -> None:
        """It is over; what was not done is not done any more."""
        assert self.outcome is not None
        self.state, self.rollback = self.outcome, rollback
        for name, state in self.states.items():
            self.states[name] = state if state in OVER else "cancelled"

    def told(self) -> dict[str, Any]:
        """Everything that a scenario's `actual` says too."""
        if self.state == "running" and self.outcome is not None:
            self.state = "compensating"
        elif self.state == "running" and not self.open:
            self.state = "escalated"  # nothing goes on by itself, and a human must decide
        elif self.state == "running" and set(self.states.values()) & {"waiting"}:
            self.state = "waiting"
        rolled = (self.state, self.rollback) == ("failed", "full")  # completed (rollback)
        lens = "completed" if rolled else IOA.get(self.state, self.state)
        return {
            "state": self.state,
            "rollback": self.rollback,
            "steps": self.states,
            "undo": self.undo,
            "attempts": {n: k for n, k in self.attempts.items() if not self.is_gate(n)},
            "order": self.order,
            "error": self.error,
            "elapsed_ms": self.now if self.state in ("completed", "failed", "cancelled") else None,
            "ioa": lens,
        }

    def is_gate(self, name: str) -> bool:
        """Is this a gate? It has no attempts."""
        return "approval" in self.steps[name.removeprefix("undo/")]


def delay_ms(policy: dict[str, Any], n: int) -> int:
    """3.2: the delay before retry n; a duration as `backoff` is constant."""
    backoff = policy.get("backoff", "exponential")
    first = ms_of(policy.get("initialDelay", "1s")) or 0
    most = ms_of(policy.get("maxDelay", "60s")) or 0
    match backoff:
        case "constant":
            return min(first, most)
        case "linear":
            return min(first * n, most)
        case "exponential":
            return min(first * 2 ** (n - 1), most)
        case _:
            return ms_of(backoff) or 0
