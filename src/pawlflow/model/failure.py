"""Failures of steps: values, journalled, the kernel's business."""

from typing import Any, Final, Literal

from pawlflow.model.ids import Tenant
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record

FailureClass = Literal[
    "transient",
    "validation",
    "timeout",
    "agent",
    "external",
    "governance",
    "terminal",
    "unknown_outcome",
]
RETRIED: Final = frozenset({"transient", "external", "agent"})  # by retryPolicy alone


class Failure(Record, frozen=True, gc=False):
    """Why an attempt did not succeed. Its words lie in `detail`, so that they can be erased."""

    kind: FailureClass
    code: str
    detail: Payload  # {message, findings?}

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return str(self.detail.value["message"])

    @property
    def findings(self) -> list[Any]:
        """What a validator objected to; feedback for the next round."""
        found: list[Any] = self.detail.value.get("findings", [])
        return found


def failure_of(
    kind: FailureClass,
    code: str,
    message: str,
    *,
    tenant: Tenant,
    findings: list[Any] | None = None,
) -> Failure:
    """A failure from its words."""
    detail: dict[str, Any] = {"message": message}
    if findings:
        detail["findings"] = findings
    return Failure(kind, code, Payload.of(detail, tenant))
