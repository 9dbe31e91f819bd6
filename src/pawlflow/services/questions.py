"""Questions: what services and clients may ask over NATS, each answered with JSON."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from pawlflow.bus.port import Bus, Message
from pawlflow.definition.plan import StepPlan, plan_of
from pawlflow.driving import InlineDriver
from pawlflow.effects.headers import uuid_text
from pawlflow.kernel.state import Instance, has_keys, key_of
from pawlflow.kernel.units import FAILED, SKIPPED, SUCCEEDED, UNDO_DONE, UNDO_FAILED, Unit
from pawlflow.model.failure import Failure
from pawlflow.model.ids import CellId, StepKey, Tenant
from pawlflow.model.trouble import PawlError
from pawlflow.projections.plain import value_of
from pawlflow.projections.reading import UnknownInstanceError, story_of
from pawlflow.projections.show import show_unit, units_shown, with_past
from pawlflow.projections.story import tell
from pawlflow.requests import event_name
from pawlflow.runs import Run
from pawlflow.services import batches, protocol
from pawlflow.services.places import Names, live_state
from pawlflow.services.protocol import ProtocolError
from pawlflow.store.port import Store

LIMIT: Final = 200
LIMIT_MAX: Final = 1_000
OPEN: Final = {"found": False, "state": "open"}  # what get-result says of a step that is awaited
Asked = Mapping[str, Any]


class Engine(Protocol):
    """What is needed of the engine."""

    tenant: Tenant
    reader: Store
    driver: InlineDriver

    async def start(
        self, workflow: str, input: Any, *, id: str | None, tenant: str, by: str
    ) -> Run:
        """Start an instance."""
        ...

    async def cancel(self, id: str, *, by: str, **more: str | None) -> None:
        """Stop an instance."""
        ...

    async def signal(self, id: str, event: str, data: Any, *, by: str, tenant: str) -> None:
        """Tell one instance."""
        ...

    async def emit(self, event: str, data: Any, *, by: str, tenant: str) -> None:
        """Tell everybody."""
        ...

    def list(
        self,
        *,
        state: Sequence[str],
        workflow: str | None,
        limit: int,
        after: str | None,
        tenant: str,
    ) -> Sequence[dict[str, Any]]:
        """Instances, newest first."""
        ...


class Questions:
    """Answers on one connection."""

    def __init__(self, engine: Engine, names: Names, places: Mapping[StepKey, CellId]) -> None:
        self.engine = engine
        self.names = names
        self.places = places
        self.tenant: Tenant | None = None  # if the connection belongs to one

    async def serve(self, bus: Bus) -> None:
        """Answer from now on."""
        for subject, answer in {
            protocol.START: self.start,
            protocol.CANCEL_INSTANCE: self.cancel,
            protocol.SIGNAL: self.signal,
            protocol.EMIT: self.emit,
            protocol.LIST: self.list,
            protocol.STEPS: self.steps,
            protocol.DEFINITIONS: self.definitions,
            protocol.GET_RESULT: self.get_result,
            batches.ARE_OPEN: self.are_open,
        }.items():
            await bus.answer(subject, protocol.GROUP, self.answering(answer))

    def answering(
        self, answer: Callable[[Asked, Tenant], Awaitable[Any]]
    ) -> Callable[[Message], Awaitable[bytes]]:
        """A question from its bytes to the bytes of its answer."""

        async def answered(message: Message) -> bytes:
            try:
                asked = protocol.asked_in(message.data)
                tenant = self.whose(asked, message.headers.get(protocol.TENANT))
                return msgspec.json.encode(await answer(asked, tenant))
            except UnknownInstanceError as error:
                return protocol.error_told("instance.unknown", str(error))
            except PawlError as error:
                return protocol.error_told(error.code, str(error))

        return answered

    def whose(self, asked: Asked, said: str | None) -> Tenant:
        """The tenant. Raises ProtocolError if two are named, or one that can be none."""
        given = text_in(asked, "tenant_id")
        named = [each for each in (self.tenant, said, given) if each is not None]
        if len(set(named)) > 1:
            message = f"the request is for tenant {named[-1]}, and comes from {named[0]}"
            raise ProtocolError("nats.tenant", message)
        if self.tenant is not None or not named:
            return self.tenant or self.engine.tenant
        return protocol.tenant_in(named[0])

    async def start(self, asked: Asked, tenant: Tenant) -> Any:
        """Start an instance; the same id and request give the same one."""
        name = text_in(asked, "type")
        if name is None:
            raise ProtocolError("nats.request", "`type` is missing: the name of a workflow")
        given = asked.get("request_json")
        try:
            value = msgspec.json.decode(given) if isinstance(given, str) and given else given or {}
        except msgspec.DecodeError as error:
            message = f"`request_json` is no JSON: {error}"
            raise ProtocolError("nats.request", message) from error
        correlation = text_in(asked, "correlation_id")
        by = f"nats:{correlation}" if correlation else "nats"
        id_ = text_in(asked, "instance_id")
        run = await self.engine.start(name, value, id=id_, tenant=tenant, by=by)
        return {"instance_id": run.id}

    async def cancel(self, asked: Asked, tenant: Tenant) -> Any:
        """Stop an instance; its running commands are told."""
        cell = self.instance(asked, tenant)
        comment = text_in(asked, "comment")
        by = text_in(asked, "by") or "nats"
        await self.engine.cancel(cell.key, by=by, tenant=tenant, comment=comment)
        return {"instance_id": cell.key, "accepted": True}

    async def signal(self, asked: Asked, tenant: Tenant) -> Any:
        """Tell an instance; it is kept until a wait matches it, also if none is open yet."""
        cell, event = self.instance(asked, tenant), event_in(asked)
        by = text_in(asked, "by") or "nats"
        await self.engine.signal(cell.key, event, asked.get("data"), by=by, tenant=tenant)
        return {"instance_id": cell.key, "accepted": True}

    async def emit(self, asked: Asked, tenant: Tenant) -> Any:
        """Tell every wait that is open now, and start the workflows that the event triggers."""
        event, by = event_in(asked), text_in(asked, "by") or "nats"
        await self.engine.emit(event, asked.get("data"), by=by, tenant=tenant)
        return {"event": event, "accepted": True}

    async def list(self, asked: Asked, tenant: Tenant) -> Any:
        """Instances, newest first; `next` is for `after`."""
        limit = asked.get("limit", LIMIT)
        if type(limit) is not int or not 0 < limit <= LIMIT_MAX:
            raise ProtocolError("nats.request", f"`limit` is 1 to {LIMIT_MAX:,}")
        status = text_in(asked, "status")
        rows = self.engine.list(
            state=(status,) if status else (),
            workflow=text_in(asked, "type"),
            limit=limit,
            after=text_in(asked, "after"),
            tenant=tenant,
        )
        return {"items": rows, "next": rows[-1]["id"] if len(rows) == limit else None}

    async def steps(self, asked: Asked, tenant: Tenant) -> Any:
        """The steps of an instance, in order, with the ids that services know them by."""
        cell = self.instance(asked, tenant)
        story = story_of(self.engine.reader, tenant, cell.key)
        told = tell(story)
        state = told.state
        shown: dict[str, dict[str, Any]] = {}
        for unit in units_shown(told):
            name = state.name_of(unit)
            step_id = id_of(key_of(state, unit, "do")) if has_keys(state, unit) else None
            shown[name] = {"name": name, "step_id": step_id, **show_unit(told, unit)}
        return {"instance_id": cell.key, "items": list(with_past(story, shown).values())}

    async def definitions(self, asked: Asked, tenant: Tenant) -> Any:
        """Every workflow by name and version, with its steps and what they ask of whom.

        What `start` takes for the tenant, and no other: a name means the engine's workflow, and
        only if it has none of that name the tenant's own.
        """
        del asked
        reader = self.engine.reader
        ours, theirs = reader.published(self.engine.tenant), reader.published(tenant)
        taken = {each.name for each in ours}
        every = [*ours, *(each for each in theirs if each.name not in taken)]
        found = sorted(every, key=lambda each: (each.name, -each.version))
        texts = reader.definitions([each.definition for each in found])
        items = [
            {
                "name": each.name,
                "version": each.version,
                "definition_hash": each.definition.hex(),
                "steps": [step_told(step) for step in plan_of(texts[each.definition]).steps],
            }
            for each in found
        ]
        return {"items": items}

    async def get_result(self, asked: Asked, tenant: Tenant) -> Any:
        """What the engine knows of a step: whether it is settled, and how."""
        return self.result_of(asked, tenant)

    def result_of(self, asked: Asked, tenant: Tenant) -> dict[str, Any]:
        """The same. Only what is durable may be told of what is settled."""
        step_id = text_in(asked, "step_id") or ""
        key = protocol.step_key_of(step_id)
        if key is None:
            raise ProtocolError("nats.request", "`step_id` is missing, or no UUID")
        cell = self.places.get(key)
        given = text_in(asked, "workflow_instance_id")
        if cell is None and given is not None:
            cell = self.names.find(given, [tenant])
        if cell is None or cell.tenant != tenant:
            return {"found": False, "state": "unknown"}
        live = live_state(self.engine.driver, cell)
        if live is not None and (told := result_told(live, key)) is OPEN:
            return told  # what is open needs no reading
        state = tell(story_of(self.engine.reader, tenant, cell.key)).state
        return result_told(state, key)

    async def are_open(self, asked: Asked, tenant: Tenant) -> Any:
        """Of several steps at a time, in order: does the engine still wait for them?"""
        steps = asked.get("steps")
        if not isinstance(steps, list) or len(steps) > LIMIT_MAX:
            message = f"`steps` is a list of at most {LIMIT_MAX:,} objects, as get-result has them"
            raise ProtocolError("nats.request", message)
        open_ = []
        for each in steps:
            if not isinstance(each, dict):
                raise ProtocolError("nats.request", "a step is an object, as get-result has it")
            whose = self.whose(each, None) if "tenant_id" in each else tenant
            open_.append(self.result_of(each, whose) == OPEN)
        return {"open": open_}

    def instance(self, asked: Asked, tenant: Tenant) -> CellId:
        """The instance that is meant. Raises PawlError if there is none."""
        given = text_in(asked, "instance_id") or text_in(asked, "workflow_instance_id")
        if given is None:
            raise ProtocolError("nats.request", "`instance_id` is missing")
        cell = self.names.find(given, [tenant])
        if cell is None:
            raise ProtocolError("instance.unknown", f"no instance {given!r} of tenant {tenant!r}")
        return cell


def text_in(asked: Asked, name: str) -> str | None:
    """A text of a request; an empty one is none. Raises ProtocolError."""
    found = asked.get(name)
    if found is not None and not isinstance(found, str):
        raise ProtocolError("nats.request", f"`{name}` is no text")
    return found or None


def event_in(asked: Asked) -> str:
    """The event that is told. Raises PawlError."""
    event = text_in(asked, "event")
    if event is None:
        raise ProtocolError("nats.request", "`event` is missing: the name of what happened")
    return event_name(event)


def id_of(key: StepKey) -> str:
    """A step key as services know it."""
    return uuid_text(key)


def result_told(state: Instance, key: StepKey) -> dict[str, Any]:
    """How a step, or its undo, was settled."""
    found = state.keys.get(key)
    if found is None:
        return {"found": False, "state": "unknown"}
    unit = state.of_round(found.step, found.item, found.round)
    if found.direction == "undo":
        settled = {UNDO_DONE: "completed", UNDO_FAILED: "failed"}.get(unit.undo)
        return told(settled, None, unit.undo_failure)
    settled = {SUCCEEDED: "completed", FAILED: "failed", SKIPPED: "failed"}.get(unit.status)
    return told(settled, unit, unit.failure)


def told(outcome: str | None, unit: Unit | None, failure: Failure | None) -> dict[str, Any]:
    """An answer to "is this done?"."""
    if outcome is None:
        return OPEN
    done = outcome == "completed"
    warned = done and unit is not None and unit.warnings
    result = value_of(unit.result) if done and unit is not None else None
    return {
        "found": True,
        "outcome": "completed_with_warnings" if warned else outcome,
        "success": done,
        "result_json": msgspec.json.encode(result).decode() if done else None,
        "error_message": failure.message if failure is not None and not done else None,
        "failure_class": failure.kind if failure is not None and not done else None,
    }


def step_told(step: StepPlan) -> dict[str, Any]:
    """A step of a definition: what it asks for, and whether there is a way back."""
    return {
        "name": step.name,
        "kind": step.kind,
        "command_subject": step.target if step.attempted else None,
        "compensation_subject": None if step.undo is None else step.undo.target,
        "undo": step.undo is not None,
    }
