"""Proof: a whole store held against itself, and every decision in it made again.

Frames must follow on each other and hold what their roots say, every turn must be what the kernel
decides today, and every row that can be asked for must follow from the turns. One cell at a time is
in memory. An owner may go on meanwhile: what it writes later is left out.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from pawlflow.definition.canonical import hash_of_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.kernel.heads import facts_of, questions_changed
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.snapshot import sealed_state, snapshot_payloads
from pawlflow.kernel.state import Instance
from pawlflow.kernel.step import Cell, new_cell
from pawlflow.model import journal
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import CellId, Digest, Tenant, TimeMs
from pawlflow.model.payload import PayloadError, verified
from pawlflow.model.records import read
from pawlflow.model.system import DefinitionPublished
from pawlflow.projections.orphans import SAID, note_orphans, row_of
from pawlflow.projections.proof_index import lost_from
from pawlflow.projections.proof_removal import Removals, is_gone, went_since
from pawlflow.projections.proof_report import PROBLEMS_MAX
from pawlflow.projections.proof_report import Problem as Problem
from pawlflow.projections.proof_report import Report as Report
from pawlflow.projections.reading import take_in
from pawlflow.projections.story import Story
from pawlflow.projections.verify import Difference, verify, verify_turn
from pawlflow.store import port
from pawlflow.store.check import genesis
from pawlflow.store.port import SHARDS, Entry, Head, Ref, ShardHead, Store, StoreError, position

Progress = Callable[[int, int], None]
LOCATES_MAX: Final = 32  # each reads a shard once more, to name the turn
PUTS_ASIDE: Final = ("cell.raised", "cell.quarantined")  # other dead letters stop nobody
DISPOSITIONS_MAX: Final = 10_000  # of a tenant; the port gives them all at once


def verify_instance(story: Story) -> Difference | None:
    """Decide everything in a story again. None: it is all the same."""
    plan = plan_of(story.definition) if story.definition else None
    return verify(story.cell, plan, story.turns, story.payloads)


def verify_store(store: Store, progress: Progress | None = None) -> Report:
    """Check everything a store holds. `progress` gets the entries looked at, and how many."""
    report = Report(differences=[])
    try:
        proof = Proof(store, report, progress)
        for head in proof.heads:
            verify_shard(proof, head)
        for cell in store.refs():
            verify_cell(proof, cell)
        now = store.heads(range(SHARDS))
        for head in now:
            verify_owners(proof, head)
        report.live = now != proof.heads
        if not report.live:
            verify_rows(proof)
    except (StoreError, LookupError, TypeError, ValueError) as error:  # a row is none of ours
        code: str = getattr(error, "code", "store.damaged")
        report.differences.append(Problem(code=code, message=str(error)))
    return report


class Proof:
    """What one part of a store says, to be held against another. Sums stand for sets of rows."""

    def __init__(self, store: Store, report: Report, progress: Progress | None) -> None:
        self.store, self.report, self.progress = store, report, progress
        self.heads = store.heads(range(SHARDS))
        self.ends = {head.shard: head.seq for head in self.heads}  # what comes later is left out
        self.done, self.total = 0, 2 * sum(self.ends.values())
        report.shards = len(self.heads)
        self.last = [0] * SHARDS  # and the last that a turn of a cell claims
        self.turns = [0] * SHARDS  # the turns in the frames of a shard, less those of its cells
        self.held: dict[Ref, TimeMs] = {}  # cells put aside, since when
        self.disposed: dict[Ref, tuple[int, CellId, list[bytes]]] = {}  # seq, payloads elsewhere
        self.reviews: dict[tuple[Tenant, Ref, str], tuple[Any, ...]] = {}
        self.published: dict[tuple[Tenant, str, int], tuple[Digest, TimeMs]] = {}
        self.dispositions: dict[Tenant, int] = {}  # of every tenant there is
        self.late: dict[Ref, list[tuple[int, journal.Disposition]]] = {}  # about orphans, with seq
        self.asked: dict[tuple[Tenant, Ref, str], int] = {}  # the last turns that asked: their seq
        self.aside: list[Problem] = []  # what counts only if nobody wrote meanwhile
        self.unread: set[Ref] = set()  # cells with a problem of their own
        self.removals = Removals(store)
        self.plan = lru_cache(256)(self._plan)

    def found(self, code: str, message: str, **place: Any) -> None:
        """Keep a problem."""
        if len(self.report.differences) < PROBLEMS_MAX:
            self.report.differences.append(Problem(code=code, message=message, **place))

    def went_on(self, entries: int) -> None:
        """Tell how far it is."""
        self.done += entries
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)

    def _plan(self, definition: bytes) -> Plan:
        """The plan of a definition. Raises StoreError if its bytes are gone, or others."""
        digest = Digest(definition)
        data = self.store.definitions([digest]).get(digest, b"")
        if hash_of_bytes(data) != digest:
            raise StoreError("definition.lost", f"{digest.hex()} is missing, or was changed")
        return plan_of(data)


def mix(*parts: object) -> int:
    """A number that stands for a row in a sum."""
    return int.from_bytes(sha256(repr(parts).encode()).digest(), "big")


def verify_shard(proof: Proof, head: ShardHead) -> None:
    """Walk the frames of a shard up to its head."""
    shard, end = head.shard, genesis(head.shard)
    try:
        for written in proof.store.frames(shard):
            if end.seq >= head.seq:
                break  # an owner went on
            verify_frame(proof, end, written)
            frame, now = written.frame, written.now
            end = replace(end, epoch=written.epoch, seq=frame.last, hash=frame.hash, now=now)
            proof.report.frames += 1
            proof.went_on(len(written.entries))
    except StoreError as error:
        proof.found(error.code, str(error), shard=shard, seq=end.seq + 1)
        return
    proof.aside += proof.removals.left(shard)
    if (end.seq, end.hash, end.now) != (head.seq, head.hash, head.now) or head.epoch < end.epoch:
        message = f"shard {shard} ends at {end.seq}; its head says {head.seq}, or is another's"
        proof.found("journal.head", message, shard=shard, seq=head.seq)


def verify_frame(proof: Proof, end: ShardHead, written: port.FrameWrite) -> None:
    """Hold a frame against the one before it and against its entries."""
    shard, frame, entries = end.shard, written.frame, written.entries
    place = f"the frame of shard {shard} from {frame.first} to {frame.last}"
    try:
        made = journal.frame_of(shard, end.hash, end.seq + 1, [entry.hash for entry in entries])
        turns = (read_turn(entry.data, {}) for entry in entries if entry.number and entry.data)
        time = next((turn.stamps.now for turn in turns), written.now)
        proof.report.entries += len(entries)
        proof.turns[shard] += sum(mix(e.ref, e.hash) for e in entries if e.number and e.data)
    except (CodecError, TypeError) as error:
        proof.found("journal.entry", f"{place}: {error}", shard=shard, seq=end.seq + 1)
        return
    if made != frame:
        message = f"{place} does not follow on {end.seq}, or does not hold what its root says"
        proof.found("journal.hash", message, shard=shard, seq=end.seq + 1)
    if written.now != time or written.now < end.now or written.epoch < end.epoch:
        message = f"{place} is of another time or owner than what is in it"
        proof.found("journal.stamp", message, shard=shard, seq=end.seq + 1)
    for seq, entry in enumerate(entries, end.seq + 1):
        try:
            verify_entry(proof, shard, seq, entry)
        except (CodecError, PayloadError) as error:
            proof.found(error.code, f"a disposition: {error}", shard=shard, seq=seq)


def verify_entry(proof: Proof, shard: int, seq: int, entry: Entry) -> None:
    """What can be said of an entry without its cell: a cell is named by its first turn's place."""
    if not entry.data:
        proof.removals.bare(seq, entry)
    elif entry.number == 0:
        verify_disposition(proof, shard, seq, entry)
    born = entry.ref == position(shard, seq)
    if entry.number and (entry.ref % SHARDS != shard or born != (entry.number == 1)):
        message = f"turn {entry.number} of cell {entry.ref} cannot stand here"
        proof.found("journal.entry", message, shard=shard, seq=seq, turn=entry.number)


def verify_disposition(proof: Proof, shard: int, seq: int, entry: Entry) -> None:
    """A disposition must be readable and its own; it may put its cell aside, or let it go on."""
    disposed: journal.Disposition = read(journal.Disposition, entry.data, {})
    cell, beside = disposed.cell, dict[bytes, bytes]()
    if journal.disposition_hash(entry.data) != entry.hash:
        proof.found("journal.entry", "it was changed", shard=shard, seq=seq, cell=cell)
    take_in(beside, entry, cell.tenant)
    mentioned = [payload.addr for payload in journal.payloads_of(disposed)]
    elsewhere = [addr for addr in mentioned if addr not in beside]
    if disposed.kind == "removed":
        for message in proof.removals.fact(seq, entry, disposed):
            proof.found("journal.removed", message, shard=shard, seq=seq, cell=cell)
        proof.report.removed += 1
        return
    if entry.ref != position(shard, seq):  # else its cell never came to be
        proof.disposed.setdefault(entry.ref, (seq, cell, []))[2].extend(elsewhere)
        if disposed.kind == "dead" and disposed.code in PUTS_ASIDE:
            proof.held.setdefault(entry.ref, disposed.at)
        elif disposed.kind in ("redriven", "discarded"):
            proof.held.pop(entry.ref, None)
        elif disposed.kind == "settled" or disposed.code == "effect.orphaned":
            late: journal.Disposition = read(journal.Disposition, entry.data, beside)
            proof.late.setdefault(entry.ref, []).append((seq, late))
    row = mix(position(shard, seq), entry.hash)
    proof.dispositions[cell.tenant] = proof.dispositions.get(cell.tenant, 0) + row


class TurnError(StoreError):
    """A turn is not what was decided: its place in the shard, and its number."""

    def __init__(self, code: str, message: str, turn: journal.Turn) -> None:
        self.place = {"seq": turn.stamps.height, "turn": turn.number}
        super().__init__(code, f"turn {turn.number}: {message}")


def verify_cell(proof: Proof, head: Head) -> None:
    """Decide a cell again; if an error does not say which turn is wrong, its frames may."""
    try:
        verify_turns(proof, head)
    except Exception as error:  # noqa: BLE001  # a program that raises must not end the proof
        proof.unread.add(head.ref)
        code: str = getattr(error, "code", "replay.raised")
        place = error.place if isinstance(error, TurnError) else located(proof, head)
        message = f"{head.cell.key}: {error}" if code != "replay.raised" else repr(error)
        proof.found(code, message, shard=head.ref % SHARDS, cell=head.cell, **place)


def verify_turns(proof: Proof, head: Head) -> None:
    """Decide turn by turn, and hold the rows of the cell against what comes out."""
    cell, address = head.cell, (head.cell.tenant, head.cell.key)
    image = proof.store.story(address)
    if image is None or image.head.ref != head.ref:
        if is_gone(proof.store, head):  # by an owner that goes on
            proof.unread.add(head.ref)
            proof.disposed.pop(head.ref, None)
            return
        raise StoreError("cell.lost", f"{cell.key} is listed, and not found by its id")
    is_system = cell.workflow.startswith("$")
    payloads = dict(image.blobs)
    for addr, data in payloads.items():
        verified(addr, data, cell.tenant)
    live = new_cell(cell, None if is_system else proof.plan(image.head.definition))
    snapshot = proof.store.load([address])[address].snapshot
    for entry in image.entries:
        take_in(payloads, entry, cell.tenant)
        turn = read_turn(entry.data, payloads)
        verify_decision(live, turn, entry)
        note_turn(proof, head, live, turn)
        if snapshot is not None and snapshot.turn == turn.number:
            verify_snapshot(snapshot, live, turn, dict(image.blobs))
    verify_head(proof, image.head, live, payloads)
    proof.report.instances += not is_system
    proof.went_on(len(image.entries))


def verify_snapshot(kept: port.Snapshot, live: Cell, turn: journal.Turn, values: Any) -> None:
    """A snapshot is the state its turn led to, with the values it mentions."""
    take_in(values, Entry(kept.ref, 0, b"", kept.hash, kept.beside), live.state.cell.tenant)
    lost = {payload.addr for payload in snapshot_payloads(live.state)} - values.keys()
    if lost or kept.data != sealed_state(live.state, live.head, kept.beside):
        raise TurnError("cell.snapshot", "the snapshot after it is another state", turn)


def verify_decision(live: Cell, turn: journal.Turn, entry: Entry) -> None:
    """Decide one turn again. Raises TurnError if it is another one."""
    differs = verify_turn(live, turn, entry.data, live.state.turn + 1)
    if differs is not None:
        said = f"{differs.where}: {differs.recorded} was recorded, {differs.derived} is decided"
        raise TurnError("replay.difference", said, turn)
    if live.head != entry.hash:
        raise TurnError("journal.turn", "its hash is not that of what was written", turn)
    erased = [payload.addr.hex() for payload in journal.payloads_of(turn) if payload.data is None]
    if erased:
        raise TurnError("payload.erased", f"the bytes of {erased[0]} are gone", turn)


def note_turn(proof: Proof, head: Head, live: Cell, turn: journal.Turn) -> None:
    """Count the turn, and the rows it leads to: reviews, and definitions under their names."""
    tenant, state, shard = head.cell.tenant, live.state, head.ref % SHARDS
    proof.report.turns += 1
    proof.last[shard] = max(proof.last[shard], turn.stamps.height)
    if turn.stamps.height <= proof.ends[shard]:
        proof.turns[shard] -= mix(head.ref, live.head)
    for step, asked in questions_changed(state) if isinstance(state, Instance) else ():
        proof.reviews.pop((tenant, head.ref, step), None)
        if asked is not None:
            proof.reviews[tenant, head.ref, step] = row_of(head.cell, asked)
            proof.asked[tenant, head.ref, step] = turn.stamps.height
    for event in turn.events:
        if isinstance(event, DefinitionPublished):
            name, at = (tenant, event.name, event.version), turn.stamps.now
            proof.published[name] = (event.definition, at)


def verify_head(proof: Proof, head: Head, live: Cell, payloads: dict[bytes, bytes]) -> None:
    """Hold the row of a cell against its state, and remember where it must be found."""
    cell, ref, shard = head.cell, head.ref, head.ref % SHARDS
    _, named, elsewhere = proof.disposed.pop(ref, (0, cell, []))
    since = proof.held.get(ref)
    facts = facts_of(live.state)
    wrong = [n for n in facts.__struct_fields__ if getattr(head, n) != getattr(facts, n)]
    wrong += ["turn"] * ((head.turn, head.hash) != (live.state.turn, live.head))
    wrong += ["shard"] * (head.shard != shard)
    if wrong:
        said = ", ".join(f"{name} is {getattr(head, name)!r}" for name in wrong)
        message = f"the row of {cell.key} does not follow from its turns: {said}"
        proof.found("cell.head", message, shard=shard, cell=cell, turn=head.turn)
    if named != cell or not payloads.keys() >= set(elsewhere):
        message = f"a disposition of {cell.key} names another cell, or its payloads are gone"
        proof.found("journal.entry", message, shard=shard, cell=cell)
    if since is not None:
        proof.reviews[cell.tenant, ref, ""] = (cell, "quarantine", None, since, None, None, None)
    if isinstance(live.state, Instance):
        late = proof.late.pop(ref, [])
        note_orphans(head, live.state, late, proof.reviews, proof.asked)
    proof.dispositions.setdefault(cell.tenant, 0)
    verify_found(proof, head, live)


def verify_found(proof: Proof, head: Head, live: Cell) -> None:
    """Every index that must lead to a cell does."""
    shard = head.ref % SHARDS
    for index in lost_from(proof.store, head, live.state, held=head.ref in proof.held):
        message = f"{head.cell.key} is not found among {index}"
        made = Problem(code="store.index", shard=shard, cell=head.cell, message=message)
        proof.aside.append(made)


def located(proof: Proof, head: Head) -> dict[str, int]:
    """The first turn of a cell that does not fit the ones before it, as its shard has them."""
    prev, number = journal.instance_genesis(head.cell), 0
    known = turns_in(proof, head.ref % SHARDS) if len(proof.unread) <= LOCATES_MAX else ()
    for seq, entry in known:
        if entry.ref == head.ref:
            number += 1
            prev = journal.turn_hash(prev, entry.data if type(entry.data) is bytes else b"")
            if (entry.number, entry.hash) != (number, prev):
                return {"seq": seq, "turn": number}
    return {}


def turns_in(proof: Proof, shard: int) -> Iterator[tuple[int, Entry]]:
    """The turns in the frames of a shard, once more, as far as they can be read."""
    try:
        for written in proof.store.frames(shard):
            for seq, entry in enumerate(written.entries, written.frame.first):
                if entry.number and entry.data and seq <= proof.ends[shard]:
                    yield seq, entry
    except StoreError:
        return  # told before


def verify_owners(proof: Proof, head: ShardHead) -> None:
    """Every entry in a frame is of a cell that was read, and every turn of a cell in a frame."""
    shard = head.shard
    if proof.last[shard] > head.seq:
        message = f"a cell has a turn at {proof.last[shard]}, after the end of its shard"
        proof.found("journal.head", message, shard=shard, seq=head.seq)
    owners = {ref: told[0] for ref, told in proof.disposed.items() if ref % SHARDS == shard}
    if not owners and proof.turns[shard] == 0:
        return
    for seq, entry in turns_in(proof, shard):
        owners.setdefault(entry.ref, seq)
    for cell in proof.store.refs():
        owners.pop(cell.ref, None)
    if went_since(proof.store, shard, proof.ends[shard], head.seq):
        return  # an owner removed cells meanwhile: what was read of them is of another moment
    for ref, seq in owners.items():
        message = f"the entries from {seq} on are of cell {ref}, and there is none"
        proof.found("journal.orphan", message, shard=shard, seq=seq)
    if not owners and not any(ref % SHARDS == shard for ref in proof.unread):
        message = f"the cells of shard {shard} have other turns than its frames"
        proof.found("journal.orphan", message, shard=shard)


def verify_rows(proof: Proof) -> None:
    """Nobody wrote meanwhile: the rows of reviews and names are those that turns led to."""
    rows: dict[Any, Any] = {}
    made: dict[Any, Any] = {**proof.reviews, **proof.published}
    for tenant, kept in proof.dispositions.items():
        for each in proof.store.reviews(tenant):
            rows[tenant, each.ref, each.step] = (each.cell, *SAID(each), each.show)
        for named in proof.store.published(tenant):
            rows[tenant, named.name, named.version] = (named.definition, named.at)
        disposed = proof.store.dispositions(tenant, DISPOSITIONS_MAX)
        found = sum(mix(position(each.shard, each.seq), each.entry.hash) for each in disposed)
        if len(disposed) < DISPOSITIONS_MAX and found != kept:
            proof.found("store.index", f"dispositions of {tenant} are not those in the frames")
    for key in sorted(rows.keys() | made.keys(), key=repr):
        if rows.get(key) != made.get(key) and key[1] not in proof.unread:
            code = "cell.review" if isinstance(key[1], int) else "store.published"
            proof.found(code, f"the row {key} is {rows.get(key)}, and follows as {made.get(key)}")
    proof.report.differences += proof.aside[:PROBLEMS_MAX]
