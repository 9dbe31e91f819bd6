"""Telling: events and failures of a run as sentences, with their virtual time."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from pawlflow.definition.fields import duration_text
from pawlflow.model import events as ev
from pawlflow.model.events import Event
from pawlflow.model.failure import Failure
from pawlflow.model.journal import Turn
from pawlflow.model.payload import Payload
from pawlflow.testing.usersim.clockwork import Clockwork, Line
from pawlflow.testing.usersim.lives import Life

VALUE_MAX: Final = 100  # characters of a value in a story
NARROW: Final = 4  # of the column with the names


class Teller:
    """Turns into lines of the story."""

    def __init__(self, world: Clockwork) -> None:
        self.world = world

    def heard(self, life: Life, turn: Turn, events: list[Event]) -> None:
        """A turn is durable."""
        del turn
        for event in events:
            text = WORDS.get(type(event))
            said = "" if text is None else text(life, event)
            if said:
                self.world.say(life.name, said)


def value(given: Any) -> str:
    """A value, not too long."""
    plain = given.value if isinstance(given, Payload) else given
    text = msgspec.json.encode(plain).decode()
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 3]}..."


def because(failure: Failure) -> str:
    """Why an attempt failed."""
    if failure.kind == "timeout":
        return "runs out of time"
    known = f"a drawn failure: {failure.kind}"
    words = "" if failure.message == known else f", {failure.message}"
    return f"fails ({failure.kind}{words})"


def title(life: Life, event: Any) -> str:
    """The step, or the item of it, that an event is about."""
    return life.title(event.step, getattr(event, "item", -1))


def closing(life: Life, event: ev.InstanceStopping) -> str:
    """Why an instance stops."""
    then = "; what was done will be undone" if event.compensate else ""
    if event.outcome == "cancelled":
        return f"is cancelled by {event.by or 'its parent'}{then}"
    if event.failure is not None and event.step < 0:
        return f"fails as a whole: {event.failure.message}{then}"
    return f"fails because of {life.plan.steps[event.step].name}{then}"


def after(life: Life, at: int) -> str:
    """How long from now."""
    return duration_text(max(0, at - life.state.now))


Words = Callable[[Life, Any], str]
WORDS: Final[dict[type, Words]] = {
    ev.InstanceCreated: lambda _, e: f"is created with {value(e.input)}",
    ev.InstanceQueued: lambda _, e: "waits for its turn" if e.held else "",
    ev.StepStarted: lambda li, e: f"{title(li, e)}#{e.attempt} begins",
    ev.StepWaiting: lambda li, e: f"{title(li, e)} waits ({e.kind})",
    ev.StepSucceeded: lambda li, e: f"{title(li, e)} succeeds: {value(e.result)}",
    ev.StepBackedOff: lambda li, e: (
        f"{title(li, e)}#{e.attempt} {because(e.failure)}; again in {after(li, e.retry_at)}"
    ),
    ev.StepCorrecting: lambda li, e: f"{title(li, e)}#{e.attempt} is sent back for correction",
    ev.StepFailed: lambda li, e: f"{title(li, e)} {because(e.failure)}, and is given up",
    ev.StepSkipped: lambda li, e: f"{title(li, e)} is skipped ({e.reason})",
    ev.StepEscalated: lambda li, e: f"{title(li, e)} {because(e.failure)}; a human is asked",
    ev.StepResumed: lambda li, e: f"{title(li, e)}: {e.by} says {e.how}",
    ev.StepCancelled: lambda li, e: f"{title(li, e)} is stopped",
    ev.LateSuccess: lambda li, e: (
        f"{title(li, e)}#{e.attempt} succeeded after all, too late"
        + ("; it will be undone" if e.undo and li.state.closing else "")
        + ("; it is undone should it come to that" if e.undo and not li.state.closing else "")
    ),
    ev.GateVoted: lambda li, e: f"{title(li, e)}: {e.by} agrees",
    ev.GateGranted: lambda li, e: f"{title(li, e)} is approved by {e.by}",
    ev.GateRejected: lambda li, e: f"{title(li, e)} is rejected by {e.by}",
    ev.SignalReceived: lambda _, e: f"hears {e.event}: {value(e.data)}",
    ev.EventDelivered: lambda _, e: f"hears {e.event}: {value(e.data)}",
    ev.InstancePaused: lambda _, e: f"is paused by {e.by}",
    ev.InstanceUnpaused: lambda _, e: f"goes on, says {e.by}",
    ev.InstanceStopping: closing,
    ev.CompensationStarted: lambda _, __: "compensation begins",
    ev.UndoStarted: lambda li, e: f"undo/{title(li, e)}#{e.attempt} begins",
    ev.UndoBackedOff: lambda li, e: (
        f"undo/{title(li, e)}#{e.attempt} {because(e.failure)}; again in {after(li, e.retry_at)}"
    ),
    ev.UndoDone: lambda li, e: f"{title(li, e)} counts as undone",
    ev.UndoFailed: lambda li, e: f"undo/{title(li, e)} {because(e.failure)}, and is given up",
    ev.InstanceCompleted: lambda _, e: f"ends: completed, {value(e.output)}",
    ev.InstanceFailed: lambda _, e: f"ends: failed, rollback {e.rollback}",
    ev.InstanceCancelled: lambda _, e: f"ends: cancelled, rollback {e.rollback}",
}


def clock(at: int) -> str:
    """A virtual time: seconds, with hours and days where it is long."""
    seconds, ms = divmod(at, 1_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours:d}:{minute:02d}:{second:02d}.{ms:03d}"


def lines_of(told: list[Line]) -> list[str]:
    """The story as text; faults are marked."""
    width = max([NARROW, *(len(line.who) for line in told)])
    times = max([0, *(len(clock(line.at)) for line in told)])
    return [
        f"{clock(line.at):>{times}}  {'!' if line.fault else ' '} {line.who:<{width}}  "
        f"{'FAULT ' if line.fault else ''}{line.text}"
        for line in told
    ]
