"""Durable workflows for agents and business processes. What is listed here is the public face."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pawlflow.effects.context import Cancelled, Context, Correctable, Terminal, Transient
    from pawlflow.effects.registry import Retry, Step, step
    from pawlflow.embedded import Pawl
    from pawlflow.runs import Run
    from pawlflow.trouble import (
        Conflict,
        DefinitionError,
        NoExecutor,
        NotFound,
        PawlError,
        Refused,
        WorkflowFailed,
    )

__all__ = [
    "Cancelled",
    "Conflict",
    "Context",
    "Correctable",
    "DefinitionError",
    "NoExecutor",
    "NotFound",
    "Pawl",
    "PawlError",
    "Refused",
    "Retry",
    "Run",
    "Step",
    "Terminal",
    "Transient",
    "WorkflowFailed",
    "step",
]

# Imported when first asked for: `import pawlflow` alone costs nothing.
_HOMES: Final = {
    "pawlflow.effects.context": ("Cancelled", "Context", "Correctable", "Terminal", "Transient"),
    "pawlflow.effects.registry": ("Retry", "Step", "step"),
    "pawlflow.embedded": ("Pawl",),
    "pawlflow.runs": ("Run",),
    "pawlflow.trouble": (
        "Conflict",
        "DefinitionError",
        "NoExecutor",
        "NotFound",
        "PawlError",
        "Refused",
        "WorkflowFailed",
    ),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'pawlflow' has no attribute {name!r}")
