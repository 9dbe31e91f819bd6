"""What humans decide, as the audit reads it: gates and what they guard, changes, limits, rungs."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pawlflow.model import budgets, reviews
from pawlflow.model import events as ev
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.inputs import Approve, Reject, ResumeStep
from pawlflow.model.reviews import NO_POLICY
from pawlflow.testing.sim.audit import Audit, Line
from pawlflow.testing.sim.audit_policies import bound_to, on_agreed


def queue(line: Line) -> None:
    """It waits for its start."""
    line.queued, line.held, line.asks = True, False, ""
    if line.opened:  # it will be asked again, as if it were the first time
        line.failure = None


# Gates


def on_voted(audit: Audit, event: ev.GateVoted) -> None:
    """One person, one vote."""
    count_vote(audit, audit.line(event.step, event.item), event.by)


def on_granted(audit: Audit, event: ev.GateGranted) -> None:
    """As many different people as were asked for, and not one less."""
    line = audit.line(event.step, event.item)
    gate = line.gate or audit.step(event.step).gate
    count_vote(audit, line, event.by)
    if gate is None or len(line.voters) != gate.quorum:
        audit.bad("16", f"{line} is granted by {line.voters}")
    if line.gate is not None:
        on_agreed(audit, line, event)
        return
    line.result = event.result
    audit.settle(line)
    audit.to_undo(line)


def count_vote(audit: Audit, line: Line, by: str) -> None:
    """Somebody agreed: once, in person, and not to what they asked for themselves."""
    gate, said = line.gate or audit.step(line.step).gate, audit.input
    if not isinstance(said, Approve) or said.by != by or said.step != audit.name(line):
        audit.bad("16", f"a vote of {by} for {line} that nobody cast")
    if by in line.voters:
        audit.bad("16", f"{by} votes for {line} twice")
    if gate is not None and gate.not_by_requester and by == audit.by:
        audit.bad("16", f"{by} approves what they asked for")
    line.voters.append(by)


def on_bound(audit: Audit, event: reviews.GateBound) -> None:
    """What a grant holds for."""
    audit.line(event.step).granted = event.digests.value


def check_guards(audit: Audit, line: Line) -> None:
    """16: what begins was approved by every gate over it, exactly as it is."""
    for gate in audit.plan.guarded_by.get(line.step, ()):
        found = audit.line(gate)
        if found.skipped and found.done:
            continue
        if not found.done or not agrees(audit, found, line):
            audit.bad("16", f"{line} begins, and {found} has not approved round {line.round}")


def agrees(audit: Audit, gate: Line, line: Line) -> bool:
    """Is the approval bound to this very call?"""
    return (gate.granted or {}).get(audit.name(line)) == bound_to(audit, line, NO_POLICY)


def on_voided(audit: Audit, event: reviews.GateVoided) -> None:
    """What was asked about has changed: it is asked again, and nothing may lean on it."""
    gate = audit.line(event.step)
    if event.cause >= 0 and agrees(audit, gate, audit.line(event.cause, event.item)):
        audit.bad("16", f"{gate} is void, and holds for what would happen")
    run_again(audit, event.step, kept=False)


def on_barred(audit: Audit, event: reviews.StepBarred) -> None:
    """It waits for a gate."""
    line = audit.line(event.step, event.item)
    line.queued = line.held = False
    line.asks = ""


def on_gate_rejected(audit: Audit, event: ev.GateRejected) -> None:
    """A gate is shut, for good or until there are changes."""
    line = audit.line(event.step, event.item)
    if not isinstance(audit.input, Reject) or audit.input.step != audit.name(line):
        audit.bad("16", f"{line} is rejected by nobody")
    if event.settles:
        audit.settle(line)
        audit.unsure(line, 0, event.failure)


# Changes


def on_reopened(audit: Audit, event: reviews.StepReopened) -> None:
    """A settled step runs again: by a human's wish alone, and only what led to their gate."""
    said = audit.input
    gate = audit.plan.index.get(said.step) if isinstance(said, Reject) else None
    revise = () if gate is None else audit.step(gate).revise
    wanted = set() if gate is None else leading(audit, gate, revise)
    if event.step not in wanted:
        audit.bad("7", f"s{event.step} runs again, and nobody asked for it")
    events = () if audit.turn is None else audit.turn.events
    again = {each.step for each in events if isinstance(each, reviews.StepReopened)}
    if again != wanted:
        audit.bad("16", f"{sorted(again)} run again, sent back are {sorted(wanted)}")
    run_again(audit, event.step, kept=event.failure is not None)


def leading(audit: Audit, gate: int, revise: tuple[int, ...]) -> set[int]:
    """The steps that are sent back, what follows from them up to the gate, and the gate."""
    found = set(revise)
    for step in audit.plan.ancestors(gate) * len(audit.plan.steps):  # until nothing is added
        if found & set(audit.step(step).needs):
            found.add(step)
    return found | {gate}


def run_again(audit: Audit, step: int, *, kept: bool) -> None:
    """The run so far is put aside, with those of its items; another one begins."""
    for place in [each for each in audit.lines if each[0] == step]:
        line = audit.lines.pop(place)
        audit.due.pop(line, None)
        if line.running:
            audit.bad("7", f"{line} runs again while it is at work")
        audit.past.setdefault(place, []).append(line)
    audit.fans.pop(step, None)
    old = audit.past.get((step, NO_ITEM), [Line(step, NO_ITEM)])[-1]
    line = audit.line(step)
    if kept:
        line.retries, line.corrections = old.retries, old.corrections


# Escalation


def on_escalated(audit: Audit, event: ev.StepEscalated) -> None:
    """A human decides, by the first rung; after its time the next."""
    line = audit.line(event.step, event.item)
    audit.by_time(line, event.failure)
    audit.fail(line, event.failure)
    climb(audit, line, 1)


def on_raised(audit: Audit, event: reviews.StepRaised) -> None:
    """Nobody decided in time."""
    line = audit.line(event.step, event.item)
    audit.fire(line, f"the rung of {line}")
    if event.level != line.level + 1 or event.level > len(audit.plan.ladder):
        audit.bad("16", f"{line} is raised from rung {line.level} to {event.level}")
    climb(audit, line, event.level)


def climb(audit: Audit, line: Line, level: int) -> None:
    """A rung is asked, for as long as it has; the last one for ever."""
    ladder = audit.plan.ladder
    line.level, line.asks = level, "escalation"
    span = ladder[level - 1].timeout_ms if level < len(ladder) else None
    audit.arm(line, None if span is None else audit.now + span)


def on_resumed(audit: Audit, event: ev.StepResumed) -> None:
    """A fresh budget; with another input, another round. Who acts in a role has the right one."""
    line, said = audit.line(event.step, event.item), audit.input
    acting = said.acting if isinstance(said, ResumeStep) else None
    rungs = [rung.role for rung in audit.plan.ladder[line.level - 1 :]] if line.level else []
    if acting is not None and rungs and acting not in rungs:
        audit.bad("16", f"{line} is resumed as {acting}, asked are {rungs}")
    line.level = 0
    line.retries = line.corrections = 0
    audit.arm(line, None)
    queue(line)
    if event.params is not None:
        if line.params is not None:
            line.round += 1
            audit.key(line, "do", line.round)
        line.params = event.params


# Budget


def on_held(audit: Audit, event: budgets.StepHeld) -> None:
    """It does not begin because it would pass a limit; not for any other reason."""
    line = audit.line(event.step, event.item)
    if event.unit not in audit.money.short(audit.step(event.step).cost):
        audit.bad("13", f"{line} is held, and there is enough {event.unit}")
    line.queued, line.held, line.asks = False, True, "budget"


def on_unheld(audit: Audit, event: budgets.StepUnheld) -> None:
    """It fits now."""
    queue(audit.line(event.step, event.item))


def on_budget_raised(audit: Audit, event: budgets.BudgetRaised) -> None:
    """A human wants it to go on."""
    line, said = audit.line(event.step, event.item), audit.input
    if not isinstance(said, Approve) or said.step != audit.name(line) or said.by != event.by:
        audit.bad("13", f"a limit is raised for {line}, and nobody said so")
        return
    asked: Mapping[str, Any] = {} if said.limits is None else said.limits.value
    limits = {limit.unit: limit.micros for limit in event.limits}
    audit.money.raised(limits, audit.step(event.step).cost, asked)
    queue(line)


def on_warned(audit: Audit, event: budgets.BudgetWarned) -> None:
    """Once."""
    audit.money.warn(event.unit)


REVIEWS: Final[dict[type, Callable[[Audit, Any], None]]] = {
    ev.GateVoted: on_voted,
    ev.GateGranted: on_granted,
    ev.GateRejected: on_gate_rejected,
    ev.StepEscalated: on_escalated,
    ev.StepResumed: on_resumed,
    reviews.GateBound: on_bound,
    reviews.GateVoided: on_voided,
    reviews.StepBarred: on_barred,
    reviews.StepReopened: on_reopened,
    reviews.StepRaised: on_raised,
    budgets.StepHeld: on_held,
    budgets.StepUnheld: on_unheld,
    budgets.BudgetRaised: on_budget_raised,
    budgets.BudgetWarned: on_warned,
}
