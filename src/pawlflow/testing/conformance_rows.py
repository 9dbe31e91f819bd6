"""Promises about what can be asked for: deadlines, calls, instances, reviews, definitions."""

from collections.abc import Callable
from typing import get_args, get_type_hints

from msgspec.structs import replace

from pawlflow.model.ids import Tenant, TimeMs
from pawlflow.store.port import (
    SHARDS,
    Filter,
    Found,
    Head,
    Place,
    Published,
    Review,
    Reviewed,
)
from pawlflow.testing.conformance_kit import ACME, Scribe, StoreTests, cell, digest

EVERY = tuple(range(SHARDS))
OTHER = Tenant("other")


class RowPromises(StoreTests):
    """Rows follow from the batches, and are found in the order that is promised."""

    def test_deadlines_come_earliest_first(self) -> None:
        """Cells with one, by (due_at, ref), page by page; equal deadlines are not skipped."""
        scribe = Scribe(self.store)
        times = (50, 20, 20, None, 40, 20)
        heads = [
            scribe.turn(cell(f"order-{n}"), shard=n, due_at=due) for n, due in enumerate(times)
        ]
        scribe.commit()
        wanted = sorted((head.due_at, head.ref) for head in heads if head.due_at is not None)
        found = paged(lambda last: self.store.due(EVERY, last, 2), due_of, (0, 0))
        assert [due_of(head) for head in found] == wanted
        assert found[0] in heads
        assert [head.shard for head in self.store.due([0, 2, 3], (0, 0), 10)] == [2, 0]

    def test_a_deadline_moves_with_its_cell(self) -> None:
        """Only the last one counts; a cell without is not due."""
        scribe = Scribe(self.store)
        scribe.turn(cell("order-1"), due_at=10)
        scribe.turn(cell("order-2"), due_at=20)
        scribe.commit()
        scribe.turn(cell("order-1"), due_at=30)
        scribe.turn(cell("order-2"), due_at=None)
        scribe.commit()
        assert [head.due_at for head in self.again().due(EVERY, (0, 0), 10)] == [30]

    def test_cells_in_flight_are_found_by_ref(self) -> None:
        """Those with calls, page by page, of these shards; a settled one is none."""
        scribe = Scribe(self.store)
        heads = [scribe.turn(cell(f"order-{n}"), shard=n % 3, calls=n % 2 + 1) for n in range(9)]
        heads.append(scribe.turn(cell("idle")))
        scribe.commit()
        scribe.turn(cell("order-4"), calls=0)
        scribe.commit()
        wanted = sorted(head.ref for head in heads if head.calls and head.cell.key != "order-4")
        found = paged(lambda last: self.store.in_flight(EVERY, last, 3), ref_of, 0)
        assert [head.ref for head in found] == wanted
        some = self.store.in_flight([1], 0, 100)
        assert [head.ref for head in some] == [ref for ref in wanted if ref % SHARDS == 1]

    def test_instances_come_newest_first(self) -> None:
        """Of one tenant, by age and then by ref, page by page; system cells are none."""
        scribe = Scribe(self.store)
        heads: list[Head] = []
        for round_ in range(3):  # a busy shard is far ahead of the others in its sequence
            scribe.now = TimeMs(1_000 + 10 * round_)
            shards = [0, 0, 0, 1] if round_ % 2 else [0, 2]
            names = (f"order-{round_}-{n}" for n in range(len(shards)))
            heads += [
                scribe.turn(cell(name), shard=at) for name, at in zip(names, shards, strict=True)
            ]
            scribe.commit()
        scribe.turn(cell("foreign", tenant=OTHER))
        scribe.turn(cell("$pool/1", workflow="$pool"))
        scribe.commit()
        wanted = sorted(heads, key=place_of, reverse=True)
        found = paged(
            lambda last: self.store.instances(Filter(tenant=ACME, limit=3, before=last)),
            place_of,
            None,
        )
        assert found == wanted
        assert [head.ref for head in found] != sorted((head.ref for head in heads), reverse=True)
        assert len(self.store.instances(Filter(tenant=OTHER))) == 1
        assert self.store.instances(Filter(tenant=Tenant("nobody"))) == []

    def test_instances_are_filtered(self) -> None:
        """By workflow and by any of some states, as their last turn left them."""
        scribe = Scribe(self.store)
        plan = [("order", "running"), ("order", "failed"), ("bill", "failed"), ("bill", "done")] * 2
        for number, (workflow, state) in enumerate(plan):
            scribe.turn(cell(f"i-{number}", workflow=workflow), state=state)
        scribe.commit()
        scribe.turn(cell("i-0"), state="failed")
        scribe.commit()

        def keys(**wanted: object) -> list[str]:
            heads = self.store.instances(Filter(tenant=ACME, **wanted))  # type: ignore[arg-type]
            return [head.cell.key for head in heads]

        assert keys(states=["failed"]) == ["i-6", "i-5", "i-2", "i-1", "i-0"]
        assert keys(states=["running", "done"]) == ["i-7", "i-4", "i-3"]
        assert keys(workflow="bill") == ["i-7", "i-6", "i-3", "i-2"]
        assert keys(workflow="bill", states=["failed"], limit=1) == ["i-6"]
        assert keys(workflow="bill", states=["running"]) == []
        assert keys(states=["failed"], before=place_of(scribe.cells[min(scribe.cells)])) == []

    def test_reviews_are_open_until_they_are_not(self) -> None:
        """Oldest first, of one tenant; a later one for the same step replaces the first."""
        scribe = Scribe(self.store)
        one, two = scribe.turn(cell("order-1")), scribe.turn(cell("order-2"))
        foreign = scribe.turn(cell("order-1", tenant=OTHER))
        young = review(one, "gate", 30)
        old = replace(review(two, "gate", 10), role="boss", due_at=TimeMs(99), show=b"shown")
        scribe.commit(reviews=[young, old, review(one, "check", 20), review(foreign, "gate", 1)])
        assert self.store.reviews(ACME) == [old, review(one, "check", 20), young]
        newer = replace(young, since=TimeMs(40), kind="escalation", claimed_by="ann")
        scribe.commit(fences=[0], reviews=[newer, Reviewed(two.ref, "gate"), Reviewed(9, "none")])
        assert self.again().reviews(ACME) == [review(one, "check", 20), newer]

    def test_reviews_are_of_every_kind(self) -> None:
        """A gate, an escalation, a budget, an instance that was put aside: all are kept."""
        scribe = Scribe(self.store)
        one = scribe.turn(cell("order-1"))
        kinds = get_args(get_type_hints(Review)["kind"])
        rows = [replace(review(one, f"s{n}", n), kind=kind) for n, kind in enumerate(kinds)]
        scribe.commit(reviews=rows)
        assert [each.kind for each in self.store.reviews(ACME)] == list(kinds)
        scribe.commit(fences=[0], reviews=[Reviewed(one.ref, each.step) for each in rows])
        assert self.again().reviews(ACME) == []

    def test_definitions_are_known_by_their_hash(self) -> None:
        """Written once: the first bytes stay. Unknown ones are left out."""
        scribe = Scribe(self.store)
        scribe.commit(fences=[0], definitions=[(digest(1), b"one"), (digest(2), b"two")])
        scribe.commit(fences=[0], definitions=[(digest(1), b"one")])
        found = self.again().definitions([digest(2), digest(1), digest(3)])
        assert found == {digest(1): b"one", digest(2): b"two"}

    def test_published_definitions_come_by_name_newest_first(self) -> None:
        """Every version of every name of a tenant."""
        scribe = Scribe(self.store)
        rows = [published("b", 1), published("a", 1), published("b", 10), published("b", 9)]
        scribe.commit(fences=[0], published=[*rows, replace(rows[0], tenant=OTHER)])
        assert self.again().published(ACME) == [rows[1], rows[2], rows[3], rows[0]]
        assert len(self.store.published(OTHER)) == 1

    def test_dispositions_come_newest_first(self) -> None:
        """With their place, of one tenant, whether or not their cell exists."""
        scribe = Scribe(self.store)
        head = scribe.turn(cell("order-1"), shard=2)
        first = scribe.refuse(cell("order-1"), shard=2, ref=head.ref, code="a")
        scribe.commit()
        second = scribe.refuse(cell("nobody"), shard=3, code="b")
        scribe.refuse(cell("order-1", tenant=OTHER), shard=3, code="c")
        scribe.commit()
        wanted = [Found(shard=3, seq=1, entry=second), Found(shard=2, seq=2, entry=first)]
        assert self.store.dispositions(ACME, 10) == wanted
        assert self.again().dispositions(ACME, 1) == wanted[:1]
        assert len(self.store.dispositions(OTHER, 10)) == 1
        address = (ACME, head.cell.key)
        assert [entry.number for entry in self.store.load([address])[address].entries] == [1]

    def test_every_cell_is_listed_by_ref(self) -> None:
        """Of all tenants, system cells too."""
        scribe = Scribe(self.store)
        made = [scribe.turn(cell(f"order-{n}", tenant=f"t{n % 2}"), shard=n % 5) for n in range(9)]
        made.append(scribe.turn(cell("pool-1", workflow="$pool")))
        scribe.commit()
        assert list(self.store.refs()) == sorted(made, key=ref_of)


def paged(
    read: Callable[..., list[Head]], key: Callable[[Head], object], last: object
) -> list[Head]:
    """Everything that is read page by page, each from where the last one ended."""
    found: list[Head] = []
    while page := read(last):
        found += page
        last = key(page[-1])
    return found


def place_of(head: Head) -> Place:
    """What instances are ordered by."""
    return (head.created_at, head.ref)


def ref_of(head: Head) -> int:
    """What cells are ordered by."""
    return head.ref


def due_of(head: Head) -> tuple[int, int]:
    """What deadlines are ordered by."""
    assert head.due_at is not None
    return (head.due_at, head.ref)


def review(head: Head, step: str, since: int) -> Review:
    """A gate that is open."""
    return Review(
        ref=head.ref,
        cell=head.cell,
        step=step,
        kind="approval",
        role=None,
        since=TimeMs(since),
        due_at=None,
    )


def published(name: str, version: int) -> Published:
    """A definition under its name."""
    return Published(
        tenant=ACME, name=name, version=version, definition=digest(version), at=TimeMs(version)
    )
