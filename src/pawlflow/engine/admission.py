"""Admission: what is checked before an input may reach a cell.

Schema verdicts and times of schedules are given here, once, and journalled with the input; the
kernel never asks a third-party library anything.
"""

from functools import lru_cache
from typing import Any, Final

import msgspec

from pawlflow.definition.plan import Plan
from pawlflow.definition.readers import compile_schema
from pawlflow.engine.system.schedules import admit_times
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell
from pawlflow.model.codec import decode
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.payload import Payload

VALIDATORS_MAX: Final = 1_024  # compiled schemas kept; one takes a few kilobytes
FINDINGS_MAX: Final = 50  # per result: feedback is for reading


def admit_start(plan: Plan, value: Any, *, tenant: Tenant, by: str) -> StartInstance | Rejected:
    """A start whose input fits the definition's schema."""
    return unfit(plan, value) or StartInstance(plan.definition, Payload.of(value, tenant), by)


def unfit(plan: Plan, value: Any) -> Rejected | None:
    """Why an input does not fit the definition's schema, if it does not."""
    findings = [] if plan.input_schema is None else violations(plan.input_schema, value)
    return Rejected("input.invalid", described(findings)) if findings else None


def admit(cell: Cell, incoming: Input, now: TimeMs) -> Input | Rejected:
    """Give the verdicts that the definition asks for; they are journalled with the input."""
    state = cell.state
    if not isinstance(state, Instance):
        return admit_times(state, incoming, now)
    if isinstance(incoming, Receipt):
        return admit_receipt(state, incoming)
    if isinstance(incoming, StartInstance) and state.plan.input_schema is not None:
        return unfit(state.plan, incoming.input.value) or incoming
    return incoming


def admit_receipt(state: Instance, receipt: Receipt) -> Receipt:
    """The receipt with the verdict of the step's `check` in it: a mismatch is a failure.

    The result stays, so that people see what was refused.
    """
    key = state.keys.get(receipt.key)
    if receipt.outcome != "ok" or key is None or key.direction != "do":
        return receipt
    schema = state.plan.steps[key.step].check
    if schema is None:  # then nobody needs the value itself
        return receipt
    findings = violations(schema, None if receipt.result is None else receipt.result.value)
    if not findings:
        return receipt
    words, tenant = described(findings), state.cell.tenant
    failure = failure_of("validation", "check.failed", words, tenant=tenant, findings=findings)
    return msgspec.structs.replace(receipt, outcome="failed", failure=failure)


def violations(schema: bytes, value: Any) -> list[dict[str, str]]:
    """Everything in which a value differs from a JSON Schema, given as canonical bytes."""
    errors = validator(schema).iter_errors(value)
    found = [
        {"path": "/".join(str(part) for part in error.instance_path), "message": error.message}
        for error in errors
    ]
    return found[:FINDINGS_MAX]


@lru_cache(VALIDATORS_MAX)
def validator(schema: bytes) -> Any:
    """The compiled validator of a schema, known by its canonical bytes."""
    return compile_schema(decode(schema))


def described(findings: list[dict[str, str]]) -> str:
    """Findings in words."""
    said = ((found["path"], found["message"]) for found in findings)
    return "; ".join(f"{path}: {message}" if path else message for path, message in said)
