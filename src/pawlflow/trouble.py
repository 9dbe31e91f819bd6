"""The exceptions that callers catch. Each has a stable code; `pawl explain CODE` says more."""

from typing import Any, Final

from pawlflow.definition.finding import Finding
from pawlflow.model.trouble import PawlError as PawlError

RETRY_AFTER_S: Final = 5  # what is told to who came while too much waited
BUSY: Final = ("engine.overloaded", "store.full")  # nothing was taken: the same a bit later


class Refused(PawlError):  # noqa: N818  # as people say it: "the signal was refused"
    """The engine refused what was asked; nothing changed."""


class Conflict(Refused):
    """The id exists, with another input."""


class Overloaded(Refused):
    """Too much waits, or there is no room: nothing was taken. The same may be tried later."""

    retry_after_s = RETRY_AFTER_S


class NotFound(PawlError):  # noqa: N818
    """There is no such thing."""


class NoExecutor(PawlError):  # noqa: N818
    """Nobody here can carry out some effects of a workflow; it was not started."""

    def __init__(self, workflow: str, effects: list[str], reason: str = "") -> None:
        self.effects = effects
        self.reason = reason  # if there is a function of that name, why it is not the one
        names = ", ".join(effects)
        message = (
            f"{workflow} needs {names}, and nothing here carries that out"
            f"{f' ({reason})' if reason else ''}: "
            "register a function with @pawl.effect(NAME), or name a module of steps"
        )
        super().__init__("effect.no_executor", message)


class DefinitionError(PawlError):
    """A file that is no valid definition; `findings` has every error with its place."""

    def __init__(self, code: str, message: str, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__(code, message)


class WorkflowFailed(PawlError):  # noqa: N818
    """The instance closed without success: the step that decided it, and what was undone."""

    def __init__(self, id_: str, shown: dict[str, Any]) -> None:
        error = shown["error"] or {}
        self.id = id_
        self.state: str = shown["state"]
        self.rollback: str = shown["rollback"]
        self.step: str | None = error.get("step")
        self.failure_class: str | None = error.get("class")
        self.attempts: int = error.get("attempts") or 0
        said = error.get("message") or f"the instance was {self.state}"
        where = f" at {self.step}" if self.step else ""
        message = f"{id_} {self.state}{where}: {said} (rollback {self.rollback})"
        super().__init__(error.get("code") or f"workflow.{self.state}", message)
