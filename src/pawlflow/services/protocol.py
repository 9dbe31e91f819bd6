"""The protocol with services: subjects, headers and bodies, as docs/nats.md promises them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from pawlflow.bus.port import Consumer, Stream
from pawlflow.effects.headers import ATTEMPT as ATTEMPT
from pawlflow.effects.headers import INSTANCE_ID as INSTANCE_ID
from pawlflow.effects.headers import INSTANCE_NAME as INSTANCE_NAME
from pawlflow.effects.headers import STEP_ID as STEP_ID
from pawlflow.effects.headers import TENANT as TENANT
from pawlflow.effects.headers import instance_uuid, uuid_bytes, uuid_text
from pawlflow.model.failure import FailureClass
from pawlflow.model.ids import StepKey, Tenant
from pawlflow.model.intents import Call
from pawlflow.model.trouble import PawlError
from pawlflow.requests import BadRequestError, tenant_name
from pawlflow.trouble import BUSY, RETRY_AFTER_S

DAY_S: Final = 86_400.0
# {service}.v{n}.{resource}.{action}; what begins with `workflow` is ours.
COMMAND: Final = re.compile(r"(?!workflow\.)[a-z][A-Za-z0-9_-]*\.v[0-9]+(\.[A-Za-z0-9_-]+){2}\Z")

COMPLETED: Final = "workflow.v1.events.step-completed"
START: Final = "workflow.v1.start"
CANCEL_INSTANCE: Final = "workflow.v1.instances.cancel"
SIGNAL: Final = "workflow.v1.instances.signal"
EMIT: Final = "workflow.v1.emit"
LIST: Final = "workflow.v1.instances.list"
STEPS: Final = "workflow.v1.instances.steps"
DEFINITIONS: Final = "workflow.v1.definitions.list"
GET_RESULT: Final = "workflow.v1.steps.get-result"
CANCEL: Final = "workflow.v1.cancel."  # and the id of the step that is no longer wanted
DEAD: Final = "workflow.v1.dead-letters.step-completed"

TRACE: Final = "traceparent"
FEEDBACK: Final = "X-Workflow-Feedback"  # only of an attempt that has something to correct
FEEDBACK_MAX: Final = 64 * 1024  # characters: no command is too large because of it
DEAD_CODE: Final = "X-Dead-Letter-Code"
DEAD_REASON: Final = "X-Dead-Letter-Reason"

GROUP: Final = "pawl"  # of engines: one of them hears each message
COMMANDS: Final = "PAWL_COMMANDS"
COMPLETIONS: Final = Stream(
    name="PAWL_COMPLETIONS", subjects=(COMPLETED,), once=True, age_s=7 * DAY_S
)
DEAD_LETTERS: Final = Stream(
    name="PAWL_DEAD_LETTERS", subjects=(DEAD,), once=False, age_s=30 * DAY_S
)
INTAKE: Final = Consumer(
    stream=COMPLETIONS.name,
    name=GROUP,
    subjects=(COMPLETED,),
    deliver="workflow.v1.deliver.step-completed",
    ack_s=5.0,
    pending_max=2_000,
)
Outcome = Literal["completed", "completed_with_warnings", "failed"]


class ProtocolError(PawlError):
    """A message that says nothing that could be acted upon."""


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a command, as a service tells it."""

    workflow_instance_id: str
    step_id: str
    success: bool | None = None
    result_json: str | None = None
    error_message: str | None = None
    attempt: int | None = None
    outcome: Outcome | None = None
    failure_class: FailureClass | None = None
    findings: list[Any] | None = None
    tenant_id: str | None = None  # whose step it is, where the header does not say it
    log: list[Any] | None = None
    key_id: str | None = None
    signature: str | None = None

    @property
    def told(self) -> Outcome:
        """The outcome; `success` says it where `outcome` does not."""
        return self.outcome or ("completed" if self.success else "failed")


READ: Final = msgspec.json.Decoder(Completion)


def completion_of(data: bytes) -> Completion:
    """A completion from its bytes. Raises ProtocolError."""
    try:
        made = READ.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("completion.malformed", f"it is no completion: {error}") from error
    if made.success is None and made.outcome is None:
        message = "it says neither `success` nor `outcome`"
        raise ProtocolError("completion.malformed", message)
    if made.success is not None and made.outcome and made.success == (made.outcome == "failed"):
        message = f"`success` is {made.success}, and `outcome` is {made.outcome}"
        raise ProtocolError("completion.malformed", message)
    return made


def step_key_of(text: str) -> StepKey | None:
    """The step key that an id stands for, if it can be one."""
    try:
        return StepKey(uuid_bytes(text))
    except ValueError:
        return None


def is_command(target: str) -> bool:
    """May an effect of this name go over NATS?"""
    return COMMAND.match(target) is not None


def commands_stream(subjects: tuple[str, ...]) -> Stream:
    """The stream for these commands. Exactly these: what is beside them may be asked as well."""
    return Stream(name=COMMANDS, subjects=subjects, once=False, age_s=DAY_S)


def headers_of(call: Call, trace: str) -> dict[str, str]:
    """What is said about a command."""
    told = {
        INSTANCE_ID: instance_uuid(call.cell.tenant, call.cell.key),
        INSTANCE_NAME: call.cell.key,
        STEP_ID: uuid_text(call.key),
        ATTEMPT: str(call.attempt),
        TENANT: call.cell.tenant,
        TRACE: f"00-{trace}-{call.id.hex()[:16]}-01",
    }
    if call.feedback:
        told[FEEDBACK] = feedback_told(call.feedback)
    return told


def feedback_told(feedback: Sequence[Any]) -> str:
    """Findings as a header carries them: a JSON array in ASCII, as many from the first as fit."""
    found = msgspec.json.decode(msgspec.json.encode(feedback))  # what JSON has no word for is told
    parts: list[str] = []
    room = FEEDBACK_MAX - 1
    for each in found:
        part = json.dumps(each)
        room -= len(part) + 1
        if room < 0:
            break
        parts.append(part)
    if not parts:  # rather the beginning of one than nothing
        text = found[0] if isinstance(found[0], str) else json.dumps(found[0])
        parts = [json.dumps(text[: FEEDBACK_MAX // 12])]  # a letter may need twelve characters
    return f"[{','.join(parts)}]"


def feedback_in(headers: Mapping[str, str]) -> tuple[Any, ...]:
    """What an attempt is to correct; nothing, if that is not said or cannot be read."""
    try:
        return tuple(msgspec.json.decode(headers.get(FEEDBACK, "[]"), type=list[Any]))
    except (msgspec.DecodeError, RecursionError):
        return ()


def body_of(call: Call) -> bytes:
    """The parameters of a step, as JSON; a secret is a reference there."""
    return msgspec.json.encode(call.params.value)


def tenant_in(text: str) -> Tenant:
    """A tenant that somebody names; its commands say it in a header. Raises ProtocolError."""
    try:
        return tenant_name(text)
    except BadRequestError as error:
        raise ProtocolError(error.code, str(error)) from error


def error_told(code: str, message: str) -> bytes:
    """A refusal as an answer; after which time the same may be asked again, if it was too much."""
    later = {"retry_after_s": RETRY_AFTER_S} if code in BUSY else {}
    return msgspec.json.encode({"error": {"code": code, "message": message, **later}})


def asked_in(data: bytes) -> Mapping[str, Any]:
    """What is asked; nothing means an empty object. Raises ProtocolError."""
    try:
        asked = msgspec.json.decode(data) if data else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError("nats.request", f"the request is no JSON: {error}") from error
    if not isinstance(asked, dict):
        raise ProtocolError("nats.request", "the request is no JSON object")
    return asked
