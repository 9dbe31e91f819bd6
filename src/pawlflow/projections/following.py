"""Following: the journal of each shard is read on from its watermark, and rows are written.

A page of turns, the rows it touched and the new watermark are one transaction, so it may be killed
anywhere and goes on to the same rows. Two who follow one shard do no harm: who finds the watermark
moved writes nothing and goes on from there.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import Final

import msgspec

from pawlflow.definition.plan import PLANS_MAX, Plan, plan_of
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.journal import Disposition
from pawlflow.model.records import read
from pawlflow.projections.folding import Folding
from pawlflow.projections.removed import was_removed
from pawlflow.projections.rows import Place
from pawlflow.store.port import SHARDS, Entry, Head, Ref, Store, StoreError, StoreUnknownError
from pawlflow.store.views import InstanceRow, Mark, Page, ReadModels, Standing, StepRow, UuidOf

log = logging.getLogger("pawl.views")
PAGE: Final = 256  # turns read and written together: on SQLite the engine waits for as many
FOLDED_MAX: Final = 4_096  # instances kept between pages
FOLDED_BYTES_MAX: Final = 64 * 1024 * 1024  # of what they were read from
SYSTEM_MAX: Final = 100_000  # cells remembered to be no instances
REST_S_MAX: Final = 0.1  # after a write during which the engine waited
Progress = Callable[[int, int], object]


class Tally(msgspec.Struct):
    """What it took."""

    pages: int = 0
    entries: int = 0  # of the journal, read
    folded: int = 0  # turns let happen
    refolded: int = 0  # instances read again from their first turn
    instances: int = 0  # rows written
    steps: int = 0
    swept: int = 0


class Follower:
    """Brings the rows of some shards up to the ends of their journals."""

    def __init__(
        self,
        store: Store,
        models: ReadModels,
        uuid_of: UuidOf,
        *,
        page: int = PAGE,
        folded_max: int = FOLDED_MAX,
        rest: Callable[[float], object] = time.sleep,
    ) -> None:
        self.store = store
        self.models = models
        self.uuid_of = uuid_of
        self.page = page
        self.folded_max = folded_max
        self.rest = rest
        self.folded: OrderedDict[Ref, Folding] = OrderedDict()  # least recently used first
        self.bytes = 0
        self.system: set[Ref] = set()
        self.plans: dict[Digest, Plan] = {}
        self.marks: dict[int, Mark] = {}  # as this one left them
        self.tally = Tally()

    def catch_up(
        self,
        shards: Collection[int] = range(SHARDS),
        progress: Progress | None = None,
        going: Callable[[], bool] = lambda: True,
    ) -> int:
        """Write what these shards have now, while `going`; gives how many entries were new.

        Raises StoreError if a journal cannot be read.
        """
        standings = self.models.standings()
        wanted = {shard: each for shard, each in standings.items() if shard in shards}
        total = sum(each.behind for each in wanted.values())
        done = 0
        for shard, standing in wanted.items():
            until = standing.seq
            mark = self.begun(standing)
            while mark.seq < until and going():
                before = mark.seq
                mark = self.write_page(mark)
                done = max(done + mark.seq - before, 0)
                if progress is not None:
                    progress(min(done, total), total)
            if not mark.swept and mark.seq >= until and going():
                self.tally.swept += self.models.sweep(mark)
                self.marks.pop(shard, None)
        return total

    def begun(self, standing: Standing) -> Mark:
        """Where to go on. What another one wrote meanwhile is not in what was folded here."""
        mark = standing.mark
        if self.marks.get(mark.shard) != mark:
            self.forget(mark.shard)
        if standing.seq < mark.seq or (standing.seq == mark.seq and standing.hash != mark.hash):
            return self.restarted(mark.shard)
        return mark

    def restarted(self, shard: int) -> Mark:
        """The journal is another one than the rows were made from: a backup was restored."""
        log.warning("the rows of shard %s are of another journal: they are built again", shard)
        self.models.restart([shard])
        return self.looked_up(shard)

    def looked_up(self, shard: int) -> Mark:
        """The watermark, after somebody else moved it."""
        self.forget(shard)
        return self.models.standings()[shard].mark

    def write_page(self, mark: Mark) -> Mark:
        """Read some frames and write their rows; gives the watermark as it is then."""
        page = self.models.page(mark.shard, mark.seq, self.page)
        if page is None:
            place = f"the journal of shard {mark.shard}"
            raise StoreError("store.gap", f"{place} has no frame after sequence {mark.seq}")
        if page.prev != mark.hash:
            return self.restarted(mark.shard)
        gone = [each.ref for each in page.entries if removes(each)]
        changed = self.fold(mark, page)
        for ref in gone:
            changed.pop(ref, None)
            self.folded.pop(ref, None)
        after = msgspec.structs.replace(mark, seq=page.seq, hash=page.hash, at=page.at)
        instances, steps = rows_of(changed, mark.generation)
        began = time.monotonic()
        try:
            written = self.models.write(mark, after, instances, steps, gone)
        except StoreUnknownError:
            written = False
        except StoreError:
            self.forget(mark.shard)
            raise
        if not written:
            return self.looked_up(mark.shard)
        self.marks[mark.shard] = after
        self.settle(changed)
        self.count(page, instances, steps)
        if self.models.exclusive:
            self.rest(min(time.monotonic() - began, REST_S_MAX))
        return after

    # Folding

    def fold(self, mark: Mark, page: Page) -> dict[Ref, Folding]:
        """Let the turns of a page happen; gives the instances they happened in."""
        turns = [e for e in page.entries if e.number and e.data and e.ref not in self.system]
        new = {each.ref for each in turns} - self.folded.keys()
        heads = self.heads_of(new)
        lost = new - heads.keys() - self.system
        if lost:  # some may have been removed since the page was read
            lost = {ref for ref in lost if was_removed(self.store, ref)}
            turns = [each for each in turns if each.ref not in lost]
        written = self.models.turns(mark.shard, mark.generation, list(heads)) if heads else {}
        changed: dict[Ref, Folding] = {}
        for entry in turns:
            if entry.ref in self.system:
                continue
            folding = self.folded.get(entry.ref)
            if folding is None:
                since = written.get(entry.ref, 0)
                if entry.number <= since:  # its story was read to the end before
                    continue
                folding = self.keep(entry.ref, self.read(found(heads, entry), entry, since))
            elif entry.number > folding.turn + 1:  # somebody else wrote what is in between
                head = found(self.models.cells([entry.ref]), entry)
                folding = self.keep(entry.ref, self.read(head, entry, 0))
            self.folded.move_to_end(entry.ref)
            if entry.number == folding.turn + 1:
                self.take(folding, entry)
            changed[entry.ref] = folding
        return changed

    def heads_of(self, refs: Iterable[Ref]) -> dict[Ref, Head]:
        """The instances among some cells; the others are remembered."""
        found = self.models.cells(sorted(refs))
        system = [ref for ref, head in found.items() if head.cell.workflow.startswith("$")]
        if len(self.system) > SYSTEM_MAX:
            self.system.clear()
        self.system.update(system)
        return {ref: head for ref, head in found.items() if ref not in self.system}

    def read(self, head: Head, entry: Entry, since: int) -> Folding:
        """An instance at its first turn, or else read from there to where it stands now.

        Rows as of turn `since` are there; what later turns touched is to be written.
        """
        folding = new_folding(self.store, head, self.uuid_of, self.plans)
        if entry.number == 1:
            return folding
        image = self.store.story((head.cell.tenant, head.cell.key))
        if image is None:
            raise StoreError("cell.lost", f"{head.cell.key} is listed, and not found by its id")
        for each in image.entries:
            self.take(folding, each)
            if folding.turn == since:
                folding.touched.clear()
        self.tally.refolded += 1
        return folding

    def take(self, folding: Folding, entry: Entry) -> None:
        """One turn, counted."""
        folding.take(entry)
        self.tally.folded += 1

    # What is kept between pages

    def keep(self, ref: Ref, folding: Folding) -> Folding:
        """Keep an instance for its next turns."""
        self.folded[ref] = folding
        return folding

    def settle(self, changed: dict[Ref, Folding]) -> None:
        """Their rows are written. Those that are over are dropped, and the eldest of too many."""
        for ref, folding in changed.items():
            folding.touched.clear()
            if folding.state.closed is not None:
                del self.folded[ref]
        self.bytes = sum(each.size for each in self.folded.values()) if changed else self.bytes
        while len(self.folded) > self.folded_max or self.bytes > FOLDED_BYTES_MAX:
            self.bytes -= self.folded.popitem(last=False)[1].size

    def forget(self, shard: int) -> None:
        """Drop what was folded of a shard: its rows are not known to be written."""
        self.marks.pop(shard, None)
        for ref in [ref for ref in self.folded if ref % SHARDS == shard]:
            del self.folded[ref]

    def count(self, page: Page, instances: list[InstanceRow], steps: list[StepRow]) -> None:
        """What a page took."""
        self.tally.pages += 1
        self.tally.entries += len(page.entries)
        self.tally.instances += len(instances)
        self.tally.steps += len(steps)


def rows_of(
    changed: dict[Ref, Folding], generation: int
) -> tuple[list[InstanceRow], list[StepRow]]:
    """The rows of some instances that are to be written."""
    instances: list[InstanceRow] = []
    steps: list[StepRow] = []
    for ref, folding in changed.items():
        instance, touched = folding.rows(Place(ref, generation))
        instances.append(instance)
        steps += touched
    return instances, steps


def removes(entry: Entry) -> bool:
    """Does this entry say that its cell was removed?"""
    if entry.number or not entry.data:
        return False
    disposed: Disposition = read(Disposition, entry.data, {})
    return disposed.kind == "removed"


def found(heads: dict[Ref, Head], entry: Entry) -> Head:
    """The instance that a turn is of."""
    if entry.ref not in heads:
        raise StoreError("journal.orphan", f"a turn is of cell {entry.ref}, and there is none")
    return heads[entry.ref]


def new_folding(store: Store, head: Head, uuid_of: UuidOf, plans: dict[Digest, Plan]) -> Folding:
    """An instance before its first turn; `plans` keeps what was compiled between calls."""
    cell, digest = head.cell, Digest(head.definition)

    def large(asked: CellId, addr: bytes) -> bytes | None:
        image = store.load([(asked.tenant, asked.key)]).get((asked.tenant, asked.key))
        return None if image is None else image.blobs.get(addr)

    if digest not in plans:
        data = store.definitions([digest]).get(digest)
        if data is None:
            raise StoreError("definition.lost", f"{digest.hex()} is missing, or was changed")
        if len(plans) >= PLANS_MAX:
            plans.clear()
        plans[digest] = plan_of(data)
    return Folding(cell, plans[digest], uuid_of(cell.tenant, cell.key), large)
