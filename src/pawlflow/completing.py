"""Completing: the receipt of an attempt that was left open, from whoever has done the work.

It goes through the same door as every other input: a completion that comes twice, late, or for a
key that nobody knows is refused, and changes nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, get_args
from uuid import UUID

import msgspec

from pawlflow import requests
from pawlflow.acts import refusal
from pawlflow.definition.plan import Plan
from pawlflow.kernel.draft import Rejected
from pawlflow.living import instance_of
from pawlflow.model.failure import FailureClass, failure_of
from pawlflow.model.ids import CellId, Digest, InstanceId, StepKey, Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.payload import Payload
from pawlflow.requests import BadRequestError, instance_cell
from pawlflow.store.port import CellImage, Filter, Head, Store
from pawlflow.trouble import NotFound

PAGE: Final = 200  # instances looked at in one go
OPEN: Final = ("running", "waiting", "escalated", "compensating")
CLASSES: Final[tuple[str, ...]] = get_args(FailureClass)


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an attempt, as it is told from outside."""

    result: Any = None
    fail: str | None = None  # a failure class
    message: str = ""
    code: str = "effect.failed"
    findings: Sequence[Any] = ()
    attempt: int | None = None  # the present one
    usage: Mapping[str, float] | None = None


class Awaited(msgspec.Struct, frozen=True):
    """Whose attempt a key stands for."""

    cell: CellId
    attempt: int
    unit: str  # as people name it: `step`, `step[2]`, `undo/step`


class Engine(Protocol):
    """What is needed of the engine in this process."""

    tenant: Tenant
    driver: Any
    reader: Store
    watched: Any


class Completing:
    """How attempts that were left open are completed."""

    async def complete(  # noqa: PLR0913  # what may be said of an attempt
        self: Engine,
        key: str,
        result: Any = None,
        *,
        fail: FailureClass | None = None,
        message: str = "",
        findings: Sequence[Any] = (),
        attempt: int | None = None,
        usage: Mapping[str, float] | None = None,
        instance: str | None = None,
        tenant: str | None = None,
    ) -> None:
        """Say what became of an attempt: `key` is the Idempotency-Key of its request.

        A success with `result`, or a failure of the class `fail`. Durable when this returns. Name
        the `instance`, and it need not be looked for. Raises NotFound, Refused.
        """
        whose, wanted = requests.whose(tenant, self.tenant), key_in(key)
        said = Completion(
            result=result,
            fail=fail,
            message=message,
            findings=findings,
            attempt=attempt,
            usage=usage,
        )
        check(said)
        found: Awaited | None = None
        for each in looked_at(self.reader, whose, wanted, instance):
            found = each
            await asyncio.sleep(0)  # others have their turns, however many instances there are
        awaited = known(found, whose, key, instance)
        receipt = receipt_of(awaited, wanted, said)
        data = receipt.result.data if receipt.result is not None else None
        outcome = await self.driver.submit(awaited.cell, receipt, len(data or b""))
        if isinstance(outcome, Rejected):
            raise refusal(outcome)
        self.watched.settled(wanted)


def key_in(text: str) -> StepKey:
    """A step key from its text. Raises BadRequestError."""
    with suppress(ValueError, AttributeError, TypeError):
        return StepKey(UUID(text).bytes)
    said = f"{str(text)[:60]!r} is no step key: the Idempotency-Key of a request, a UUID"
    raise BadRequestError("receipt.key", said)


def check(said: Completion) -> None:
    """Refuse a completion that contradicts itself. Raises BadRequestError."""
    if said.fail is not None and said.fail not in CLASSES:
        message = f"{said.fail!r} is no class of failures; known are: {', '.join(CLASSES)}"
        raise BadRequestError("receipt.class", message)
    if said.fail is not None and said.result is not None:
        raise BadRequestError("receipt.class", "an attempt has a result, or failed: not both")


def receipt_of(awaited: Awaited, key: StepKey, said: Completion) -> Receipt:
    """A completion as the receipt that it is."""
    tenant = awaited.cell.tenant
    attempt = awaited.attempt if said.attempt is None else said.attempt
    usage = Payload.of(dict(said.usage), tenant) if said.usage else None
    if said.fail is None:
        return Receipt(key, attempt, "ok", Payload.of(said.result, tenant), usage=usage)
    kind: Any = said.fail
    words = said.message or f"completed from outside as {said.fail}"
    failure = failure_of(kind, said.code, words, tenant=tenant, findings=list(said.findings))
    return Receipt(key, attempt, "failed", failure=failure, usage=usage)


def awaited_in(store: Store, tenant: Tenant, key: str, instance: str | None) -> Awaited:
    """Whose attempt a key stands for. Raises NotFound."""
    found: Awaited | None = None
    for each in looked_at(store, tenant, key_in(key), instance):
        found = each
    return known(found, tenant, key, instance)


def known(found: Awaited | None, tenant: Tenant, key: str, instance: str | None) -> Awaited:
    """What was found. Raises NotFound with the way out."""
    if found is not None:
        return found
    if instance is not None:
        raise NotFound("receipt.unknown", f"instance {instance!r} has no attempt with key {key}")
    said = f"no open instance of tenant {tenant!r} has an attempt with key {key}"
    raise NotFound("receipt.unknown", f"{said}; of a closed one, name the instance too")


def looked_at(
    store: Store, tenant: Tenant, key: StepKey, instance: str | None
) -> Iterator[Awaited | None]:
    """Look for a key, page by page; what comes last is what was found.

    Of an instance that is named it costs that instance; else what is open and has calls in flight.
    """
    plans: dict[Digest, Plan] = {}
    if instance is not None:
        cell = instance_cell(tenant, instance)
        image = store.load([(tenant, cell.key)]).get((tenant, cell.key))
        if image is None:
            raise NotFound("instance.unknown", f"no instance {instance!r} of tenant {tenant!r}")
        yield awaited_by(store, image, key, plans)
        return
    page = Filter(tenant=tenant, states=OPEN, limit=PAGE)
    while heads := store.instances(page):
        found = next(filter(None, among(store, heads, key, plans)), None)
        yield found
        if found is not None:
            return
        page = msgspec.structs.replace(page, before=(heads[-1].created_at, heads[-1].ref))


def among(
    store: Store, heads: Sequence[Head], key: StepKey, plans: dict[Digest, Plan]
) -> Iterator[Awaited | None]:
    """Look into those of a page that have calls in flight."""
    wanted = [(head.cell.tenant, InstanceId(head.cell.key)) for head in heads if head.calls]
    for image in store.load(wanted).values():
        yield awaited_by(store, image, key, plans)


def awaited_by(
    store: Store, image: CellImage, key: StepKey, plans: dict[Digest, Plan]
) -> Awaited | None:
    """The attempt of an instance that a key stands for, if it has one."""
    state = instance_of(store, image, plans)
    found = state.keys.get(key)
    if found is None or found.direction == "ask":  # policies are asked here, and nowhere else
        return None
    unit = state.of_round(found.step, found.item, found.round)
    undo = found.direction == "undo"
    named = f"{'undo/' if undo else ''}{state.name_of(unit)}"
    return Awaited(image.head.cell, max(1, unit.undo_attempt if undo else unit.attempt), named)
