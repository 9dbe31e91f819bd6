"""Stories read from a store: every turn of an instance, checked against its chain."""

from collections.abc import Iterable

from pawlflow.model.beside import Besides
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import Digest, InstanceId, Tenant
from pawlflow.model.journal import instance_genesis, turn_hash
from pawlflow.model.payload import PayloadError, verified
from pawlflow.model.records import read
from pawlflow.projections.removed import UnknownInstanceError as UnknownInstanceError
from pawlflow.projections.removed import absent
from pawlflow.projections.story import Story
from pawlflow.store.port import CellImage, Entry, Head, Store, StoreError


def story_of(store: Store, tenant: Tenant, key: InstanceId) -> Story:
    """The story of an instance. Raises UnknownInstanceError, StoreError if it was damaged."""
    image = store.story((tenant, key))
    if image is None:
        raise absent(store, tenant, key)
    definition = b""
    if image.head.definition:
        wanted = Digest(image.head.definition)
        definition = store.definitions([wanted]).get(wanted, b"")
    return story_from(image, definition)


def story_from(image: CellImage, definition: bytes) -> Story:
    """The story an image holds. Raises StoreError at the first turn that was changed."""
    story = Story(image.head.cell, definition, [], {})
    go_on(story, image)
    return story


def catch_up(store: Store, story: Story) -> Head:
    """Add the turns that came since, and give the head. It costs what came since.

    Raises UnknownInstanceError, StoreError if a turn was changed.
    """
    cell = story.cell
    image = store.story((cell.tenant, cell.key), len(story.turns))
    if image is None:
        raise absent(store, cell.tenant, cell.key)
    if not story.turns or image.head.turn != len(story.turns):
        go_on(story, image)
    return image.head


def go_on(story: Story, image: CellImage) -> None:
    """Add what an image holds to a story. Raises StoreError at the first turn that was changed."""
    cell, turns, payloads = story.cell, story.turns, story.payloads
    try:
        for addr, data in image.blobs.items():
            if addr not in payloads:
                verified(addr, data, cell.tenant)
    except (CodecError, PayloadError) as error:
        raise damaged(cell.key, image.head.turn, str(error)) from error
    payloads.update(image.blobs)
    prev = turns[-1][1] if turns else instance_genesis(cell)
    for number, entry in enumerate(image.entries, start=len(turns) + 1):
        try:
            take_in(payloads, entry, tenant=cell.tenant)
        except (CodecError, PayloadError) as error:
            raise damaged(cell.key, number, str(error)) from error
        prev = turn_hash(prev, entry.data)
        if prev != entry.hash or entry.number != number:
            raise damaged(cell.key, number, "its hash is not that of what was written")
        turns.append((entry.data, prev))
    if (len(turns), prev) != (image.head.turn, image.head.hash):
        raise damaged(cell.key, len(turns) + 1, f"{image.head.turn} turns were written")


def take_in(payloads: dict[bytes, bytes], entry: Entry, tenant: Tenant) -> None:
    """Add what lies beside an entry, each payload checked against its address."""
    if entry.beside:
        found: Besides = read(Besides, entry.beside, {})
        for item in found.items:
            verified(item.addr, item.data, tenant)
            payloads[item.addr] = item.data


def damaged(key: str, turn: int, why: str) -> StoreError:
    """A turn is not what was written."""
    message = f"turn {turn} of {key} cannot be trusted: {why}"
    return StoreError("journal.damaged", message)


def beside_of(entries: Iterable[Entry], tenant: Tenant) -> dict[bytes, bytes]:
    """All payloads beside these entries."""
    payloads: dict[bytes, bytes] = {}
    for entry in entries:
        take_in(payloads, entry, tenant)
    return payloads
