"""The words a scenario may expect: states, lenses and published events."""

from typing import Final, get_args

from pawlflow.kernel.state import STATUS_NAMES
from pawlflow.kernel.summary import InstanceState
from pawlflow.model.events import Rollback

FAILURE_CLASSES: Final = (
    "transient",
    "validation",
    "timeout",
    "agent",
    "external",
    "governance",
    "terminal",
)
INSTANCE_STATES: Final = get_args(InstanceState)
ROLLBACKS: Final = get_args(Rollback)
STEP_STATES: Final = STATUS_NAMES
UNDO_STATES: Final = ("none", "pending", "running", "done", "failed", "not_required", "waived")
LENSES: Final = {
    "control-plane": (
        "Created",
        "Running",
        "AssigningTask",
        "AwaitingAgent",
        "AwaitingApproval",
        "Correcting",
        "Escalated",
        "Compensating",
        "Completed",
        "Failed",
        "Cancelled",
    ),
    "kernel": ("running", "waiting", "completed", "failed"),
    "ioa": ("idle", "queued", "executing", "blocked", "compensating", "completed", "failed"),
    "ores": ("pending", "in_progress", "compensating", "completed", "compensated", "failed"),
}
EVENTS: Final = (
    "WorkflowInstanceCreated",
    "WorkflowInstanceQueued",
    "WorkflowInstanceStarted",
    "WorkflowStepReady",
    "AgentTaskAssigned",
    "AgentTaskReassigned",
    "WorkflowStepWaiting",
    "ApprovalRequested",
    "AgentTaskCompleted",
    "WorkflowStepCompleted",
    "AgentTaskFailed",
    "StepRetryScheduled",
    "WorkflowStepFailed",
    "WorkflowStepSkipped",
    "WorkflowStepCancelled",
    "WorkflowStepTimedOut",
    "WorkflowEscalated",
    "WorkflowResumed",
    "PolicyDecisionRecorded",
    "ApprovalGranted",
    "ApprovalRejected",
    "ApprovalExpired",
    "SignalReceived",
    "WorkflowPaused",
    "WorkflowUnpaused",
    "CompensationStarted",
    "CompensationTaskAssigned",
    "WorkflowStepCompensated",
    "WorkflowStepCompensationFailed",
    "WorkflowInstanceCompleted",
    "WorkflowInstanceFailed",
    "WorkflowInstanceCancelled",
    "UsageRecorded",
    "UsageRolledUp",
    "QuotaExceeded",
    "AuditExported",
    "ProcessStateProjected",
    "BlueprintValidated",
    "BlueprintValidationFailed",
    "DependencyResolved",
    "DependencyCycleDetected",
    "WorkflowReplayCompleted",
)
