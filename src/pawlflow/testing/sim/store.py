"""The store of a simulated node: the reference store, with everything that may happen on the way.

An append ends as ok, failed, fenced, full or of unknown outcome; if unknown, the batch was applied,
was lost, or lands later. The fences of the real store decide whether it may.
"""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pawlflow.engine.actions import Accepted
from pawlflow.engine.fair import Offer
from pawlflow.kernel.draft import Rejected
from pawlflow.store.memory import Memory, MemoryStore
from pawlflow.store.port import (
    Batch,
    Entry,
    Head,
    Mail,
    StoreConflictError,
    StoreError,
    StoreFullError,
    StoreUnknownError,
)
from pawlflow.testing.sim.monitors import Monitors
from pawlflow.testing.sim.world import World

Outcomes = Sequence[tuple[Offer, Accepted | Rejected]]
Told = Callable[[Batch], None]


class SimStore:
    """One node's connection to the shared rows."""

    def __init__(self, world: World, memory: Memory, monitors: Monitors, told: Told) -> None:
        self.world = world
        self.memory = memory
        self.monitors = monitors
        self.told = told  # what was committed, for those who are to be poked
        self.real = MemoryStore(memory)
        self.full_until = 0
        self.coming: dict[str, None] = {}  # cores of which a batch may still land

    def append(self, core: str, where: str, batch: Batch, outcomes: Outcomes) -> StoreError | None:
        """Try to commit; what the node will hear of it."""
        faults = self.world.faults
        if self.world.now < self.full_until:
            return StoreFullError("store.full", "no room")
        if faults.fires("store.failed", where):
            return StoreError("store.failed", "the disk is on fire")
        if faults.fires("store.torn", where):
            self.check_torn(batch)
        if faults.fires("store.lost", where):
            return StoreUnknownError("store.unknown", "the connection broke, before the commit")
        if faults.fires("store.late", where):
            wait = self.world.dice.between(f"late:{where}", 1, 3_000)
            self.coming[core] = None
            self.world.after(wait, lambda: self.land(core, batch, outcomes))
            return StoreUnknownError("store.unknown", "the connection broke, the commit is coming")
        error = self.write(core, batch, outcomes)
        if error is None and faults.fires("store.applied", where):
            return StoreUnknownError("store.unknown", "the connection broke, after the commit")
        return error

    def land(self, core: str, batch: Batch, outcomes: Outcomes) -> None:
        """A commit that nobody waits for any more comes through, if its fences still hold."""
        error = self.write(core, batch, outcomes, late=True)
        self.world.tell(f"{core} late batch {'landed' if error is None else error.code}")

    def write(
        self, core: str, batch: Batch, outcomes: Outcomes, *, late: bool = False
    ) -> StoreError | None:
        """The commit itself. Only a late one may not fit what was written since."""
        made = self.monitors.before(batch, outcomes)
        try:
            self.real.append(batch)
        except StoreConflictError as error:
            return error
        except StoreError as error:
            if late or core in self.coming:  # acks alone move no fence: see docs/simulation.md
                return error
            self.monitors.bad("10", None, f"{core} wrote what does not fit: {error}")
        self.world.tell(f"{core} commits {batch.id.hex()[:8]} {heads_of(batch)}")
        self.monitors.committed(core, made)
        self.told(batch)
        return None

    def post(self, who: str, mail: Mail) -> int | None:
        """Put mail into the box; None if that cannot be said to have happened."""
        faults = self.world.faults
        key = mail.key or ""
        if self.world.now < self.full_until or faults.fires("post.failed", f"{who}:{key}"):
            return None
        if faults.fires("post.garbage", f"{who}:{key}", "unreadable mail comes with it"):
            self.real.post([replace(mail, input=mail.input[:-1], key=None)])
        [number] = self.real.post([mail])
        self.world.tell(f"{who} posts {number} {key}")
        return None if faults.fires("post.unknown", f"{who}:{key}") else number

    # Torn batches

    def check_torn(self, batch: Batch) -> None:
        """10: rows of half a batch are refused when they are read, whichever half it is."""
        shards = self.memory.shards
        if any(
            (shards[f.shard].epoch, shards[f.shard].seq) != (f.epoch, f.seq) for f in batch.fences
        ):
            return  # it would have been fenced: nothing of it is ever written
        for head in batch.heads:
            turns = [e for w in batch.frames for e in w.entries if e.ref == head.ref and e.number]
            if not turns:
                continue
            before = self.memory.turns.get(head.ref, [])
            known = self.memory.cells.get(head.ref)
            if known is not None:
                self.refused(known, [*before, *turns], "turns without their head")
            self.refused(head, [*before, *turns[:-1]], "a head without its last turn")
            end = bytes([turns[-1].data[-1] ^ 0xFF])
            torn = replace(turns[-1], data=turns[-1].data[:-1] + end)
            self.refused(head, [*before, *turns[:-1], torn], "a turn whose end is lost")

    def refused(self, head: Head, turns: list[Entry], what: str) -> None:
        """Reading a cell from such rows must fail."""
        copy = Memory()
        address = (head.cell.tenant, head.cell.key)
        copy.cells[head.ref] = head
        copy.addresses[address] = head.ref
        copy.turns[head.ref] = turns
        try:
            MemoryStore(copy).load([address])
        except StoreError:
            return
        self.monitors.bad("10", head.cell, f"{what}: read as if nothing had happened")


def heads_of(batch: Batch) -> str:
    """The frames of a batch, for the trace."""
    return " ".join(
        f"{w.frame.shard}:{w.frame.last}:{w.frame.hash.hex()[:8]}" for w in batch.frames
    )
