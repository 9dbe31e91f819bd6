"""Policing: which policies are in force in a store, and who answers for them."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from pawlflow.definition.finding import Finding
from pawlflow.definition.load import Definitions, load_definitions
from pawlflow.definition.policy import PolicyFound
from pawlflow.definition.read import FILE_LIMITS, Limits
from pawlflow.definition.report import finding, spot
from pawlflow.definition.shape import Policy
from pawlflow.effects.context import Context
from pawlflow.govern.cedar import INSTALL, cedar, troubles_in
from pawlflow.govern.deciding import answer
from pawlflow.kernel.system.policies import Policies
from pawlflow.living import system_of
from pawlflow.model.ids import Tenant
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.payload import Payload
from pawlflow.model.policies import policies_cell
from pawlflow.store.port import Store, StoreError
from pawlflow.trouble import PawlError

TRIES: Final = 5  # to read the policies from a store that is unwell for a moment
PAUSE_S: Final = 0.2  # before the next of them, twice as long each time


class Judge:
    """Answers what steps ask before they act, by the policies in force at that moment."""

    def __init__(self, reader: Store) -> None:
        self.reader = reader

    async def ask(
        self, ctx: Context, action: str, principal: Any, resource: Any, context: Any
    ) -> dict[str, Any]:
        """The answer to one request; it is journalled whole."""
        request = {
            "action": action,
            "principal": principal,
            "resource": resource,
            "context": context,
        }
        for again in range(TRIES):
            try:
                return answer(request, in_force(self.reader, ctx.tenant))
            except StoreError:
                if again == TRIES - 1:
                    raise
            await asyncio.sleep(PAUSE_S * 2**again)
        raise AssertionError("the last try returns or raises")


def judged(call: Call, policies: Sequence[Policy]) -> Receipt:
    """The receipt of a question, by these policies."""
    said = Payload.of(answer(call.params.value, policies), call.cell.tenant)
    return Receipt(call.key, call.attempt, "ok", said)


def in_force(store: Store, tenant: Tenant) -> list[Policy]:
    """The policies that every decision of a tenant is made by now."""
    found = policies_of(store, tenant)
    return [] if found is None else [shape_of(each) for each in found.in_force()]


def unread_policies(store: Store, tenant: Tenant) -> str:
    """What is to be said where policies are in force and nobody can read them; else nothing."""
    names = ", ".join(each.name for each in in_force(store, tenant))
    try:
        cedar()
    except PawlError:
        words = f"{names} in force, and no Cedar here: steps with a policy are denied; {INSTALL}"
        return words if names else ""
    return ""


def policies_of(store: Store, tenant: Tenant) -> Policies | None:
    """All that a tenant has published; None if that is nothing yet."""
    cell = policies_cell(tenant)
    return system_of(store, (cell.tenant, cell.key), Policies)


def shape_of(kept: Any) -> Policy:
    """A policy as it is kept, as its document said it."""
    return Policy(name=kept.name, version=kept.version, cedar=kept.text.value)


# Files


def load_checked(text: str | bytes, file: str, *, limits: Limits = FILE_LIMITS) -> Definitions:
    """What a file defines; the policies in it are read by Cedar as well."""
    found = load_definitions(text, file, limits=limits)
    if not found.policies:
        return found
    more = [each for policy in found.policies for each in findings_of(policy)]
    return msgspec.structs.replace(found, findings=sorted([*found.findings, *more], key=spot))


def findings_of(found: PolicyFound) -> Iterator[Finding]:
    """What Cedar has to say against a policy, where it stands in the file."""
    try:
        troubles = troubles_in(found.policy.cedar)
    except PawlError as missing:
        message = f"policy {found.policy.name!r} cannot be checked: {missing}"
        yield finding(found.text.place, "error", missing.code, message, INSTALL)
        return
    for each in troubles:
        place = found.text.place_at(each.offset)
        yield finding(place, "error", each.code, f"cedar: {each.message}", each.hint)
