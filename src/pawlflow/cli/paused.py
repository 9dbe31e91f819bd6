"""Paused instances: no list has them, so the open ones are looked at, newest first."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from pawlflow.definition.plan import Plan, plan_of
from pawlflow.engine.cells import is_trusted, rebuild
from pawlflow.kernel.state import Instance
from pawlflow.model.ids import Digest
from pawlflow.store.port import CellImage, Filter, Head, Store

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
            paused = image is not None and is_paused(store, image, plans)
            if paused or head.state in states:
                found.append((head, paused))
        page = replace(page, before=(heads[-1].created_at, heads[-1].ref))
    return found[: wanted.limit]


def is_paused(store: Store, image: CellImage, plans: dict[Digest, Plan]) -> bool:
    """Is this instance held back?"""
    digest = Digest(image.head.definition)
    if digest not in plans:
        plans[digest] = plan_of(store.definitions([digest])[digest])
    if not is_trusted(image):
        image = store.story((image.head.cell.tenant, image.head.cell.key)) or image
    cell = rebuild(image, plans[digest]).cell
    return cell is not None and isinstance(cell.state, Instance) and cell.state.paused
