"""Facts: what happened, one sentence for each event that a person would ask about."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from pawlflow.kernel.state import STATUS_NAMES, Instance
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.ids import TimeMs
from pawlflow.model.payload import Payload
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.story import Story, walk

Topic = Literal["start", "step", "settled", "cancelled", "pause", "stop", "undo", "end"]
NAMES_MAX: Final = 4  # in one sentence; the rest is counted
WORDS_MAX: Final = 300  # of somebody else's text in one sentence


class Fact(msgspec.Struct, frozen=True):
    """One thing that happened, in words. `step` is -1 for what concerns the instance."""

    turn: int
    at: TimeMs
    topic: Topic
    step: int
    text: str
    passing: bool = False  # says nothing more once something else has happened to the step


def facts_of(story: Story) -> Iterator[Fact]:
    """Every fact of a story, in order."""
    for turn, event, state in walk(story):
        text = sentence(state, event)
        if text:
            topic = TOPICS.get(type(event), "step")
            step: int = getattr(event, "step", -1)
            passing = isinstance(event, ev.StepStarted | ev.UndoStarted)
            yield Fact(turn.number, state.now, topic, step, text, passing)


TOPICS: Final[dict[type, Topic]] = {
    ev.InstanceCreated: "start",
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
    """The step that an event is about."""
    name = state.plan.steps[event.step].name
    item = getattr(event, "item", -1)
    return name if item < 0 else f"{name}[{item}]"


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
    return f"{shown} and {more} more" if more > 0 else shown


def ready(state: Instance, event: ev.StepReady) -> str:
    """A step was let go by the dependency that was done last."""
    ended = {need: state.unit(need).ended or 0 for need in state.plan.steps[event.step].needs}
    name = name_of(state, event)
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
    plan = state.plan.steps[event.step]
    role = state.unit(event.step).role or (plan.gate.role if plan.gate else None)
    what = {
        "approval": f"asked for approval by {role or 'anybody'}",
        "event": f"began to wait for {plan.event}",
        "timer": "began to sleep",
        "child": "began to wait for its child workflow",
    }[event.kind]
    until = "" if event.until is None else f", until {time_told(event.until)}"
    return f"{name_of(state, event)} {what}{until}"


def succeeded(state: Instance, event: ev.StepSucceeded) -> str:
    """A step is done."""
    plan, name = state.plan.steps[event.step], name_of(state, event)
    if plan.attempted:
        return f"{name} succeeded on attempt {event.attempt}"
    return f"{name} slept its time" if plan.kind == "sleep" else f"{plan.event} came for {name}"


def tried(state: Instance, event: Any) -> str:
    """What failed: an attempt, a wait, or the step before any attempt."""
    name = name_of(state, event)
    return f"attempt {event.attempt} of {name} failed" if event.attempt else f"{name} failed"


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


def person(event: ev.GateVoted | ev.GateGranted | ev.GateRejected) -> str:
    """Who decided, and as what."""
    return event.by if event.role is None else f"{event.by} ({event.role})"


def stopping(state: Instance, event: ev.InstanceStopping) -> str:
    """The outcome was decided: by a step, a person, or the instance's own clock."""
    then = "what was done is undone" if event.compensate else "nothing is undone"
    if event.step >= 0:
        ends = "fails" if event.outcome == "failed" else "is cancelled"
        return f"so the instance {ends}; {then}"
    if event.failure is None:
        return f"{event.by} cancelled the instance{remark(event.comment)}; {then}"
    units = [state.unit(step) for step in sorted(state.open)]
    names = [f"{state.plan.steps[u.step].name} ({STATUS_NAMES[u.status]})" for u in units]
    still = f" while these were open: {listed(names)}" if names else ""
    return f"the instance itself failed ({blame(event.failure)}){still}; {then}"


def late(state: Instance, event: ev.LateSuccess) -> str:
    """A settled step had succeeded after all."""
    then = "so it is undone too" if event.undo else "which changes nothing any more"
    return f"attempt {event.attempt} of {name_of(state, event)} succeeded late, {then}"


def compensating(state: Instance, _: ev.CompensationStarted) -> str:
    """Undoing began."""
    names = [state.plan.steps[step].name for step in reversed(state.undo_list)]
    return f"compensation began, to undo {listed(names)}" if names else "there was nothing to undo"


def delivered(state: Instance, event: ev.EventDelivered) -> str:
    """A broadcast met a wait."""
    return f"the event {event.event} was delivered to {name_of(state, event)}"


SENTENCES: Final[dict[type, str | Callable[[Instance, Any], str]]] = {
    ev.InstanceCreated: lambda s, e: f"{e.by} started {s.plan.workflow} v{s.plan.version}",
    ev.InstanceQueued: lambda _, e: "no slot was free, so it was queued" if e.held else "",
    ev.InstanceStarted: "",
    ev.StepReady: ready,
    ev.StepStarted: started,
    ev.StepWaiting: waiting,
    ev.StepSucceeded: succeeded,
    ev.StepBackedOff: lambda s, e: (
        f"{tried(s, e)} ({blame(e.failure)}); retry {s.unit(e.step).retries} of "
        f"{s.plan.steps[e.step].retry.max_retries} is due at {time_told(e.retry_at)}"
    ),
    ev.StepRequeued: "",
    ev.StepCorrecting: lambda s, e: (
        f"the result of attempt {e.attempt} of {name_of(s, e)} was refused "
        f"({blame(e.failure)}); correction {s.unit(e.step).corrections} of "
        f"{s.plan.steps[e.step].max_corrections} follows"
    ),
    ev.StepFailed: lambda s, e: f"{tried(s, e)} ({blame(e.failure)}), for good",
    ev.StepSkipped: skipped,
    ev.StepEscalated: lambda s, e: f"{tried(s, e)} ({blame(e.failure)}): a human must decide",
    ev.StepResumed: resumed,
    ev.StepCancelled: lambda s, e: f"{name_of(s, e)} was cancelled",
    ev.LateSuccess: late,
    ev.GateVoted: lambda s, e: f"{person(e)} approved {name_of(s, e)}{remark(e.comment)}",
    ev.GateGranted: lambda s, e: (
        f"{person(e)} approved {name_of(s, e)}{remark(e.comment)}, which opened it"
    ),
    ev.GateRejected: lambda s, e: f"{person(e)} rejected {name_of(s, e)}{remark(e.comment)}",
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
