"""Promises about claiming, fencing, appending, and reading cells and frames back."""

from collections.abc import Callable

from msgspec.structs import replace

from pawlflow.model.ids import Digest, TimeMs
from pawlflow.model.journal import shard_genesis
from pawlflow.store.port import (
    SHARDS,
    Batch,
    Blob,
    Fence,
    Filter,
    FrameWrite,
    Review,
    Snapshot,
    Store,
    StoreConflictError,
    Taken,
)
from pawlflow.testing.conformance_kit import (
    ACME,
    Scribe,
    StoreTests,
    cell,
    digest,
    letter,
    refused,
)

EVERY = tuple(range(SHARDS))
ORDER = cell("order-1")
ADDRESS = (ORDER.tenant, ORDER.key)


class JournalPromises(StoreTests):
    """Everything durable goes through `append`, and comes back as it went in."""

    def test_a_new_store_has_every_shard_at_its_beginning(self) -> None:
        """32 shards, nothing in them, each chained to its own genesis."""
        heads = self.store.heads(EVERY)
        assert [head.shard for head in heads] == list(EVERY)
        assert all((head.seq, head.now) == (0, 0) for head in heads)
        assert [head.hash for head in heads] == [shard_genesis(shard) for shard in EVERY]
        assert list(self.store.refs()) == []

    def test_claiming_raises_epochs(self) -> None:
        """Each claim gives a higher epoch, to these shards alone, and lasts."""
        first = {head.shard: head.epoch for head in self.store.claim()}
        second = {head.shard: head.epoch for head in self.store.claim([3, 7])}
        assert set(second) == {3, 7}
        assert all(second[shard] > first[shard] for shard in second)
        after = {head.shard: head.epoch for head in self.again().claim()}
        assert all(after[shard] > {**first, **second}[shard] for shard in EVERY)

    def test_an_older_owner_is_fenced(self) -> None:
        """Who claims later owns; what the former owner appends is refused as a whole."""
        former = Scribe(self.store)
        former.turn(ORDER)
        batch = former.batch()
        self.store.claim([0])
        assert stale(self.store, batch) == (0,)
        assert self.store.load([ADDRESS]) == {}
        assert self.store.heads([0])[0].seq == 0

    def test_a_batch_is_written_once(self) -> None:
        """Its fence is stale after it: the same batch again changes nothing."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        batch = scribe.commit()
        before = self.store.heads(EVERY)
        assert stale(self.store, batch) == (0,)
        assert self.store.heads(EVERY) == before

    def test_a_stale_fence_anywhere_refuses_everything(self) -> None:
        """Nothing of a batch is there if one of its shards has another owner."""
        scribe = Scribe(self.store)
        [mail] = self.store.post([letter(ORDER)])
        head = scribe.turn(ORDER)
        scribe.turn(cell("order-2"), shard=5)
        batch = self._full_batch(scribe, head.ref, mail)
        self.store.claim([5])
        assert stale(self.store, batch) == (5,)
        self._check_nothing(mail)

    def test_a_batch_that_does_not_fit_is_refused_as_a_whole(self) -> None:
        """The last thing checked may be the wrong one: still nothing was written."""
        scribe = Scribe(self.store)
        [mail] = self.store.post([letter(ORDER)])
        head = scribe.turn(ORDER)
        batch = self._full_batch(scribe, head.ref, mail)
        missing = replace(batch, taken=[*batch.taken, Taken(mail + 1_000)])
        refused("store.batch", lambda: self.store.append(missing))
        self._check_nothing(mail)
        self.store.append(batch)
        assert self.store.mail(EVERY, mail, 10)[0].cell == cell("order-9")

    def _full_batch(self, scribe: Scribe, ref: int, mail: int) -> Batch:
        review = Review(
            ref=ref,
            cell=ORDER,
            step="gate",
            kind="approval",
            role=None,
            since=TimeMs(1),
            due_at=None,
        )
        return scribe.batch(
            reviews=[review],
            definitions=[(digest(1), b"definition")],
            blobs=[Blob(ref, b"addr", b"data")],
            snapshots=[],
            mail=[letter(cell("order-9"))],
            taken=[Taken(mail, "refused.code", "detail")],
        )

    def _check_nothing(self, mail: int) -> None:
        store = self.store
        assert [head.seq for head in store.heads(EVERY)] == [0] * SHARDS
        assert list(store.refs()) == []
        assert [each.id for each in store.mail(EVERY, 0, 10)] == [mail]
        assert store.answer(mail) is None
        assert store.reviews(ACME) == []
        assert store.definitions([digest(1)]) == {}
        assert list(store.frames(0)) == []

    def test_a_frame_must_follow_on_the_last_one(self) -> None:
        """Sequence, chain, size, epoch and time are those of the head it extends."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        scribe.commit()
        scribe.turn(ORDER)
        batch = scribe.batch()
        [written] = batch.frames
        frame = written.frame
        unfit = [
            replace(written, frame=replace(frame, first=3, last=3)),
            replace(written, frame=replace(frame, prev=digest(9))),
            replace(written, frame=replace(frame, last=3)),
            replace(written, entries=()),
            replace(written, epoch=written.epoch + 1),
            replace(written, now=TimeMs(written.now - 1)),
        ]
        for each in unfit:
            wrong = replace(batch, frames=[each])
            refused("store.batch", appending(self.store, wrong))
        self.store.append(batch)

    def test_a_frame_needs_its_fence(self) -> None:
        """One frame for a fenced shard, and no more."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        batch = scribe.batch()
        unfit = [
            replace(batch, fences=()),
            replace(batch, fences=[*batch.fences, *batch.fences]),
            replace(batch, frames=[*batch.frames, *batch.frames]),
        ]
        for each in unfit:
            refused("store.batch", appending(self.store, each))

    def test_every_turn_moves_its_head(self) -> None:
        """A turn without the head that follows from it would be lost to every question."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        batch = scribe.batch()
        [head] = batch.heads
        unfit = [(), (head, head), (replace(head, turn=2),), (replace(head, hash=digest(1)),)]
        for heads in unfit:
            refused("store.batch", appending(self.store, replace(batch, heads=heads)))

    def test_a_head_may_change_without_a_turn(self) -> None:
        """A cell is put aside: its row says so, its history stays."""
        scribe = Scribe(self.store)
        head = scribe.turn(ORDER, due_at=5, calls=1)
        scribe.commit()
        aside = replace(head, quarantined=True, due_at=None, calls=0)
        scribe.commit(fences=[0], heads=[aside])
        assert self.store.load([ADDRESS])[ADDRESS].head == aside
        unknown = replace(aside, ref=head.ref + SHARDS, cell=cell("order-2"))
        refused("store.batch", lambda: scribe.commit(fences=[0], heads=[unknown]))
        assert [each.ref for each in self.store.refs()] == [head.ref]

    def test_an_id_is_unique_in_its_tenant(self) -> None:
        """The same id names one cell in a tenant, whatever its workflow, and another elsewhere."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        scribe.turn(cell("order-1", tenant="other"))
        scribe.commit()
        scribe.turn(cell("order-1", workflow="invoice"), shard=1)
        refused("store.batch", scribe.commit)
        assert len(list(self.store.refs())) == 2

    def test_heads_tell_where_the_last_batch_left_them(self) -> None:
        """Sequence, hash, time, and the id of the batch: what an unknown outcome is settled by."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        scribe.turn(ORDER)
        scribe.now = TimeMs(5_000)
        batch = scribe.commit()
        [head] = self.store.heads([0])
        assert (head.seq, head.now, head.batch) == (2, 5_000, batch.id)
        assert head.hash == batch.frames[0].frame.hash
        assert self.again().heads([0]) == [head]

    def test_an_acknowledgement_needs_its_fence(self) -> None:
        """Mail is taken without a turn only by who owns its shard; the batch is remembered."""
        scribe = Scribe(self.store)
        [mail] = self.store.post([letter(ORDER)])
        taking = scribe.batch(fences=[0], taken=[Taken(mail)])
        self.store.claim([0])
        assert stale(self.store, taking) == (0,)
        assert len(self.store.mail(EVERY, 0, 10)) == 1
        owner = Scribe(self.store)
        batch = owner.commit(fences=[0], taken=[Taken(mail)])
        assert self.store.mail(EVERY, 0, 10) == []
        [head] = self.store.heads([0])
        assert (head.seq, head.batch) == (0, batch.id)

    def test_a_fence_must_be_at_the_head(self) -> None:
        """The right epoch at another sequence is stale too."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        scribe.commit()
        batch = scribe.batch(fences=[0])
        ahead = replace(batch, fences=[Fence(0, batch.fences[0].epoch, 2)])
        assert stale(self.store, ahead) == (0,)

    def test_cells_come_back_as_they_were_written(self) -> None:
        """Head, turns and blobs of those that exist; others are left out."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER, data=b"one")
        head = scribe.turn(ORDER, data=b"two", state="waiting", due_at=9, started_at=3, version=4)
        entries = scribe.batch().frames[0].entries
        scribe.commit(blobs=[Blob(head.ref, b"addr", b"large")])
        found = self.store.load([ADDRESS, (ACME, cell("nobody").key)])
        assert list(found) == [ADDRESS]
        image = found[ADDRESS]
        assert image.head == head
        assert list(image.entries) == list(entries)
        assert (image.snapshot, image.blobs) == (None, {b"addr": b"large"})
        again = self.again().load([ADDRESS])[ADDRESS]
        assert (again.head, list(again.entries)) == (head, list(entries))

    def test_turns_of_many_batches_come_back_in_order(self) -> None:
        """A cell's history is whole, however its turns lay between those of others."""
        scribe = Scribe(self.store)
        for number in range(20):
            scribe.turn(ORDER, data=b"%d" % number)
            scribe.turn(cell(f"other-{number}"), shard=number % 4)
            scribe.commit()
        image = self.store.load([ADDRESS])[ADDRESS]
        assert [entry.number for entry in image.entries] == list(range(1, 21))
        assert [entry.data for entry in image.entries] == [b"%d" % number for number in range(20)]

    def test_a_snapshot_stands_for_the_turns_before_it(self) -> None:
        """`load` gives the last one and the turns after it; `story` gives every turn and none."""
        scribe = Scribe(self.store)
        heads = [scribe.turn(ORDER, data=b"%d" % number) for number in range(3)]
        scribe.commit(snapshots=[snapshot(heads[0].ref, 1, heads[0].hash)])
        heads.append(scribe.turn(ORDER))
        last = snapshot(heads[0].ref, 2, heads[1].hash)
        scribe.commit(snapshots=[last])
        image = self.store.load([ADDRESS])[ADDRESS]
        assert image.snapshot == last
        assert [entry.number for entry in image.entries] == [3, 4]
        story = self.store.story(ADDRESS)
        assert story is not None
        assert story.snapshot is None
        assert [entry.number for entry in story.entries] == [1, 2, 3, 4]
        assert self.store.story((ACME, cell("nobody").key)) is None

    def test_a_story_goes_on_where_it_was_left(self) -> None:
        """The turns after a number, with the head of now; a number to come has none after it."""
        scribe = Scribe(self.store)
        last = [scribe.turn(ORDER, data=b"%d" % number) for number in range(4)][-1]
        scribe.commit(blobs=[Blob(last.ref, b"a", b"large")])
        for after in range(6):
            story = self.store.story(ADDRESS, after)
            assert story is not None
            assert story.head == self.store.load([ADDRESS])[ADDRESS].head
            assert [entry.number for entry in story.entries] == list(range(after + 1, 5))
            assert story.blobs == ({b"a": b"large"} if after < 4 else {})
            assert self.store.story((ACME, cell("nobody").key), after) is None

    def test_a_snapshot_of_another_history_is_not_used(self) -> None:
        """It is only a cache: the turns themselves are read instead."""
        scribe = Scribe(self.store)
        head = [scribe.turn(ORDER) for _ in range(3)][-1]
        for turn in (2, 9):
            scribe.commit(fences=[0], snapshots=[snapshot(head.ref, turn, digest(1))])
            image = self.store.load([ADDRESS])[ADDRESS]
            assert image.snapshot is None
            assert len(image.entries) == 3

    def test_blobs_are_kept_once_and_shared(self) -> None:
        """Two cells may mention one; who mentions it gets it, and nobody else."""
        scribe = Scribe(self.store)
        one, two, three = (scribe.turn(cell(f"order-{n}")).ref for n in (1, 2, 3))
        scribe.commit(blobs=[Blob(one, b"shared", b"data"), Blob(two, b"shared", b"data")])
        scribe.commit(fences=[0], blobs=[Blob(one, b"shared", b"data"), Blob(one, b"own", b"1")])
        found = self.again().load([(ACME, cell(f"order-{n}").key) for n in (1, 2, 3)])
        blobs = {image.head.ref: image.blobs for image in found.values()}
        assert blobs == {
            one: {b"shared": b"data", b"own": b"1"},
            two: {b"shared": b"data"},
            three: {},
        }

    def test_frames_come_back_whole_and_in_order(self) -> None:
        """Every frame of a shard from its beginning, turns and dispositions alike."""
        scribe = Scribe(self.store)
        written = []
        for number in range(3):
            scribe.turn(ORDER)
            scribe.refuse(ORDER, code=f"no.{number}")
            scribe.turn(cell("elsewhere"), shard=1)
            written.append(scribe.commit().frames[0])
        assert read_frames(self.store, 0) == written
        assert len(read_frames(self.store, 1)) == 3
        assert read_frames(self.store, 2) == []
        assert read_frames(self.again(), 0) == written

    def test_a_store_that_is_closed_is_closed(self) -> None:
        """Its shards may be owned by the next one, and it does nothing any more."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER)
        batch = scribe.batch()
        closed = self.store
        self.again().claim()
        closed.close()
        refused("store.closed", appending(closed, batch))
        refused("store.closed", lambda: closed.load([ADDRESS]))
        refused("store.closed", lambda: closed.instances(Filter(tenant=ACME)))
        refused("store.closed", lambda: closed.reviews(ACME))

    def test_facts_are_told(self) -> None:
        """What an operator asks first."""
        assert {"kind", "path", "version", "size", "owner"} <= self.store.facts().keys()


def appending(store: Store, batch: Batch) -> Callable[[], None]:
    """An append to be made later."""
    return lambda: store.append(batch)


def read_frames(store: Store, shard: int) -> list[FrameWrite]:
    """The frames of a shard; whether entries come as a list or a tuple is the store's choice."""
    return [replace(each, entries=tuple(each.entries)) for each in store.frames(shard)]


def stale(store: Store, batch: Batch) -> tuple[int, ...]:
    """The shards that make a batch stale."""
    trouble = refused("store.fenced", appending(store, batch))
    assert isinstance(trouble, StoreConflictError)
    return trouble.shards


def snapshot(ref: int, turn: int, sealed: Digest) -> Snapshot:
    """A snapshot after some turn."""
    return Snapshot(ref=ref, turn=turn, hash=sealed, data=b"state %d" % turn, beside=b"")
