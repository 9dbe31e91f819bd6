"""The SQLite store does what the reference does, whatever is done to both."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from pawlflow.model.ids import Tenant
from pawlflow.store.memory import MemoryStore
from pawlflow.store.port import Blob, Filter, Review, Reviewed, Snapshot, StoreError, Taken
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing.conformance_kit import Scribe, cell, digest, letter

EVERY = range(32)
TENANTS = [Tenant("acme"), Tenant("other")]
CELLS = [
    cell(f"order-{n}", tenant=TENANTS[n % 2], workflow=["order", "bill", "$pool"][n % 3])
    for n in range(6)
]
small = st.integers(0, 5)
actions = st.one_of(
    st.tuples(st.just("turn"), small, small, small),
    st.tuples(st.just("refuse"), small, small),
    st.tuples(st.just("mail"), small, small),
    st.tuples(st.just("take"), small, st.sampled_from(["", "no"])),
    st.tuples(st.just("review"), small, small),
    st.tuples(st.just("blob"), small, small),
    st.tuples(st.just("snapshot"), small),
    st.tuples(st.just("commit"), st.booleans()),
    st.tuples(st.just("claim"), small),
)


class Writer:
    """A scribe that follows a script; what a store refuses is part of the outcome."""

    def __init__(self, store):
        self.store = store
        self.scribe = Scribe(store)
        self.rows = {}
        self.outcomes = []

    def follow(self, script):
        """Do everything in order."""
        for name, *values in [*script, ("commit", True)]:
            getattr(self, name)(*values)

    def turn(self, who, due, calls):
        """A turn of some cell in its shard."""
        state = ["running", "failed"][calls % 2]
        self.scribe.turn(CELLS[who], shard=who, due_at=due or None, calls=calls, state=state)

    def refuse(self, who, code):
        """A disposition."""
        self.scribe.refuse(CELLS[who], shard=who, code=str(code))

    def mail(self, who, key):
        """Mail, posted now or with the batch."""
        each = letter(CELLS[who], shard=who, key=str(key) if key else None)
        if key % 2:
            self.rows.setdefault("mail", []).append(each)
        else:
            self.outcomes.append(self.store.post([each]))

    def take(self, number, code):
        """Mail that may or may not wait."""
        self.rows.setdefault("taken", []).append(Taken(number + 1, code))

    def review(self, who, step):
        """A review is opened or closed."""
        head = self.known(who)
        opened = Review(
            ref=head.ref,
            cell=head.cell,
            step=str(step // 2),
            kind="approval",
            role=None,
            since=step,
            due_at=None,
        )
        each = opened if step % 2 else Reviewed(head.ref, str(step // 2))
        self.rows.setdefault("reviews", []).append(each)

    def blob(self, who, number):
        """A large payload."""
        each = Blob(self.known(who).ref, b"%d" % number, b"data %d" % number)
        self.rows.setdefault("blobs", []).append(each)

    def snapshot(self, who):
        """The state of a cell, as far as it is known; it may be of another history."""
        head = self.known(who)
        row = Snapshot(ref=head.ref, turn=head.turn, hash=head.hash, data=b"s", beside=b"")
        self.rows.setdefault("snapshots", []).append(row)

    def known(self, who):
        """The head of a cell, staged or not; one of nowhere if it has none."""
        found = [head for head in self.scribe._all() if head.cell == CELLS[who]]
        return found[0] if found else Scribe(MemoryStore()).turn(CELLS[who], shard=31)

    def commit(self, fence_all):
        """Append what has gathered, or be refused and drop it."""
        try:
            self.scribe.commit(fences=EVERY if fence_all else (), **self.rows)
            self.outcomes.append("fine")
        except StoreError as trouble:
            self.outcomes.append(trouble.code)
            self.scribe.forget()
        self.rows = {}

    def claim(self, shard):
        """Somebody else comes in between."""
        self.store.claim([shard])


def seen(store):
    """Everything a store can be asked."""
    addresses = [(each.tenant, each.key) for each in CELLS]
    images = store.load(addresses)
    return {
        "heads": store.heads(EVERY),
        "mail": store.mail(EVERY, 0, 1_000),
        "answers": [store.answer(mail) for mail in range(30)],
        "load": {key: (image.head, image.snapshot) for key, image in images.items()},
        "turns": {key: (list(image.entries), image.blobs) for key, image in images.items()},
        "stories": [
            None if (story := store.story(key)) is None else list(story.entries)
            for key in addresses
        ],
        "due": store.due(EVERY, (0, 0), 100),
        "calls": store.in_flight([0, 2, 3], 0, 100),
        "all": list(store.refs()),
        "frames": [[(w.frame, tuple(w.entries)) for w in store.frames(n)] for n in range(6)],
        "instances": [store.instances(Filter(tenant=tenant, limit=2)) for tenant in TENANTS],
        "failed": store.instances(Filter(tenant=TENANTS[0], states=["failed"])),
        "reviews": [store.reviews(tenant) for tenant in TENANTS],
        "dispositions": [store.dispositions(tenant, 3) for tenant in TENANTS],
        "definitions": store.definitions([digest(1)]),
    }


@given(st.lists(actions, max_size=40))
def test_both_stores_answer_alike(script):
    """Every outcome, and everything that can be asked afterwards, is the same."""
    with TemporaryDirectory() as folder:
        sqlite = SqliteStore(Path(folder) / "pawl.db")
        try:
            writers = [Writer(MemoryStore()), Writer(sqlite)]
            for writer in writers:
                writer.follow(script)
            memory, file = writers
            assert memory.outcomes == file.outcomes
            assert seen(memory.store) == seen(file.store)
            assert sqlite.integrity() == []
        finally:
            with suppress(StoreError):
                sqlite.close()
