"""The words a scenario may expect: states, lenses and published events."""

from typing import Final, get_args

from pawlflow.definition.fields import Field, Table, choice
from pawlflow.kernel.summary import InstanceState
from pawlflow.kernel.units import STATUS_NAMES
from pawlflow.model.events import Rollback
from pawlflow.projections.event_table import EVENTS as PUBLISHED
from pawlflow.projections.lenses import LENSES as LENSES

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
EVENTS: Final = (
    *PUBLISHED,
    *("UsageRecorded", "UsageRolledUp", "QuotaExceeded", "AuditExported"),
    *("ProcessStateProjected", "BlueprintValidated", "BlueprintValidationFailed"),
    *("DependencyResolved", "DependencyCycleDetected", "WorkflowReplayCompleted"),
)
LENS_TABLE = Table(
    "lens",
    {
        name: Field(name, choice(*states), f"the state as {name} names it")
        for name, states in LENSES.items()
    },
)
