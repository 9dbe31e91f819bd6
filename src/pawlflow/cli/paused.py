"""Paused instances: no list has them, so the open ones are looked at, newest first."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from pawlflow.definition.plan import Plan
from pawlflow.living import instance_of
from pawlflow.model.ids import Digest
from pawlflow.store.port import Filter, Head, Store

PAGE: Final = 200  # instances read at a time
OPEN: Final = ("created", "queued", "running", "waiting", "escalated", "compensating")


def paused_or(store: Store, wanted: Filter, states: Sequence[str]) -> list[tuple[Head, bool]]:
    """Instances that are paused, or in one of these states; and whether each is paused.

    It costs what the open instances of the filter are, until there are enough.
    """
    plans: dict[Digest, Plan] = {}
    found: list[tuple[Head, bool]] = []
    looked = [*dict.fromkeys((*OPEN, *states))]
    page = replace(wanted, states=looked, limit=PAGE)
    while len(found) < wanted.limit and (heads := store.instances(page)):
        images = store.load([(head.cell.tenant, head.cell.key) for head in heads])
        for head in heads:
            image = images.get((head.cell.tenant, head.cell.key))
            paused = image is not None and instance_of(store, image, plans).paused
            if paused or head.state in states:
                found.append((head, paused))
        page = replace(page, before=(heads[-1].created_at, heads[-1].ref))
    return found[: wanted.limit]
