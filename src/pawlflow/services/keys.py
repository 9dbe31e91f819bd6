"""Keys of executors: registered in the journal of their tenant, as a topic that nobody can emit."""

from typing import Any, Final

import msgspec

from pawlflow import requests
from pawlflow.kernel.replay import read_turn
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.model.payload import Payload
from pawlflow.model.system import EmitEvent
from pawlflow.projections.reading import beside_of
from pawlflow.store.port import Store

TOPIC: Final = "$keys"  # no event of a workflow can have such a name
KEY: Final = InstanceId(f"$topic/{TOPIC}")


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """A key, or that it is no longer one."""

    id: str
    public: str = ""
    comment: str = ""
    revoked: bool = False


def keys_cell(tenant: str) -> CellId:
    """The system cell that holds the keys of a tenant."""
    return requests.topic_cell(tenant, TOPIC)


def registration(registered: Registered, tenant: str, by: str) -> EmitEvent:
    """Make a key known, or no longer."""
    return EmitEvent(Payload.of(msgspec.to_builtins(registered), Tenant(tenant)), by, "")


class Keys:
    """The keys of a store's tenants, read as far as they are new."""

    def __init__(self, reader: Store) -> None:
        self.reader = reader
        self.turns: dict[Tenant, int] = {}
        self.known: dict[Tenant, dict[str, Registered]] = {}

    def of(self, tenant: Tenant) -> dict[str, Registered]:
        """Every key of a tenant, revoked ones too. It costs what came since."""
        known = self.known.setdefault(tenant, {})
        after = self.turns.get(tenant, 0)
        story = self.reader.story((tenant, KEY), after)
        if story is None or story.head.turn == after:
            return known
        payloads = {**beside_of(story.entries, tenant), **story.blobs}
        for entry in story.entries:
            incoming = read_turn(entry.data, payloads).input
            made = registered_in(incoming.data.value) if isinstance(incoming, EmitEvent) else None
            if made is not None:
                known[made.id] = joined(known.get(made.id), made)
        self.turns[tenant] = story.head.turn
        return known

    def public(self, tenant: Tenant, id_: str) -> str | None:
        """The public half of a key that counts."""
        found = self.of(tenant).get(id_)
        return None if found is None or found.revoked else found.public


def joined(before: Registered | None, now: Registered) -> Registered:
    """What is known of a key after another word about it; it is never given twice."""
    if before is None:
        return now
    return msgspec.structs.replace(before, revoked=before.revoked or now.revoked)


def registered_in(data: Any) -> Registered | None:
    """A registration, if it is one."""
    try:
        return msgspec.convert(data, Registered)
    except msgspec.ValidationError:
        return None
