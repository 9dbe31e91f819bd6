"""Removing: which instances go, and what is handed in for that, in which order.

It is the same for the owner of a store and for a second terminal: they differ only in how they hand
in. Checkpoints go before the instance they belong to, so that what is cut short is found again; and
with an archive nothing goes before its file is durable.
"""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from pawlflow.archiving import Archive
from pawlflow.definition.plan import Plan
from pawlflow.engine.actions import Accepted
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.system.loop import Loop
from pawlflow.living import instance_of, state_of
from pawlflow.model.checkpoints import LOOP, CloseLoop, loop_key
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.operate import RemoveInstance
from pawlflow.store.port import Address, Head, Store, StoreError

BY: Final = "retention"
GONE: Final = "instance.unknown"  # somebody else was faster
PORTION: Final = 50  # instances that go together: a commit of work, with their checkpoints
LOOKED_MAX: Final = 500  # cells looked for at once
FIRST: Final = (-1, 0)

Asked = list[tuple[CellId, Input]]
Answers = Sequence[Accepted | Rejected]


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an instance whose time is over."""

    head: Head
    archive: Path | None
    refused: Rejected | None  # why it is still there


Removing = Generator[Asked, Answers, list[Removal]]  # yields what to hand in, is sent the answers


class Due(msgspec.Struct, frozen=True):
    """Instances whose time is over, and when the next one's will be."""

    heads: list[Head]
    last: tuple[int, int]  # after these
    next_at: TimeMs | None


def due_in(
    store: Store, shards: Sequence[int], now: TimeMs, after: tuple[int, int], limit: int = PORTION
) -> Due:
    """A portion of those whose time is over. It costs what it finds."""
    found = store.expiring(shards, after, limit + 1)
    over = [each for each in found[:limit] if each[0] <= now]
    rest = found[len(over) :]
    last = (over[-1][0], over[-1][1].ref) if over else after
    return Due([head for _, head in over], last, rest[0][0] if rest else None)


class Going(msgspec.Struct):
    """An instance on its way out, with the cells that keep its checkpoints."""

    head: Head
    loops: list[Head] = []
    archive: Path | None = None
    refused: Rejected | None = None


def removing(
    store: Store, heads: Sequence[Head], archive: Archive | None, by: str = BY
) -> Removing:
    """Let a portion go; one that cannot be read stays, and holds nobody up.

    Raises ArchiveError before anything of it is removed.
    """
    going = [looked_at(store, head) for head in heads]
    opened = [loop for each in going for loop in each.loops if is_open(store, loop)]
    if opened:
        yield [(loop.cell, CloseLoop()) for loop in opened]
        going = [looked_at(store, head) for head in heads]
    for each in going:
        keep(store, each, archive)
    loops = [(each, loop) for each in going if each.refused is None for loop in each.loops]
    if loops:
        answers = yield [removal_of(loop, by) for _, loop in loops]
        for (each, _), answer in zip(loops, answers, strict=True):
            each.refused = each.refused or refusal_in(answer)
    free = [each for each in going if each.refused is None]
    if free:
        answers = yield [removal_of(each.head, by) for each in free]
        for each, answer in zip(free, answers, strict=True):
            each.refused = refusal_in(answer)
    return [Removal(head=e.head, archive=e.archive, refused=e.refused) for e in going]


def looked_at(store: Store, head: Head) -> Going:
    """An instance and its checkpoints, or why they cannot be read."""
    try:
        return Going(head, list(loops_of(store, head)))
    except StoreError as error:
        return Going(head, refused=Rejected(error.code, str(error)))


def keep(store: Store, going: Going, archive: Archive | None) -> None:
    """Write the file of an instance, beside those of its checkpoints."""
    if archive is None or going.refused is not None:
        return
    try:
        archive.keep(store, going.loops, going.head)
        [going.archive] = archive.keep(store, [going.head])
    except StoreError as error:
        going.refused = Rejected(error.code, str(error))


def removal_of(head: Head, by: str) -> tuple[CellId, Input]:
    """The request to remove a cell, as it is now."""
    return head.cell, RemoveInstance(head.turn, head.hash, by)


def refusal_in(answer: Accepted | Rejected) -> Rejected | None:
    """A refusal that matters: what is gone already is as it should be."""
    return answer if isinstance(answer, Rejected) and answer.code != GONE else None


def loops_of(store: Store, head: Head) -> Iterator[Head]:
    """The cells that keep checkpoints of an instance. In a tenant without any nothing is read."""
    tenant = head.cell.tenant
    if not store.systems(tenant, LOOP, "", 1):
        return
    address = (tenant, head.cell.key)
    image = store.load([address]).get(address)
    if image is None or image.head.ref != head.ref:
        return
    plans: dict[Digest, Plan] = {}
    keys = [
        key for key, of in instance_of(store, image, plans).keys.items() if of.direction == "do"
    ]
    addresses: list[Address] = [(tenant, loop_key(key)) for key in keys]
    for at in range(0, len(addresses), LOOKED_MAX):
        found = store.load(addresses[at : at + LOOKED_MAX])
        yield from (each.head for each in found.values())


def is_open(store: Store, loop: Head) -> bool:
    """Was a loop left open by a process that died?"""
    image = store.load([(loop.cell.tenant, loop.cell.key)]).get((loop.cell.tenant, loop.cell.key))
    state = None if image is None else state_of(store, image, None)
    return isinstance(state, Loop) and state.closed is None
