"""Completions: what services tell becomes a receipt, through the same door as everything else.

A message is acknowledged once its receipt is durable, or refused for good: then it is a dead
letter. What comes together is handed in together and shares a commit, whether it came in a batch or
not; each completion is believed, refused and buried by itself.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from pawlflow.bus.port import Bus, BusError, Letter, Message
from pawlflow.driving import InlineDriver
from pawlflow.effects.headers import instance_uuid
from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import CellId, InstanceId, StepKey, Tenant, WorkflowName
from pawlflow.model.inputs import Receipt
from pawlflow.model.payload import Payload, PayloadError, nothing
from pawlflow.requests import BadRequestError, instance_cell
from pawlflow.services import batches, protocol
from pawlflow.services.commands import Commands
from pawlflow.services.keys import Keys
from pawlflow.services.places import Names, attempts_made, live_state
from pawlflow.services.protocol import Completion, ProtocolError
from pawlflow.services.signing import Said, verifies

log = logging.getLogger("pawl.nats")
# Refusals that say "that is known already".
KNOWN: Final = ("receipt.not_awaited", "instance.closed", "effect.orphaned")
BUSY: Final = ("engine.overloaded", "store.full", "store.busy", "shard.elsewhere")
LATER: Final = Rejected("store.busy", "")  # what could not be looked at: it is taken again
LATER_S: Final = 1.0
MESSAGE_MAX: Final = 8_000
LINES_MAX: Final = 200


class Engine(Protocol):
    """What is needed of the engine."""

    tenant: Tenant
    driver: InlineDriver


class Trust:
    """Whose completions count."""

    def __init__(self, keys: Keys, given: dict[str, str], *, unsigned: bool) -> None:
        self.keys = keys
        self.given = given  # public halves by id, of every tenant
        self.unsigned = unsigned

    def check(self, done: Completion, tenant: Tenant, attempt: int) -> None:
        """Raises ProtocolError unless the completion may be believed."""
        if done.signature is None:
            if not self.unsigned:
                message = "it is not signed, and PAWL_NATS_UNSIGNED=allow is not set"
                raise ProtocolError("completion.unsigned", message)
            return
        public = self.given.get(done.key_id or "") or self.keys.public(tenant, done.key_id or "")
        if public is None:
            message = f"tenant {tenant} has no executor key {done.key_id!r}"
            raise ProtocolError("completion.key", message)
        instance, result = done.workflow_instance_id, done.result_json or ""
        said = Said(tenant, instance, done.step_id, attempt, done.told, result)
        if not verifies(said, done.signature, public):
            message = f"the signature does not fit the key {done.key_id}"
            raise ProtocolError("completion.signature", message)


class Told(Protocol):
    """A completion as it came: a message, or a part of one."""

    @property
    def data(self) -> bytes:
        """What it says."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What is said about it."""
        ...


class Read(NamedTuple):
    """A completion that may be believed."""

    cell: CellId
    receipt: Receipt


class Intake:
    """Hears completions on one connection."""

    def __init__(self, engine: Engine, bus: Bus, commands: Commands, names: Names) -> None:
        self.engine = engine
        self.bus = bus
        self.commands = commands
        self.names = names
        self.trust: Trust | None = None
        self.tenant: Tenant | None = None  # if the connection belongs to one
        self.seen: dict[Tenant, None] = {engine.tenant: None}

    async def heard(self, messages: Sequence[Message]) -> None:
        """Completions, each in a message of its own."""
        answers = await self.take_all(messages)
        for message, refused in zip(messages, answers, strict=True):
            taken = refused is None or refused.code in KNOWN
            if not taken and refused is not None and refused.code not in BUSY:
                taken = await self.bury(message, refused)
            await (message.ack() if taken else message.later(LATER_S))

    async def heard_batches(self, messages: Sequence[Message]) -> None:
        """Completions in batches."""
        await asyncio.gather(*(self.heard_batch(message) for message in messages))

    async def heard_batch(self, message: Message) -> None:
        """What of a batch cannot be taken now goes back to its stream, each by itself."""
        try:
            parts = batches.unpacked(message.data)
        except ProtocolError as error:
            buried = await self.bury(message, Rejected(error.code, str(error)))
            await (message.ack() if buried else message.later(LATER_S))
            return
        answers = await self.take_all(parts)
        waiting: list[Letter] = []
        for part, refused in zip(parts, answers, strict=True):
            if refused is None or refused.code in KNOWN:
                continue
            if refused.code in BUSY or not await self.bury(part, refused):
                waiting.append(Letter(protocol.COMPLETED, part.data, part.headers))
        try:
            await self.bus.publish_all(waiting)
        except BusError as error:
            log.warning("a batch of completions is taken again later: %s", error)
            await message.later(LATER_S)
            return
        await message.ack()

    async def take_all(self, told: Sequence[Told]) -> list[Rejected | None]:
        """Make receipts of these and hand them in together; gives why each was refused."""
        read = [self.read(each) for each in told]
        submit = self.engine.driver.submit
        asked = [
            submit(each.cell, each.receipt, len(one.data)) if isinstance(each, Read) else None
            for each, one in zip(read, told, strict=True)
        ]
        answers: list[Rejected | None] = []
        for each, answer in zip(read, asked, strict=True):
            if isinstance(each, Rejected) or answer is None:
                answers.append(each if isinstance(each, Rejected) else LATER)
                continue
            outcome = await answer
            if isinstance(outcome, Rejected):
                answers.append(self.refused(each, outcome))
                continue
            answers.append(None)
            self.taken(each)
        return answers

    def refused(self, read: Read, outcome: Rejected) -> Rejected:
        """Why it was refused: what is known already is not what never was asked for."""
        attempt, key = read.receipt.attempt, read.receipt.key
        begun = attempt == 1 and key in self.commands.places  # which needs no looking
        if outcome.code not in KNOWN or begun:
            return outcome
        try:
            state = live_state(self.engine.driver, read.cell) or self.names.state_of(read.cell)
        except Exception:  # of a store that is unwell, say
            log.exception("a completion is taken again later")
            return LATER
        if state is not None and key not in state.keys:  # one that has closed does not look
            return Rejected("receipt.unknown", key.hex())
        made = attempt if state is None else attempts_made(state, key)
        if 0 < attempt <= made:
            return outcome
        message = f"it is of attempt {attempt}, and the step has had {made}"
        return Rejected("completion.attempt", message)

    def taken(self, read: Read) -> None:
        """It is durable: its command is not sent again, unless that is another attempt by now."""
        known = self.commands.attempt_of(read.receipt.key)
        if known is not None and known <= read.receipt.attempt:
            self.commands.settled(read.receipt.key)

    def read(self, told: Told) -> Read | Rejected:
        """A receipt of what was told, or why it is refused."""
        try:
            return self.believed(told)
        except ProtocolError as error:
            return Rejected(error.code, str(error))
        except Exception:  # of a store that is unwell, say: others beside it go on
            log.exception("a completion is taken again later")
            return LATER

    def believed(self, told: Told) -> Read:
        """A receipt of what was told. Raises ProtocolError if it cannot be believed."""
        done = protocol.completion_of(told.data)
        key = protocol.step_key_of(done.step_id)
        if key is None:
            raise ProtocolError("completion.malformed", f"{done.step_id!r} is no step id")
        cell = self.place_of(done, key, told.headers.get(protocol.TENANT))
        attempt = done.attempt or self.commands.attempt_of(key) or 1
        assert self.trust is not None
        self.trust.check(done, cell.tenant, attempt)
        return Read(cell, receipt_of(done, key, attempt, cell.tenant))

    def place_of(self, done: Completion, key: StepKey, said: str | None) -> CellId:
        """The instance it is about. Raises ProtocolError if it is another tenant's."""
        given, named = done.workflow_instance_id, [self.tenant, said, done.tenant_id or None]
        said = said or done.tenant_id or None
        cell = self.commands.places.get(key)
        if cell is not None and given not in (cell.key, instance_uuid(cell.tenant, cell.key)):
            message = f"the step {done.step_id} is not of instance {given}"
            raise ProtocolError("completion.instance", message)
        if cell is None and self.tenant is None and said is not None:
            protocol.tenant_in(said)
        if cell is None:
            cell = self.names.find(given, self.tenants(said))
        if cell is None:
            cell = unknown_cell(given, self.tenant or Tenant(said or self.engine.tenant))
        for whose in named:
            if whose is not None and whose != cell.tenant:
                message = f"it speaks for tenant {whose}, and the step is another tenant's"
                raise ProtocolError("completion.tenant", message)
        return cell

    def tenants(self, said: str | None) -> list[Tenant]:
        """Whose instances it may be about: an id may be that of several, so who is named first."""
        if self.tenant is not None:
            return [self.tenant]
        return list(dict.fromkeys([*([Tenant(said)] if said else []), *self.seen]))

    async def bury(self, message: Told, refused: Rejected) -> bool:
        """A dead letter: the message as it came, and why. False if it could not be kept."""
        detail = refused.detail or refused.code
        log.warning("a completion is a dead letter: %s: %s", refused.code, detail)
        headers = {
            **message.headers,
            protocol.DEAD_CODE: refused.code,
            protocol.DEAD_REASON: one_line(detail),
        }
        try:
            await self.bus.publish(protocol.DEAD, message.data, headers)
        except BusError as error:
            log.warning("it is taken again later: %s", error)
            return False
        return True


def one_line(text: str) -> str:
    """A text that can stand in a header."""
    return " ".join(text.split()).encode("ascii", "replace").decode()[:MESSAGE_MAX]


def unknown_cell(given: str, tenant: Tenant) -> CellId:
    """An instance that there is none of; the engine puts what is for it aside."""
    try:
        return instance_cell(tenant, given)
    except BadRequestError:
        return CellId(tenant, WorkflowName(""), InstanceId("unknown"))


def receipt_of(done: Completion, key: StepKey, attempt: int, tenant: Tenant) -> Receipt:
    """What was told, as the engine takes it. Raises ProtocolError."""
    log_lines = None if not done.log else [line_of(each) for each in done.log[:LINES_MAX]]
    try:
        kept = None if log_lines is None else Payload.of(log_lines, tenant)
        if done.told == "failed":
            kind = done.failure_class or "agent"
            said = (done.error_message or "the service reported a failure")[:MESSAGE_MAX]
            findings = (done.findings or [])[:LINES_MAX]
            failure = failure_of(kind, "effect.failed", said, tenant=tenant, findings=findings)
            return Receipt(key, attempt, "failed", failure=failure, log=kept)
        value = msgspec.json.decode(done.result_json) if done.result_json else None
        result = nothing(None, tenant) if value is None else Payload.of(value, tenant)
    except msgspec.DecodeError as error:
        message = f"`result_json` is no JSON: {error}"
        raise ProtocolError("completion.malformed", message) from error
    except (CodecError, PayloadError, RecursionError) as error:
        raise ProtocolError("completion.malformed", f"it cannot be kept: {error}") from error
    warned = max(1, len(done.log or ())) if done.told == "completed_with_warnings" else 0
    return Receipt(key, attempt, "ok", result, warnings=warned, log=kept)


def line_of(entry: Any) -> str:
    """A line of a log: a text, or {level, message}."""
    if isinstance(entry, dict) and "message" in entry:
        level = entry.get("level")
        return f"{level}: {entry['message']}" if level else str(entry["message"])
    return entry if isinstance(entry, str) else msgspec.json.encode(entry).decode()
