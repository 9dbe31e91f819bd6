"""Published names: the events of the journal as the outside world hears of them.

One internal event per transition; some have two names outside, some none.
"""

from collections.abc import Callable
from typing import Any, Final, get_args

from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import CANCELLED, PENDING
from pawlflow.model import budgets, reviews
from pawlflow.model import events as ev
from pawlflow.model.ids import NO_ITEM
from pawlflow.model.system import SystemEvent

Ended = ev.StepBackedOff | ev.StepCorrecting | ev.StepFailed | ev.StepEscalated | ev.StepSkipped


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
    attempted = event.attempt and state.plan.steps[event.step].attempted
    return [*(["AgentTaskCompleted"] if attempted else []), "WorkflowStepCompleted"]


def ended(state: Instance, event: Ended) -> list[str]:
    """How the attempt or wait before this transition ended. Of a fan, its items say so."""
    plan = state.plan.steps[event.step]
    if event.failure is None or (event.item == NO_ITEM and event.step in state.fans):
        return []
    if event.failure.kind == "timeout":
        asked = plan.gate is not None or is_held_back(state, event)
        return ["ApprovalExpired" if asked else "WorkflowStepTimedOut"]
    told = event.failure.code == "budget.exceeded" or is_held_back(state, event)
    return ["AgentTaskFailed"] if event.attempt and plan.attempted and not told else []


def is_held_back(state: Instance, event: Ended) -> bool:
    """Did a policy, or people whom it asked, end this? Of an attempt before it the end was told."""
    asked = state.at(event.step, event.item).asking
    return asked is not None and asked.decided is not None and not asked.decided.clears


def on_backed_off(state: Instance, event: ev.StepBackedOff) -> list[str]:
    return [*ended(state, event), "StepRetryScheduled"]


def on_failed(state: Instance, event: ev.StepFailed) -> list[str]:
    return [*ended(state, event), "WorkflowStepFailed"]


def on_escalated(state: Instance, event: ev.StepEscalated) -> list[str]:
    return [*ended(state, event), "WorkflowEscalated"]


def on_skipped(state: Instance, event: ev.StepSkipped) -> list[str]:
    return [*ended(state, event), "WorkflowStepSkipped"]


def on_closed(state: Instance, event: ev.InstanceFailed | ev.InstanceCancelled) -> list[str]:
    """Steps that never began are cancelled by the close itself, each with its own name."""
    failed = isinstance(event, ev.InstanceFailed)
    name = "WorkflowInstanceFailed" if failed else "WorkflowInstanceCancelled"
    return [*["WorkflowStepCancelled"] * len(never_begun(state)), name]


CLOSES: Final = ev.InstanceFailed | ev.InstanceCancelled


def never_begun(state: Instance) -> list[int]:
    """The steps that the close itself cancelled, in the order of the file."""
    return [
        step
        for step, unit in enumerate(state.units)
        if state.status(step) == CANCELLED and (unit is None or unit.status == PENDING)
    ]


def nothing(_: Instance, __: ev.Event) -> list[str]:
    """A transition inside, with no name outside."""
    return []


NAMES: Final[dict[type, str | Callable[[Instance, Any], list[str]]]] = {
    ev.InstanceCreated: "WorkflowInstanceCreated",
    ev.InstanceDue: nothing,
    ev.InstanceGranted: nothing,
    ev.InstanceQueued: on_queued,
    ev.InstanceStarted: "WorkflowInstanceStarted",
    ev.StepReady: "WorkflowStepReady",
    ev.StepFanned: nothing,
    ev.StepStarted: on_started,
    ev.StepWaiting: on_waiting,
    ev.StepSucceeded: on_succeeded,
    budgets.StepHeld: "BudgetExceeded",
    budgets.StepUnheld: nothing,
    budgets.BudgetRaised: "BudgetRaised",
    budgets.BudgetSpent: nothing,
    budgets.BudgetWarned: "BudgetWarned",
    ev.StepBackedOff: on_backed_off,
    ev.StepRequeued: nothing,
    ev.StepCorrecting: ended,
    ev.StepFailed: on_failed,
    ev.StepSkipped: on_skipped,
    ev.StepEscalated: on_escalated,
    ev.StepResumed: "WorkflowResumed",
    ev.StepCancelled: "WorkflowStepCancelled",
    ev.LateSuccess: nothing,
    ev.AttemptLeft: nothing,
    ev.AttemptEnded: nothing,
    ev.GateVoted: "ApprovalVoted",
    ev.GateGranted: lambda _, e: [
        "ApprovalGranted",
        *([] if e.digest else ["WorkflowStepCompleted"]),
    ],
    ev.GateRejected: "ApprovalRejected",
    ev.ReviewClaimed: "ReviewClaimed",
    reviews.StepReopened: nothing,
    reviews.FanFixed: nothing,
    reviews.StepBarred: nothing,
    reviews.StepRaised: "WorkflowEscalated",
    reviews.GateBound: nothing,
    reviews.GateVoided: "ApprovalVoided",
    reviews.PolicyAsked: nothing,
    reviews.PolicyDecided: "PolicyDecisionRecorded",
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
