"""Durable workflows for agents and business processes. What is listed here is the public face."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pawlflow.blocking import BlockingPawl
    from pawlflow.blocking_runs import BlockingRun
    from pawlflow.effects.checkpoints import LoopContext
    from pawlflow.effects.context import Cancelled, Context, Correctable, Terminal, Transient
    from pawlflow.effects.refs import FlowError, Ref
    from pawlflow.effects.secrets import Secrets
    from pawlflow.effects.steps import Retry, Step, step
    from pawlflow.embedded import Pawl
    from pawlflow.flows.flow import Flow, flow
    from pawlflow.flows.values import expr, secret, success, text
    from pawlflow.flows.words import agent, approval, child, each, effect, emit, sleep, wait_for
    from pawlflow.loops import Loop, loop
    from pawlflow.runs import Run
    from pawlflow.secrets import ChainSecrets, EnvironmentSecrets, FileSecrets, MappingSecrets
    from pawlflow.starts import Started
    from pawlflow.trouble import (
        Conflict,
        DefinitionError,
        NoExecutor,
        NotFound,
        Overloaded,
        PawlError,
        Refused,
        WorkflowFailed,
    )

__all__ = [
    "BlockingPawl",
    "BlockingRun",
    "Cancelled",
    "ChainSecrets",
    "Conflict",
    "Context",
    "Correctable",
    "DefinitionError",
    "EnvironmentSecrets",
    "FileSecrets",
    "Flow",
    "FlowError",
    "Loop",
    "LoopContext",
    "MappingSecrets",
    "NoExecutor",
    "NotFound",
    "Overloaded",
    "Pawl",
    "PawlError",
    "Ref",
    "Refused",
    "Retry",
    "Run",
    "Secrets",
    "Started",
    "Step",
    "Terminal",
    "Transient",
    "WorkflowFailed",
    "agent",
    "approval",
    "child",
    "each",
    "effect",
    "emit",
    "expr",
    "flow",
    "loop",
    "secret",
    "sleep",
    "step",
    "success",
    "text",
    "wait_for",
]

# Imported when first asked for: `import pawlflow` alone costs nothing.
_HOMES: Final = {
    "pawlflow.effects.context": ("Cancelled", "Context", "Correctable", "Terminal", "Transient"),
    "pawlflow.effects.checkpoints": ("LoopContext",),
    "pawlflow.effects.refs": ("FlowError", "Ref"),
    "pawlflow.effects.steps": ("Retry", "Step", "step"),
    "pawlflow.flows.flow": ("Flow", "flow"),
    "pawlflow.flows.values": ("expr", "secret", "success", "text"),
    "pawlflow.flows.words": (
        *("agent", "approval", "child", "each", "effect", "emit", "sleep", "wait_for"),
    ),
    "pawlflow.blocking": ("BlockingPawl",),
    "pawlflow.blocking_runs": ("BlockingRun",),
    "pawlflow.effects.secrets": ("Secrets",),
    "pawlflow.embedded": ("Pawl",),
    "pawlflow.secrets": ("ChainSecrets", "EnvironmentSecrets", "FileSecrets", "MappingSecrets"),
    "pawlflow.starts": ("Started",),
    "pawlflow.loops": ("Loop", "loop"),
    "pawlflow.runs": ("Run",),
    "pawlflow.trouble": (
        "Conflict",
        "DefinitionError",
        "NoExecutor",
        "NotFound",
        "Overloaded",
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
