"""Receipts: what became of an attempt, as the engine is told. No secret passes here."""

import logging
from typing import Any, Final

import msgspec

from pawlflow.effects.context import (
    LATER,
    Cancelled,
    Context,
    Correctable,
    Failing,
    Terminal,
    Transient,
)
from pawlflow.effects.interrupts import Left
from pawlflow.effects.processes import RemoteError, WorkerLost
from pawlflow.effects.registry import BindError
from pawlflow.effects.secrets import (
    NOTHING,
    Hidden,
    SecretMissing,
    SecretTooShort,
    SecretUnavailable,
)
from pawlflow.effects.words import trace_of, where_of, words_of
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload, PayloadError

MESSAGE_MAX: Final = 8_000  # characters of what went wrong
log = logging.getLogger("pawl.effects")

# What a function raises chooses the class of the failure, and its code.
CLASSES: Final[dict[type[BaseException], tuple[FailureClass, str]]] = {
    BindError: ("terminal", "effect.arguments"),
    Transient: ("transient", "effect.transient"),
    Terminal: ("terminal", "effect.terminal"),
    Correctable: ("validation", "effect.correctable"),
    WorkerLost: ("transient", "effect.worker_lost"),
    SecretMissing: ("terminal", "secret.missing"),
    SecretTooShort: ("terminal", "secret.too_short"),
    SecretUnavailable: ("transient", "secret.unavailable"),
}


class Told:
    """An attempt as far as receipts tell of it: its call, what it logged, what it must not say."""

    __slots__ = ("call", "context", "hidden")

    def __init__(
        self, call: Call, context: Context | None = None, hidden: Hidden = NOTHING
    ) -> None:
        self.call = call
        self.context = context  # made for functions that ask for one
        self.hidden = hidden


def succeeded(told: Told, result: Any) -> Receipt | None:
    """The receipt of a success; a result that cannot be kept is a failure for good.

    None if the attempt stays open: its receipt comes from elsewhere.
    """
    call = told.call
    if result is LATER:
        return None
    try:
        payload = payload_of(result, call)
    except PayloadError as error:
        return failed(told, "terminal", error.code, str(error))
    except (TypeError, CodecError, RecursionError) as error:
        said = f"the result of {call.step} cannot be kept: {error}"
        return failed(told, "terminal", "result.unserialisable", said)
    held = told.hidden.held_by(payload.value) if told.hidden.pattern else None
    if held:
        names = ", ".join(sorted(held))
        said = f"{call.step} was carried out, but its result holds the secret {names}"
        return failed(told, "terminal", "secret.in_result", said)
    kept, usage = log_of(told), usage_of(told)
    warned = len(told.context.warned) if told.context else 0
    return Receipt(call.key, call.attempt, "ok", payload, warnings=warned, log=kept, usage=usage)


def payload_of(result: Any, call: Call) -> Payload:
    """A result as it is kept; one of a class of its own as plain data."""
    try:
        return Payload.of(result, call.cell.tenant)
    except (CodecError, RecursionError):
        return Payload.of(msgspec.to_builtins(result), call.cell.tenant)


def raised(told: Told, error: BaseException) -> Receipt:
    """The receipt of an attempt that ended with an exception."""
    if isinstance(error, Cancelled):
        return cancelled(told)
    if isinstance(error, Left):
        error = error.__cause__ or error
    if isinstance(error, Failing):
        return failed(told, error.kind, error.code, words_of(error), error.findings)
    for kind, (of_class, code) in CLASSES.items():
        if isinstance(error, kind):
            findings = error.findings if isinstance(error, Correctable) else None
            return failed(told, of_class, code, words_of(error), findings)
    call = told.call
    name, where, trace = type(error).__name__, where_of(error), trace_of(error)
    if isinstance(error, RemoteError):
        name, where, trace = error.name, error.where, error.trace
    hide = told.hidden.text
    log.warning("%s of %s raised %s:\n%s", call.step, call.cell.key, name, hide(trace))
    return failed(told, "agent", "effect.raised", f"{name}: {words_of(error)}{where}")


def failed(
    told: Told, kind: FailureClass, code: str, message: str, findings: Any = None
) -> Receipt:
    """The receipt of a failure. Whatever its words are, they must not keep it from arriving."""
    call, hide = told.call, told.hidden
    said = hide.text(message).encode("utf-8", "replace").decode()[:MESSAGE_MAX]
    tenant = call.cell.tenant
    try:
        failure = failure_of(kind, code, said, tenant=tenant, findings=hide.value(findings or []))
    except (CodecError, PayloadError, RecursionError):
        parts = [hide.text(repr(each))[:MESSAGE_MAX] for each in findings]
        failure = failure_of(kind, code, said, tenant=tenant, findings=parts)
    kept, usage = log_of(told), usage_of(told)
    return Receipt(call.key, call.attempt, "failed", failure=failure, log=kept, usage=usage)


def cancelled(told: Told) -> Receipt:
    """The receipt of an attempt that was no longer wanted, and ended."""
    kept, usage = log_of(told), usage_of(told)
    return Receipt(told.call.key, told.call.attempt, "cancelled", log=kept, usage=usage)


def log_of(told: Told) -> Payload | None:
    """The lines a function wrote, if any."""
    lines = told.context.lines if told.context else None
    return Payload.of(lines, told.call.cell.tenant) if lines else None


def usage_of(told: Told) -> Payload | None:
    """What a function said that it cost, if anything."""
    usage = told.context.usage if told.context else None
    return Payload.of(usage, told.call.cell.tenant) if usage else None
