"""What is known of an instance that was removed: the entry that says so, and nothing more."""

from typing import Any

from pawlflow.model.beside import Besides
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import RemoveInstance
from pawlflow.model.records import read
from pawlflow.projections.plain import time_told, value_of
from pawlflow.store.port import Found, Ref, Store


class UnknownInstanceError(LookupError):
    """There is no such instance."""

    code = "instance.unknown"


def absent(store: Store, tenant: Tenant, key: str) -> UnknownInstanceError:
    """Why there is no such instance: it never was, or was removed."""
    found = store.removed((tenant, InstanceId(key)))
    if found is None:
        return UnknownInstanceError(f"no instance {key!r} of tenant {tenant!r}")
    return RemovedInstanceError(removal_told(found))


class RemovedInstanceError(UnknownInstanceError):
    """The instance was removed: its time was over."""

    code = "instance.removed"

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        super().__init__(
            f"{told['id']} was removed at {told['removed_at']}, as the retention of "
            f"{told['workflow']} says: it was {told['state']} at {told['closed_at']} after "
            f"{told['turns']} turns, the last of them {told['hash'][:16]}"
        )


def was_removed(store: Store, ref: Ref) -> bool:
    """Was this very cell removed? Its last entry says so."""
    found = store.beside(ref)
    if not found or not found[-1].entry.data:
        return False
    disposed: Disposition = read(Disposition, found[-1].entry.data, {})
    return disposed.kind == "removed"


def removal_told(found: Found) -> dict[str, Any]:
    """The entry that removed an instance, in words."""
    kept: Besides = read(Besides, found.entry.beside, {})
    beside = {each.addr: each.data for each in kept.items}
    disposed: Disposition = read(Disposition, found.entry.data, beside)
    asked, detail = disposed.input, value_of(disposed.detail) or {}
    assert isinstance(asked, RemoveInstance), "what removes a cell says which turn was its last"
    return {
        "id": disposed.cell.key,
        "workflow": disposed.cell.workflow,
        "state": detail.get("state"),
        "created_at": time_told(detail.get("created_at")),
        "closed_at": time_told(detail.get("closed_at")),
        "removed_at": time_told(disposed.at),
        "by": asked.by,
        "turns": asked.turn,
        "hash": asked.hash.hex(),
        "shard": found.shard,
        "seq": found.seq,
    }
