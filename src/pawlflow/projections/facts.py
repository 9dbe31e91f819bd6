"""Facts: what happened, one sentence for each event that a person would ask about."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from pawlflow.kernel.budget import plain_amount
from pawlflow.kernel.children import child_id
from pawlflow.kernel.gates import gate_of, role_of
from pawlflow.kernel.state import Instance
from pawlflow.kernel.system.starting import asking
from pawlflow.kernel.units import FANNED, STATUS_NAMES
from pawlflow.model import budgets, reviews
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, TimeMs
from pawlflow.model.payload import Payload
from pawlflow.projections.again import AGAIN, Sentence
from pawlflow.projections.budgets import amounts_text, held_text
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.policies import decided_text
from pawlflow.projections.publish import is_held_back
from pawlflow.projections.story import Story, unit_of, walk

Topic = Literal["start", "step", "settled", "cancelled", "pause", "stop", "undo", "end"]
NAMES_MAX: Final = 4  # in one sentence; the rest is counted
WORDS_MAX: Final = 300  # of somebody else's text in one sentence


class Fact(msgspec.Struct, frozen=True):
    """One thing that happened, in words. `place` is -1 for what concerns the instance."""

    turn: int
    at: TimeMs
    topic: Topic
    place: int  # of the step or item
    text: str
    passing: bool = False  # says nothing more once something else has happened to the step


Keep = Callable[[Topic, int], bool]  # is a topic wanted, of what is at this place?


def facts_of(story: Story, keep: Keep) -> Iterator[Fact]:
    """The facts of a story that are wanted, in order; others are not even put into words."""
    for turn, event, state in walk(story):
        topic, unit = TOPICS.get(type(event), "step"), unit_of(state, event)
        place = -1 if unit is None else unit.place
        text = sentence(state, event) if keep(topic, place) else ""
        if text:
            passing = isinstance(event, ev.StepStarted | ev.UndoStarted)
            yield Fact(turn.number, state.now, topic, place, text, passing)


TOPICS: Final[dict[type, Topic]] = {
    ev.InstanceCreated: "start",
    ev.InstanceDue: "start",
    ev.InstanceGranted: "start",
    ev.InstanceQueued: "start",
    ev.StepSucceeded: "settled",
    ev.StepSkipped: "settled",
    ev.GateGranted: "settled",
    ev.StepCancelled: "cancelled",
    ev.InstancePaused: "pause",
    ev.InstanceStopping: "stop",
    ev.CompensationStarted: "undo",
    ev.LateSuccess: "undo",
    ev.UndoStarted: "undo",
    ev.UndoBackedOff: "undo",
    ev.UndoDone: "undo",
    ev.UndoFailed: "undo",
    ev.InstanceCompleted: "end",
    ev.InstanceFailed: "end",
    ev.InstanceCancelled: "end",
}


def sentence(state: Instance, event: ev.Event) -> str:
    """An event in words, or nothing. `state` has just seen the event."""
    say = SENTENCES.get(type(event), "")
    return say if isinstance(say, str) else say(state, event)


def name_of(state: Instance, event: Any) -> str:
    """The step or item that an event is about."""
    unit = unit_of(state, event)
    assert unit is not None, "only what is about a step has a name"
    return state.name_of(unit)


def blame(failure: Failure | None) -> str:
    """A failure in a few words: its class, its code, and what was said."""
    if failure is None:
        return "no reason was given"
    words = value_of(failure.detail)
    said = "its words were erased" if words is None else one_line(words["message"])
    return f"{failure.kind}, {failure.code}: {said}"


def one_line(text: Any) -> str:
    """Somebody else's text, on one line and of a bounded length."""
    words = " ".join(str(text).split())
    return words if len(words) <= WORDS_MAX else f"{words[: WORDS_MAX - 1]}…"


def remark(comment: Payload | None) -> str:
    """What a person added, if anything."""
    said = value_of(comment)
    return "" if said is None else f', saying "{one_line(said)}"'


def listed(names: Sequence[str]) -> str:
    """Some names; many are counted."""
    more = len(names) - NAMES_MAX
    shown = ", ".join(names[:NAMES_MAX])
    return f"{shown} and {more:,} more" if more > 0 else shown


def named(state: Instance, places: Sequence[int]) -> str:
    """The names of some steps and items; many are counted, not put together."""
    first = [state.name_of(state.unit(place)) for place in places[:NAMES_MAX]]
    return listed([*first, *[""] * (len(places) - len(first))])


def created(state: Instance, event: ev.InstanceCreated) -> str:
    """Somebody started it, or the step of another instance did."""
    what = f"{state.plan.workflow} v{state.plan.version}"
    if event.parent is None:
        later = "" if event.start_at is None else f", to begin at {time_told(event.start_at)}"
        return f"{event.by} started {what}{later}"
    parent = event.parent
    asked = f"{parent.step} of {parent.workflow} {parent.key}"
    again = f", in attempt {parent.attempt}" if parent.attempt > 1 else ""
    return f"{asked} started {what} as its child, for {event.by}{again}"


def fanned(state: Instance, event: ev.StepFanned) -> str:
    """How many items a step has."""
    name, limit = name_of(state, event), state.plan.steps[event.step].limit
    items = "1 item" if event.size == 1 else f"{event.size:,} items"
    return f"{name} has {items}" + (f", {limit:,} at a time" if limit < event.size else "")


def ready(state: Instance, event: ev.StepReady) -> str:
    """A step was let go by the dependency that was done last."""
    name = name_of(state, event)
    if event.item != NO_ITEM:
        return f"{name} was ready"
    ended = {need: state.unit(need).ended or 0 for need in state.plan.steps[event.step].needs}
    if not ended:
        return f"{name} needs no other step, so it was ready at once"
    last = [state.plan.steps[need].name for need, at in ended.items() if at == max(ended.values())]
    done = "was the last it needed" if len(last) == 1 else "were the last it needed"
    return f"{name} was ready: {listed(last)} {done}"


def started(state: Instance, event: ev.StepStarted) -> str:
    """An attempt was dispatched."""
    how = {"plain": "", "correction": ", with feedback", "reassigned": ", for another role"}
    target = state.plan.steps[event.step].target
    return f"attempt {event.attempt} of {name_of(state, event)} ({target}) began{how[event.mode]}"


def waiting(state: Instance, event: ev.StepWaiting) -> str:
    """A wait was opened."""
    plan, unit = state.plan.steps[event.step], state.at(event.step, event.item)
    gate = gate_of(state, unit)
    role = None if gate is None else role_of(unit, gate)
    match event.kind:
        case "approval":
            what = f"asked for approval by {role or 'anybody'}"
        case "event":
            what = f"began to wait for {plan.event}"
        case "timer":
            what = "began to sleep"
        case _:
            what = f"started its child {plan.target} {child_id(state, unit)}"
    until = "" if event.until is None else f", until {time_told(event.until)}"
    return f"{name_of(state, event)} {what}{until}"


def succeeded(state: Instance, event: ev.StepSucceeded) -> str:
    """A step is done."""
    plan, name = state.plan.steps[event.step], name_of(state, event)
    fan = state.fans.get(event.step)
    if fan is not None and event.item == NO_ITEM:
        return f"{name} was done: all of its {fan.size:,} items were settled"
    if plan.attempted:
        return f"{name} succeeded on attempt {event.attempt}"
    if plan.kind == "workflow":
        return f"the child of {name} completed, in attempt {event.attempt}"
    if plan.kind == "emit":
        return f"{name} emitted {plan.event}"
    return f"{name} slept its time" if plan.kind == "sleep" else f"{plan.event} came for {name}"


def tried(state: Instance, event: Any) -> str:
    """What failed: an attempt, a wait, or the step before any attempt."""
    name = name_of(state, event)
    held = event.failure.code == "budget.exceeded" or is_held_back(state, event)
    return (
        f"{name} failed"
        if held or not event.attempt
        else f"attempt {event.attempt} of {name} failed"
    )


def failed(state: Instance, event: ev.StepFailed) -> str:
    """A step or item failed; with an item its step does."""
    if event.step in state.fans and event.item == NO_ITEM:
        return f"with it {name_of(state, event)} failed"
    return f"{tried(state, event)} ({blame(event.failure)}), for good"


def skipped(state: Instance, event: ev.StepSkipped) -> str:
    """A step was left out."""
    if event.failure is not None:
        return f"{tried(state, event)} ({blame(event.failure)}) and was skipped by its onFailure"
    why = {"condition": "its `when` was false", "upstream": "a step it requires did not succeed"}
    return f"{name_of(state, event)} was skipped: {why.get(event.reason, event.reason)}"


def resumed(state: Instance, event: ev.StepResumed) -> str:
    """A person let the step go on."""
    name = name_of(state, event)
    how = {"resume": f"resumed {name}", "retry": f"had {name} tried again"}
    done = how.get(event.how, f"reassigned {name} to {event.role}")
    return f"{event.by} {done}{remark(event.comment)}"


def held(state: Instance, event: budgets.StepHeld) -> str:
    """An attempt would have cost more than there is."""
    shown = value_of(event.shown)
    why = f"its limit of {event.unit}" if shown is None else held_text(shown)
    return f"{name_of(state, event)} was held by the budget: {why}"


def warned(state: Instance, event: budgets.BudgetWarned) -> str:
    """A soft limit was passed."""
    soft, amount = (plain_amount(n or 0) for n in (state.plan.budget[event.unit][0], event.micros))
    return f"{event.unit} passed its soft limit of {soft}: {amount} are spent or reserved"


def person(event: Any) -> str:
    """Who spoke, and as what."""
    return event.by if event.role is None else f"{event.by} ({event.role})"


def stopping(state: Instance, event: ev.InstanceStopping) -> str:
    """The outcome was decided: by a step, a person, or the instance's own clock."""
    then = "what was done is undone" if event.compensate else "nothing is undone"
    if event.step >= 0:
        ends = "fails" if event.outcome == "failed" else "is cancelled"
        return f"so the instance {ends}; {then}"
    if event.failure is None:
        return f"{event.by} cancelled the instance{remark(event.comment)}; {then}"
    units = [unit for unit in map(state.unit, sorted(state.open)) if unit.status != FANNED]
    names = [f"{state.name_of(u)} ({STATUS_NAMES[u.status]})" for u in units]
    still = f" while these were open: {listed(names)}" if names else ""
    return f"the instance itself failed ({blame(event.failure)}){still}; {then}"


def late(state: Instance, event: ev.LateSuccess) -> str:
    """A settled step had succeeded after all."""
    then = "so it is undone too" if event.undo else "which changes nothing any more"
    if event.undo and state.closing is None:
        then = "so it is undone too, should it come to that"
    return f"attempt {event.attempt} of {name_of(state, event)} succeeded late, {then}"


def compensating(state: Instance, _: ev.CompensationStarted) -> str:
    """Undoing began."""
    if not state.undo_list:
        return "there was nothing to undo"
    return f"compensation began, to undo {named(state, state.undo_list[::-1])}"


def queued(state: Instance, event: ev.InstanceQueued) -> str:
    """It had to wait in line."""
    if not event.held:
        return ""
    many = "as many as may had started, so it was queued"
    return many if asking(state) == "rate" else "no slot was free, so it was queued"


def delivered(state: Instance, event: ev.EventDelivered) -> str:
    """A broadcast met a wait."""
    return f"the event {event.event} was delivered to {name_of(state, event)}"


SENTENCES: Final[dict[type, Sentence]] = {
    ev.InstanceCreated: created,
    ev.InstanceDue: "its time to start came",
    ev.InstanceGranted: "it got its slot",
    ev.InstanceQueued: queued,
    ev.InstanceStarted: "",
    ev.StepFanned: fanned,
    ev.StepReady: ready,
    ev.StepStarted: started,
    ev.StepWaiting: waiting,
    ev.StepSucceeded: succeeded,
    budgets.StepHeld: held,
    budgets.StepUnheld: lambda s, e: f"{name_of(s, e)} fits into the budget now",
    budgets.BudgetRaised: lambda s, e: (
        f"{person(e)} raised the hard limit to {amounts_text(e.limits)} "
        f"for {name_of(s, e)}{remark(e.comment)}"
    ),
    budgets.BudgetSpent: lambda s, e: (
        f"attempt {e.attempt} of {name_of(s, e)} cost {amounts_text(e.usage)} all the same"
    ),
    budgets.BudgetWarned: warned,
    ev.StepBackedOff: lambda s, e: (
        f"{tried(s, e)} ({blame(e.failure)}); retry {s.at(e.step, e.item).retries} of "
        f"{s.plan.steps[e.step].retry.max_retries} is due at {time_told(e.retry_at)}"
    ),
    ev.StepRequeued: "",
    ev.StepCorrecting: lambda s, e: (
        f"the result of attempt {e.attempt} of {name_of(s, e)} was refused "
        f"({blame(e.failure)}); correction {s.at(e.step, e.item).corrections} of "
        f"{s.plan.steps[e.step].max_corrections} follows"
    ),
    ev.StepFailed: failed,
    ev.StepSkipped: skipped,
    ev.StepEscalated: lambda s, e: f"{tried(s, e)} ({blame(e.failure)}): a human must decide",
    ev.StepResumed: resumed,
    ev.StepCancelled: lambda s, e: f"{name_of(s, e)} was cancelled",
    ev.LateSuccess: late,
    ev.AttemptLeft: "",
    ev.AttemptEnded: "",
    ev.GateVoted: lambda s, e: f"{person(e)} approved {name_of(s, e)}{remark(e.comment)}",
    ev.GateGranted: lambda s, e: (
        f"{person(e)} approved {name_of(s, e)}{remark(e.comment)}, "
        f"{'as a policy asks' if e.digest else 'which opened it'}"
    ),
    ev.GateRejected: lambda s, e: f"{person(e)} rejected {name_of(s, e)}{remark(e.comment)}",
    ev.ReviewClaimed: lambda s, e: f"{person(e)} claimed {name_of(s, e)}{remark(e.comment)}",
    **AGAIN,
    reviews.PolicyAsked: "",
    reviews.PolicyDecided: lambda s, e: decided_text(name_of(s, e), e),
    ev.SignalReceived: "",
    ev.SignalTaken: "",
    ev.EventDelivered: delivered,
    ev.InstancePaused: lambda _, e: f"{e.by} paused the instance{remark(e.comment)}",
    ev.InstanceUnpaused: "",
    ev.InstanceStopping: stopping,
    ev.CompensationStarted: compensating,
    ev.UndoStarted: lambda s, e: f"attempt {e.attempt} to undo {name_of(s, e)} began",
    ev.UndoBackedOff: lambda s, e: (
        f"attempt {e.attempt} to undo {name_of(s, e)} failed ({blame(e.failure)}); "
        f"it is tried again at {time_told(e.retry_at)}"
    ),
    ev.UndoDone: lambda s, e: f"{name_of(s, e)} was undone",
    ev.UndoFailed: lambda s, e: f"{name_of(s, e)} could not be undone ({blame(e.failure)})",
    ev.InstanceCompleted: "every step was done, so the instance completed",
    ev.InstanceFailed: lambda _, e: f"the instance closed as failed, rollback {e.rollback}",
    ev.InstanceCancelled: lambda _, e: f"the instance closed as cancelled, rollback {e.rollback}",
}
