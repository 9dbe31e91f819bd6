"""Published names: the events of the journal as the outside world hears of them.

One internal event per transition; some have two names outside, some none.
"""

from collections.abc import Callable
from typing import Any, Final, get_args

from pawlflow.kernel.state import CANCELLED, PENDING, Instance
from pawlflow.model import events as ev
from pawlflow.model.failure import Failure
from pawlflow.model.system import SystemEvent


def published(state: Instance, event: ev.Event) -> list[str]:
    """The names under which an event is published, in order. `state` has just seen the event."""
    name = NAMES[type(event)]
    return [name] if isinstance(name, str) else name(state, event)


def on_queued(_: Instance, event: ev.InstanceQueued) -> list[str]:
    return ["WorkflowInstanceQueued"] if event.held else []


def on_started(_: Instance, event: ev.StepStarted) -> list[str]:
    return ["AgentTaskAssigned" if event.mode == "plain" else "AgentTaskReassigned"]


def on_waiting(_: Instance, event: ev.StepWaiting) -> list[str]:
    return ["ApprovalRequested" if event.kind == "approval" else "WorkflowStepWaiting"]


def on_succeeded(state: Instance, event: ev.StepSucceeded) -> list[str]:
    done = ["WorkflowStepCompleted"]
    return ["AgentTaskCompleted", *done] if state.plan.steps[event.step].attempted else done


def ended(state: Instance, step: int, attempt: int, failure: Failure) -> list[str]:
    """How the attempt or wait before this transition ended."""
    if failure.code == "approval.expired":
        return ["ApprovalExpired"]
    if failure.kind == "timeout":
        return ["WorkflowStepTimedOut"]
    return ["AgentTaskFailed"] if attempt and state.plan.steps[step].attempted else []


def on_backed_off(state: Instance, event: ev.StepBackedOff) -> list[str]:
    return [*ended(state, event.step, event.attempt, event.failure), "StepRetryScheduled"]


def on_correcting(state: Instance, event: ev.StepCorrecting) -> list[str]:
    return ended(state, event.step, event.attempt, event.failure)


def on_failed(state: Instance, event: ev.StepFailed) -> list[str]:
    return [*ended(state, event.step, event.attempt, event.failure), "WorkflowStepFailed"]


def on_escalated(state: Instance, event: ev.StepEscalated) -> list[str]:
    return [*ended(state, event.step, event.attempt, event.failure), "WorkflowEscalated"]


def on_skipped(state: Instance, event: ev.StepSkipped) -> list[str]:
    if event.failure is None:
        return ["WorkflowStepSkipped"]
    return [*ended(state, event.step, event.attempt, event.failure), "WorkflowStepSkipped"]


def on_closed(state: Instance, event: ev.Event) -> list[str]:
    """Steps that never began are cancelled by the close itself, each with its own name."""
    never = sum(
        state.status(step) == CANCELLED and (unit is None or unit.status == PENDING)
        for step, unit in enumerate(state.units)
    )
    return [*["WorkflowStepCancelled"] * never, CLOSED[type(event)]]


CLOSED: Final[dict[type, str]] = {
    ev.InstanceFailed: "WorkflowInstanceFailed",
    ev.InstanceCancelled: "WorkflowInstanceCancelled",
}


def nothing(_: Instance, __: ev.Event) -> list[str]:
    """A transition inside, with no name outside."""
    return []


NAMES: Final[dict[type, str | Callable[[Instance, Any], list[str]]]] = {
    ev.InstanceCreated: "WorkflowInstanceCreated",
    ev.InstanceQueued: on_queued,
    ev.InstanceStarted: "WorkflowInstanceStarted",
    ev.StepReady: "WorkflowStepReady",
    ev.StepStarted: on_started,
    ev.StepWaiting: on_waiting,
    ev.StepSucceeded: on_succeeded,
    ev.StepBackedOff: on_backed_off,
    ev.StepRequeued: nothing,
    ev.StepCorrecting: on_correcting,
    ev.StepFailed: on_failed,
    ev.StepSkipped: on_skipped,
    ev.StepEscalated: on_escalated,
    ev.StepResumed: "WorkflowResumed",
    ev.StepCancelled: "WorkflowStepCancelled",
    ev.LateSuccess: nothing,
    ev.GateVoted: nothing,
    ev.GateGranted: lambda _, __: ["ApprovalGranted", "WorkflowStepCompleted"],
    ev.GateRejected: "ApprovalRejected",
    ev.SignalReceived: "SignalReceived",
    ev.SignalTaken: nothing,
    ev.EventDelivered: "SignalReceived",
    ev.InstancePaused: "WorkflowPaused",
    ev.InstanceUnpaused: "WorkflowUnpaused",
    ev.InstanceStopping: nothing,
    ev.CompensationStarted: "CompensationStarted",
    ev.UndoStarted: "CompensationTaskAssigned",
    ev.UndoBackedOff: "StepRetryScheduled",
    ev.UndoDone: "WorkflowStepCompensated",
    ev.UndoFailed: "WorkflowStepCompensationFailed",
    ev.InstanceCompleted: "WorkflowInstanceCompleted",
    ev.InstanceFailed: on_closed,
    ev.InstanceCancelled: on_closed,
    **dict.fromkeys(get_args(SystemEvent), nothing),
}
