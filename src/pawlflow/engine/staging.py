"""Staging: the batch in the making. Turns and dispositions gather here until they are committed."""

from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import astuple, replace

from pawlflow.engine.actions import Accepted, Committed
from pawlflow.engine.cells import Live, put_beside
from pawlflow.engine.fair import Offer
from pawlflow.engine.places import mail_of, shard_of
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.heads import Question, facts_of, found_by, questions_changed
from pawlflow.kernel.snapshot import STATE_BYTES_MAX, sealed_state, snapshot_payloads
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, Stepped
from pawlflow.kernel.system.retention import expiry_of
from pawlflow.model.ids import CellId, Digest, InstanceId, StepName, TimeMs, WorkflowName
from pawlflow.model.intents import Intent
from pawlflow.model.journal import (
    Disposition,
    Send,
    disposition_hash,
    frame_of,
    payloads_of,
)
from pawlflow.model.records import write
from pawlflow.model.system import DefinitionPublished
from pawlflow.store import port
from pawlflow.store.port import Address, Entry, Head, Ref, ShardHead, position

SNAPSHOT_BYTES_MIN: Final = 64 * 1024  # of turns since the last one; then as much as it was long
HOPS_MAX: Final = 64  # sends to one cell that are stepped in the batch that sent them
QUARANTINE: Final = StepName("")  # the step of a review about the cell itself


class Staged(msgspec.Struct):
    """One shard's part of the batch."""

    head: ShardHead
    now: TimeMs
    seq: int  # the sequence number the next entry gets
    entries: list[Entry]


class Staging:
    """All that the next commit will hold, and what is to happen once it is durable."""

    def __init__(self, now: TimeMs) -> None:
        self.now = now  # of all its turns: it may be stepped in several goes
        self.took = 0.0  # so long
        self.shards: dict[int, Staged] = {}
        self.offers: list[Offer] = []  # what it answers, to be tried again should it fail
        self.outcomes: list[tuple[Offer, Accepted | Rejected]] = []
        self.touched: dict[Address, Live] = {}
        self.heads: dict[Ref, Head] = {}
        self.steady: set[Ref] = set()
        self.reviews: dict[tuple[Ref, str], port.Review | port.Reviewed] = {}
        self.attributes: list[port.Attributes] = []  # of new instances
        self.published: list[port.Published] = []
        self.definitions: dict[Digest, bytes] = {}
        self.blobs: list[port.Blob] = []
        self.intents: list[Intent] = []
        self.mail: list[port.Mail] = []
        self.taken: list[port.Taken] = []
        self.expiring: list[tuple[Ref, TimeMs]] = []
        self.removed: list[Head] = []
        self.unreadable: list[tuple[int, port.Taken]] = []
        self.committed: list[Committed] = []
        self.sends: deque[Offer] = deque()  # of this batch, to cells of the same shard
        self.hops: dict[Address, int] = {}
        self.fenced: dict[int, None] = {}
        self.id = b""
        self.frames: list[port.FrameWrite] = []
        self.bytes = 0
        self.turns = 0

    def answers_something(self) -> bool:
        """Is there anything to write, or anybody to be told?"""
        return bool(self.turns or self.outcomes or self.taken)

    def send(self, sender: Live, send: Send, *, at_once: bool) -> None:
        """An input for another cell: stepped in this batch if that is here, else mail.

        Once one has gone by mail, all to that cell do: sends never overtake each other.
        """
        cell = CellId(sender.id.tenant, WorkflowName(send.workflow), InstanceId(send.key))
        address = (cell.tenant, cell.key)
        near = at_once and shard_of(cell) == sender.shard
        if near and self.hops.get(address, 0) < HOPS_MAX:
            self.hops[address] = self.hops.get(address, 0) + 1
            self.sends.append(Offer(cell, address, send.input, sent=True))
        else:
            self.hops[address] = HOPS_MAX
            self.mail.append(mail_of(cell, send.input))

    def mail_leftovers(self) -> None:
        """What a turn sent and this batch has no room to step goes by mail: it cannot be lost."""
        self.mail += [mail_of(offer.cell, offer.input) for offer in self.sends]
        self.sends.clear()

    def new_heads(self) -> list[ShardHead]:
        """Where the shards stand once this is durable."""
        return [
            ShardHead(
                shard=written.frame.shard,
                epoch=written.epoch,
                seq=written.frame.last,
                hash=written.frame.hash,
                batch=self.id,
                now=written.now,
            )
            for written in self.frames
        ]

    def shard(self, head: ShardHead, now: TimeMs) -> Staged:
        """The part of a shard; its time never goes back."""
        staged = self.shards.get(head.shard)
        if staged is None:
            staged = self.shards[head.shard] = Staged(head, max(now, head.now), head.seq + 1, [])
            self.fenced[head.shard] = None
        return staged

    def add_turn(self, staged: Staged, live: Live, cell: Cell, stepped: Stepped) -> int:
        """Stage a turn and its head; returns how many bytes it takes."""
        shard, seq = staged.head.shard, staged.seq
        if live.ref is None:
            live.ref = position(shard, seq)
        ref = live.ref
        beside = put_beside(payloads_of(stepped.turn), ref, self.blobs)
        staged.entries.append(Entry(ref, stepped.turn.number, stepped.data, stepped.hash, beside))
        staged.seq += 1
        head = head_of(live.id, cell, shard, ref, stepped)
        if live.head is None or ref in self.heads or not is_steady(live.head, head):
            self.steady.discard(ref)
        else:
            self.steady.add(ref)
        live.head = self.heads[ref] = head
        self.touched[live.id.tenant, live.id.key] = live
        self.committed.append(Committed(live.id, stepped, head))
        self.intents += stepped.intents
        state = cell.state
        if isinstance(state, Instance):
            for step, asked in questions_changed(state) if state.asked else ():
                self.keep(live, step, asked)
            if stepped.turn.number == 1 and (found := found_by(state)):
                self.attributes.append(port.Attributes(ref, found))
            if state.closed is not None and (until := expiry_of(state)) is not None:
                self.expiring.append((ref, until))
        else:
            self.publish(live.id, stepped, staged.now)
        size = len(stepped.data) + len(beside)
        self.bytes += size
        self.turns += 1
        return size

    def keep(self, live: Live, step: str, asked: Question | None) -> None:
        """Keep an open review, or none."""
        assert live.ref is not None
        if asked is None:
            self.reviews[live.ref, step] = port.Reviewed(live.ref, step)
            return
        self.reviews[live.ref, step] = port.Review(
            ref=live.ref,
            cell=live.id,
            step=step,
            kind=asked.kind,
            role=asked.role,
            since=asked.since,
            due_at=asked.due_at,
            show=None if asked.show is None else asked.show.data,
            claimed_by=asked.claimed_by,
        )

    def publish(self, cell: CellId, stepped: Stepped, now: TimeMs) -> None:
        """A definition that a registry has published is known by its hash from now on."""
        for event in stepped.turn.events:
            if isinstance(event, DefinitionPublished):
                data = stepped.turn.input.data  # type: ignore[union-attr]  # its input brought it
                self.definitions[event.definition] = data.value
                self.published.append(
                    port.Published(
                        tenant=cell.tenant,
                        name=event.name,
                        version=event.version,
                        definition=event.definition,
                        at=now,
                    )
                )

    def add_disposition(self, staged: Staged, ref: Ref, disposed: Disposition) -> None:
        """Stage an input that became no turn."""
        data = write(disposed)
        beside = put_beside(payloads_of(disposed), ref, self.blobs)
        staged.entries.append(Entry(ref, 0, data, disposition_hash(data), beside))
        staged.seq += 1
        self.bytes += len(data) + len(beside)
        self.turns += 1

    def quarantine(self, live: Live, head: Head, *, held: bool, now: TimeMs) -> Head:
        """Put a cell aside, or let it go on; a human is asked to look at it."""
        kept = self.heads[head.ref] = replace(head, quarantined=held)
        self.steady.discard(head.ref)
        asked = Question(QUARANTINE, "quarantine", None, now)
        self.keep(live, QUARANTINE, asked if held else None)
        return kept

    def seal(self, id_: bytes, fences: Iterable[ShardHead]) -> port.Batch:
        """The batch, and after it nothing more."""
        self.id = id_
        self.frames = [seal_frame(staged) for staged in self.shards.values() if staged.entries]
        return port.Batch(
            id=id_,
            fences=[port.Fence(head.shard, head.epoch, head.seq) for head in fences],
            frames=self.frames,
            heads=list(self.heads.values()),
            steady=self.steady,
            reviews=list(self.reviews.values()),
            attributes=self.attributes,
            published=self.published,
            definitions=list(self.definitions.items()),
            blobs=self.blobs,
            snapshots=[made for live in self.touched.values() if (made := snapshot_of(live))],
            mail=self.mail,
            taken=self.taken,
            expiring=self.expiring,
            removed=self.removed,
        )


def head_of(id_: CellId, cell: Cell, shard: int, ref: Ref, stepped: Stepped) -> Head:
    """What may be asked about the cell after this turn."""
    facts = astuple(facts_of(cell.state))
    return Head(ref, id_, shard, stepped.turn.number, stepped.hash, *facts)


def is_steady(old: Head, new: Head) -> bool:
    """Is all as it was but what changes with every turn? Times and rollback go with the state."""
    return (
        old.state == new.state
        and not old.quarantined
        and old.definition == new.definition
        and old.version == new.version
    )


def seal_frame(staged: Staged) -> port.FrameWrite:
    """A shard's frame, chained to the one before it."""
    head = staged.head
    leaves = [entry.hash for entry in staged.entries]
    frame = frame_of(head.shard, head.hash, head.seq + 1, leaves)
    return port.FrameWrite(frame=frame, epoch=head.epoch, now=staged.now, entries=staged.entries)


def snapshot_of(live: Live) -> port.Snapshot | None:
    """The bytes of a state, when it has written as much again as they take: amortised, no cost.

    So reading a cell never costs more than twice what it holds, however long its history is.
    """
    if live.size - live.snapshot_at < max(SNAPSHOT_BYTES_MIN, live.snapshot_size):
        return None
    cell = live.cell
    assert cell is not None
    assert live.ref is not None
    state = cell.state
    blobs: list[port.Blob] = []
    beside = put_beside(snapshot_payloads(state), live.ref, blobs)
    data = sealed_state(state, cell.head, beside)
    live.snapshot_at = live.size
    live.snapshot_size = len(data) + len(beside)
    if live.snapshot_size > STATE_BYTES_MAX:
        return None
    return port.Snapshot(ref=live.ref, turn=state.turn, hash=cell.head, data=data, beside=beside)
