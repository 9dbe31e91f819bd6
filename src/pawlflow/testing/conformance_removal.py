"""Promises about cells that are kept for a time, and removed: the hashes stay, the bytes go."""

from msgspec.structs import replace

from pawlflow.model.ids import TimeMs
from pawlflow.store.check import check_chain
from pawlflow.store.port import (
    SHARDS,
    Attributes,
    Blob,
    Filter,
    Found,
    Head,
    Review,
    Snapshot,
    Store,
    Term,
)
from pawlflow.testing.conformance_journal import appending, read_frames, stale
from pawlflow.testing.conformance_kit import ACME, Scribe, StoreTests, cell, digest, refused

EVERY = tuple(range(SHARDS))
ORDER, OTHER = cell("order-1"), cell("order-2")
ADDRESS = (ORDER.tenant, ORDER.key)
FIRST = (-1, 0)
OVER = TimeMs(9_000)


class RemovalPromises(StoreTests):
    """A cell goes in one batch with the entry that says so; nothing but hashes is left of it."""

    def _filled(self) -> tuple[Scribe, Head, Head]:
        """Two closed cells with something of everything; what one mentions the other may too."""
        scribe = Scribe(self.store)
        scribe.turn(ORDER, data=b"one", state="running")
        other = scribe.turn(OTHER, data=b"kept", state="completed", closed_at=TimeMs(1_000))
        head = scribe.turn(
            ORDER, data=b"two", state="completed", closed_at=TimeMs(1_000), due_at=7, calls=1
        )
        scribe.refuse(ORDER, ref=head.ref, code="no")
        scribe.refuse(OTHER, ref=other.ref, code="no")
        mentioned = [Blob(head.ref, b"own", b"large"), Blob(head.ref, b"shared", b"both")]
        scribe.commit(
            attributes=[
                Attributes(head.ref, {"repo": "pawl", "n": 1}),
                Attributes(other.ref, {"repo": "pawl"}),
            ],
            reviews=[question(head), question(other)],
            blobs=[*mentioned, Blob(other.ref, b"shared", b"both")],
            snapshots=[Snapshot(ref=head.ref, turn=2, hash=head.hash, data=b"s", beside=b"")],
            expiring=[(head.ref, OVER), (other.ref, OVER)],
        )
        return scribe, head, other

    def _removed(self) -> tuple[Scribe, Head, Head]:
        scribe, head, other = self._filled()
        scribe.remove(head)
        scribe.commit(removed=[head])
        return scribe, head, other

    def test_nothing_of_a_removed_cell_can_be_asked_for(self) -> None:
        """No head, turn, row or index leads to it; of all others everything is as it was."""
        _, head, other = self._removed()
        self._check_gone(self.store, head, other)
        self._check_gone(self.again(), head, other)

    def _check_gone(self, store: Store, head: Head, other: Head) -> None:
        assert store.load([ADDRESS]) == {}
        assert store.story(ADDRESS) is None
        assert list(store.refs()) == [other]
        assert store.instances(Filter(tenant=ACME)) == [other]
        found = Filter(tenant=ACME, where=[[Term("repo", "==", ("pawl",))]])
        assert store.instances(found) == [other]
        assert store.instances(Filter(tenant=ACME, where=[[Term("n", "==", (1,))]])) == []
        assert store.attributes([head.ref, other.ref]) == {other.ref: {"repo": "pawl"}}
        assert store.attribute_names(ACME) == ["repo"]
        assert [each.ref for each in store.reviews(ACME)] == [other.ref]
        assert (store.due(EVERY, FIRST, 9), store.in_flight(EVERY, 0, 9)) == ([], [])
        assert store.expiring(EVERY, FIRST, 9) == [(OVER, other)]
        assert [each.entry.ref for each in store.dispositions(ACME, 9)] == [other.ref]
        assert [len(store.beside(each.ref)) for each in (head, other)] == [2, 1]

    def test_hashes_stay_and_bytes_go(self) -> None:
        """Every chain and root is the same; of the entries of the cell only the hashes are left."""
        scribe, head, _ = self._filled()
        before = read_frames(self.store, 0)
        fact = scribe.remove(head)
        scribe.commit(removed=[head])
        store = self.again()
        after = read_frames(store, 0)
        check_chain(after)
        assert [each.frame for each in after[:-1]] == [each.frame for each in before]
        for was, now in zip(before[0].entries, after[0].entries, strict=True):
            bare = replace(was, data=b"", beside=b"")
            assert now == (bare if was.ref == head.ref else was)
        assert list(after[-1].entries) == [fact]

    def test_what_removed_a_cell_is_on_the_record(self) -> None:
        """It is found by the id, and is no refusal; of several lives the last one counts."""
        scribe, head, _ = self._filled()
        assert self.store.removed(ADDRESS) is None
        fact = scribe.remove(head)
        scribe.commit(removed=[head])
        assert self.store.removed(ADDRESS) == Found(shard=0, seq=6, entry=fact)
        assert self.store.removed((ACME, OTHER.key)) is None
        again = scribe.turn(ORDER)
        scribe.commit()
        assert self.store.load([ADDRESS])[ADDRESS].head == again
        last = scribe.remove(again)
        scribe.commit(removed=[again])
        store = self.again()
        assert store.removed(ADDRESS) == Found(shard=0, seq=8, entry=last)
        assert [each.entry for each in store.beside(head.ref)][-1] == fact

    def test_a_blob_goes_with_the_last_who_mentions_it(self) -> None:
        """Shared ones stay as they are; one that is gone is brought anew by the next who has it."""
        scribe, head, other = self._filled()
        scribe.remove(head)
        third = scribe.turn(cell("order-3"))
        anew = [Blob(third.ref, b"own", b"anew"), Blob(third.ref, b"shared", b"anew")]
        scribe.commit(removed=[head], blobs=anew)
        found = self.store.load([(ACME, OTHER.key), (ACME, third.cell.key)])
        assert found[ACME, OTHER.key].blobs == {b"shared": b"both"}
        assert found[ACME, third.cell.key].blobs == {b"own": b"anew", b"shared": b"both"}
        for gone in (other, third):
            scribe.remove(gone)
        scribe.commit(removed=[other, third])
        fourth = scribe.turn(cell("order-4"))
        scribe.commit(blobs=[Blob(fourth.ref, b"shared", b"again")])
        address = (ACME, fourth.cell.key)
        assert self.again().load([address])[address].blobs == {b"shared": b"again"}

    def test_only_an_owner_removes(self) -> None:
        """A stale fence removes nothing."""
        scribe, head, other = self._filled()
        scribe.remove(head)
        batch = scribe.batch(removed=[head])
        before = read_frames(self.store, 0)
        self.store.claim([0])
        assert stale(self.store, batch) == (0,)
        assert self.store.load([ADDRESS])[ADDRESS].head == head
        assert (read_frames(self.store, 0), self.store.removed(ADDRESS)) == (before, None)
        assert set(self.store.attributes([head.ref, other.ref])) == {head.ref, other.ref}

    def test_a_removal_must_be_told_and_be_true(self) -> None:
        """One entry says so, of this cell at this turn, and the batch writes nothing else of it."""
        scribe, head, other = self._filled()
        before = read_frames(self.store, 0)
        unfit = [scribe.batch(fences=[0], removed=[head])]
        scribe.remove(head)
        unfit += [
            scribe.batch(),
            scribe.batch(removed=[head, head]),
            scribe.batch(removed=[head, other]),
            scribe.batch(removed=[head], heads=[head]),
            scribe.batch(removed=[head], blobs=[Blob(head.ref, b"a", b"b")]),
            scribe.batch(removed=[head], expiring=[(head.ref, OVER)]),
        ]
        scribe.remove(head)
        unfit.append(scribe.batch(removed=[head]))
        scribe.forget()
        for said in ({"hash": digest(1)}, {"turn": 1}, {"cell": OTHER}, {"ref": other.ref}):
            scribe.remove(head, **said)
            unfit.append(scribe.batch(removed=[head]))
            scribe.forget()
        for wrong in (replace(head, hash=digest(1)), replace(head, ref=head.ref + 7 * SHARDS)):
            scribe.remove(wrong)
            unfit.append(scribe.batch(removed=[wrong]))
            scribe.forget()
        for batch in unfit:
            refused("store.batch", appending(self.store, batch))
        assert self.store.load([ADDRESS])[ADDRESS].head == head
        assert read_frames(self.store, 0) == before

    def test_an_id_is_free_once_its_cell_is_gone(self) -> None:
        """In the very batch that removes it, and later; a new cell has nothing of the old one."""
        scribe, head, _ = self._filled()
        scribe.remove(head)
        fresh = scribe.turn(ORDER, data=b"anew")
        assert fresh.ref != head.ref
        scribe.commit(removed=[head])
        image = self.again().load([ADDRESS])[ADDRESS]
        assert (image.head, len(image.entries)) == (fresh, 1)
        assert (image.snapshot, image.blobs) == (None, {})
        assert self.store.attributes([fresh.ref]) == {}

    def test_cells_expire_in_order(self) -> None:
        """By time, then by ref; of some shards, in pages, and the last word counts."""
        scribe = Scribe(self.store)
        cells = [cell(f"order-{n}") for n in range(6)]
        heads = [scribe.turn(each, shard=n % 3, closed_at=1) for n, each in enumerate(cells)]
        untils = [30, 10, 20, 10, 10, 40]
        rows = [(head.ref, TimeMs(until)) for head, until in zip(heads, untils, strict=True)]
        scribe.commit(expiring=rows)
        assert times(self.store, EVERY) == sorted((until, ref) for ref, until in rows)
        assert times(self.store, [1]) == sorted((u, r) for r, u in rows if r % SHARDS == 1)
        first = times(self.store, EVERY)[1]
        assert times(self.again(), EVERY, first, 2) == sorted((u, r) for r, u in rows)[2:4]
        scribe.store = self.store
        scribe.heads = {head.shard: head for head in self.store.claim()}
        scribe.commit(fences=[0], expiring=[(heads[0].ref, TimeMs(5))])
        assert times(self.store, EVERY, limit=1) == [(5, heads[0].ref)]

    def test_what_lies_beside_a_cell_is_found_by_it(self) -> None:
        """Its dispositions, oldest first, wherever they lie among those of others."""
        scribe = Scribe(self.store)
        head = scribe.turn(ORDER)
        codes = []
        for number in range(3):
            scribe.refuse(OTHER)
            entry = scribe.refuse(ORDER, ref=head.ref, code=f"no.{number}")
            codes.append(entry)
            scribe.commit()
        found = self.again().beside(head.ref)
        assert [each.entry for each in found] == codes
        assert [(each.shard, each.seq) for each in found] == [(0, 3), (0, 5), (0, 7)]
        assert self.store.beside(head.ref + SHARDS) == []

    def test_a_frame_is_found_by_what_it_holds(self) -> None:
        """Whole, for any of its sequence numbers; none for those to come."""
        scribe = Scribe(self.store)
        written = []
        for number in range(3):
            for _ in range(number + 1):
                scribe.turn(ORDER, shard=3)
                scribe.turn(cell("elsewhere"), shard=5)
            written.append(scribe.commit().frames[0])
        store = self.again()
        for each in written:
            for seq in range(each.frame.first, each.frame.last + 1):
                found = store.frame(3, seq)
                assert found is not None
                assert replace(found, entries=tuple(found.entries)) == each
        assert (store.frame(3, 0), store.frame(3, 7), store.frame(4, 1)) == (None, None, None)


def question(head: Head) -> Review:
    """Somebody is asked about a cell."""
    since = TimeMs(1)
    return Review(
        ref=head.ref,
        cell=head.cell,
        step="gate/late",
        kind="effect.orphaned",
        role=None,
        since=since,
        due_at=None,
    )


def times(
    store: Store,
    shards: tuple[int, ...] | list[int],
    after: tuple[int, int] = FIRST,
    limit: int = 9,
) -> list[tuple[int, int]]:
    """Until when which cells are kept."""
    return [(until, head.ref) for until, head in store.expiring(shards, after, limit)]
