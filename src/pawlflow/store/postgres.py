"""The PostgreSQL store: one round trip for a flush, and any number of processes that share it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import psycopg

from pawlflow.model.ids import Digest, Tenant
from pawlflow.store import postgres_errors as errors
from pawlflow.store.check import check_chain, moved
from pawlflow.store.find import find
from pawlflow.store.marks import MARK, mark_from
from pawlflow.store.port import (
    SHARDS,
    Address,
    Batch,
    CellImage,
    Filter,
    Found,
    FrameWrite,
    Head,
    Kept,
    Mail,
    Published,
    Ref,
    Review,
    Scalar,
    ShardHead,
    StoreError,
    Taken,
)
from pawlflow.store.postgres_cells import load_cells, load_story
from pawlflow.store.postgres_find import PostgresRows, read_attributes
from pawlflow.store.postgres_journal import check_ends, frame_with, frames_of, heads_from
from pawlflow.store.postgres_link import Connection, Link, connect, one_moment, run
from pawlflow.store.postgres_mail import Mailbox
from pawlflow.store.postgres_members import Members
from pawlflow.store.postgres_owner import Ownership, facts_of
from pawlflow.store.postgres_pokes import PostgresPokes, channel_of
from pawlflow.store.postgres_rows import (
    blobs,
    heard,
    ints,
    mail_from,
    may_be,
    review_from,
    said,
    sql_of,
)
from pawlflow.store.postgres_schema import bring_up, is_made
from pawlflow.store.postgres_sent import Sent
from pawlflow.store.postgres_url import Where, where_of
from pawlflow.store.postgres_write import flush_of, mail_values
from pawlflow.store.rows import Row, found_of, head_of, kept_of, shard_of
from pawlflow.store.sharing import View

T = TypeVar("T")
APPENDING: Final = "appending to table entry"
PAGE: Final = 1_000  # cells read at once
LOOK_MS: Final = 1_000  # between two looks into the mailbox of who cannot be poked
LAST: Final = "\U0010ffff"  # no key is above it


class Appending:
    """A batch under way to the server; `fileno` becomes readable when there is news of it."""

    def __init__(self, link: Link, send: Callable[[Connection], Sent]) -> None:
        """Send it."""
        self._link = link
        self._send = send
        self.sent = link.begin(APPENDING, send)

    def fileno(self) -> int:
        """What an event loop waits for."""
        return self.sent.db.fileno()

    def answered(self) -> bool:
        """Is its outcome known, as far as it can be? Waits for nothing."""
        return self.sent.look()

    def end(self) -> None:
        """Wait until it is durable. Raises what `append` raises."""
        self._link.end(APPENDING, self.sent, self._send)


class PostgresStore:
    """A store in a schema of a database; see `port.Store` for what each method promises."""

    def __init__(self, url: str) -> None:
        """Connect, make the schema if it is missing. Only `claim` makes this object an owner."""
        self._url = url
        self.where: Where = where_of(url)
        self.polite = self.where.free  # own it only if nobody else does
        self._sql = sql_of(self.where.schema)
        self._own = Ownership(self.where, self._sql)
        self._link = Link(self.where, self._rejoin)
        self._mailbox = Mailbox(self._sql)
        try:
            bring_up(self._link.first(), self.where)
        except BaseException:
            self._link.close(lambda _: None)
            raise

    def again(self) -> "PostgresStore":
        """Another handle on the same store, with a connection of its own."""
        return PostgresStore(self._url)

    # Owning

    def claim(self, shards: Sequence[int] | None = None) -> list[ShardHead]:
        """Raise the epochs. An older owner is fenced, unless this handle is polite."""
        wanted = list(range(SHARDS) if shards is None else shards)
        self._mailbox.forget()  # what waits for them may have come before anything that was read
        return self._link.read(
            "claiming table shard", lambda db: self._own.claim(db, wanted, polite=self.polite)
        )

    def _rejoin(self, db: Connection) -> None:
        """The connection was lost, and there is another one."""
        self._mailbox.forget()
        self._own.rejoin(db)

    def owner(self) -> str | None:
        """Who owns shards now, and is alive."""
        found = self._rows("node_alive")
        return found[0][1] if found else None

    def poke(self, shards: Iterable[int] = ()) -> bool:
        """Tell the owner of these shards, or of any, that there is mail. False if there is none."""
        self._rows("poke", channel_of(self.where), ",".join(map(str, shards)))
        return self.owner() is not None

    # Sharing

    def join(self, told: Callable[[View], bool]) -> Members:
        """Share the shards with other nodes; `told` hears, on a thread, who is there.

        The lease is renewed as long as `told` says that this is right.
        """
        self._own.shares = True
        return Members(self.where, self._own, told)

    def release(self, shards: Sequence[int]) -> None:
        """Let other nodes have these shards."""
        self._link.read("releasing table shard", lambda db: self._own.release(db, shards))

    def answers(self, mail: Sequence[int]) -> dict[int, Taken]:
        """What became of mail, as far as it no longer waits."""
        return {
            id: Taken(id) if code is None else Taken(id, heard(code) or "", heard(detail) or "")
            for id, waits, code, detail in self._rows("answers", ints(mail))
            if not waits
        }

    def listen(self) -> PostgresPokes | None:
        """Where the owner hears that there is mail; None if it has to look for itself."""
        return self._own.listen()

    # The journal

    def heads(self, shards: Sequence[int]) -> list[ShardHead]:
        """Where these shards stand."""
        return heads_from(self._rows("shards", ints(shards)), shards, self.where)

    def append(self, batch: Batch) -> None:
        """Write a batch: one statement, one round trip, one flush of the server."""
        send = self._flush(batch)
        self._link.write(APPENDING, lambda db: send(db).end())

    def append_begin(self, batch: Batch, noticed: Callable[[], object]) -> "Appending":
        """The same, without waiting: raises now or at its end what `append` raises.

        Whatever else is asked of this handle waits for the answer first; `noticed` is told then.
        """
        appending = Appending(self._link, self._flush(batch))
        appending.sent.noticed = noticed
        return appending

    def _flush(self, batch: Batch) -> Callable[[Connection], Sent]:
        """How a batch is sent."""
        gone = [head.ref for head in batch.removed]
        try:
            flush = flush_of(self._sql, batch, self.attributes(gone) if gone else None)
        except StoreError:
            known = self._rows("shards", ints([fence.shard for fence in batch.fences]))
            moved(batch, {row[0]: shard_of(row) for row in known})  # a stale fence says more
            raise
        text, own = flush.text(), self._own

        def send(db: Connection) -> Sent:
            return Sent(db, text, flush.signed(own.node if own.leased else None, own.mark))

        return send

    def post(self, mail: Sequence[Mail]) -> list[int]:
        """Put mail into the mailbox."""
        if not mail:
            return []
        text, values = f"SELECT {self._sql['post']}", mail_values(mail)
        [(ids,)] = self._link.write("posting to table mailbox", lambda db: run(db, text, values))
        return list(ids)

    def mail(self, shards: Sequence[int], after: int, limit: int) -> list[Mail]:
        """Mail of these shards, oldest first."""
        return self._looked(lambda db: self._mailbox.look(db, shards, after, limit))

    def mail_lines(self, shards: Sequence[int], after: int, limit: int) -> list[tuple[int, Tenant]]:
        """Whose mail it is."""
        return self._looked(lambda db: self._mailbox.lines(db, shards, after, limit))

    def _looked(self, work: Callable[[Connection], T]) -> T:
        """A look into the mailbox; who is not poked says here that it is alive."""
        if self._own.epochs and self._own.leased:
            self._rows("node_lease", self._own.node)
        return self._link.read("table mailbox", work)

    def mail_by_id(self, shards: Sequence[int], ids: Sequence[int]) -> list[Mail]:
        """Mail by its ids."""
        return [mail_from(row) for row in self._rows("mail_by_id", ints(ids), ints(shards))]

    def posted(self, tenant: Tenant, prefix: str, most: int) -> int:
        """Count keys that begin so, by their index."""
        found = self._plainly(lambda row: int(row[0]), "mail_posted", tenant, said(prefix), most)
        return found[0] if found else 0

    def answer(self, mail: int) -> Taken | None:
        """What became of mail."""
        [(waits, code, detail, last)] = self._rows("answer", mail)
        if waits or not 0 < mail <= last:
            return None
        return Taken(mail) if code is None else Taken(mail, heard(code) or "", heard(detail) or "")

    # Cells

    def load(self, cells: Sequence[Address]) -> dict[Address, CellImage]:
        """Cells from their snapshots on."""
        if not cells:
            return {}
        found, stale = self._link.read("table entry", lambda db: load_cells(db, self._sql, cells))
        for cell in stale:
            whole = self.story(cell)
            assert whole is not None
            found[cell] = whole
        return found

    def story(self, cell: Address, after: int = 0) -> CellImage | None:
        """A cell with every turn, or those after a number."""
        return self._link.read("table entry", lambda db: load_story(db, self._sql, cell, after))

    # Rows

    def definitions(self, hashes: Sequence[Digest]) -> dict[Digest, bytes]:
        """The definitions that are known."""
        return dict(self._rows("definitions", blobs(hashes))) if hashes else {}

    def published(self, tenant: Tenant) -> list[Published]:
        """By name, newest first."""
        return [
            Published(tenant=tenant, name=name, version=version, definition=definition, at=at)
            for tenant, name, version, definition, at in self._rows("published", tenant)
        ]

    def due(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Head]:
        """Cells with a deadline, earliest first."""
        return self._plainly(head_of, "heads_due", *after, ints(shards), limit)

    def in_flight(self, shards: Sequence[int], after: Ref, limit: int) -> list[Head]:
        """Cells with calls in flight, by ref."""
        return self._plainly(head_of, "heads_in_flight", after, ints(shards), limit)

    def instances(self, wanted: Filter) -> list[Head]:
        """Instances of a tenant, newest first."""

        def work(db: Connection) -> list[Head]:
            with one_moment(db, self._sql["plainly"]):
                return find(PostgresRows(db, self._sql, wanted), wanted)

        return self._link.read("tables cell and search", work)

    def attributes(self, refs: Sequence[Ref]) -> dict[Ref, dict[str, Scalar]]:
        """What instances may be found by."""
        return dict(read_attributes(self._rows("attributes_of", ints(refs))))

    def attribute_names(self, tenant: Tenant) -> list[str]:
        """What instances of a tenant may be found by."""
        return [name for (name,) in self._rows("attribute_names", tenant)]

    def systems(self, tenant: Tenant, kind: str, before: str, limit: int) -> list[Head]:
        """System cells of a kind by key, highest first."""
        below, nul, _ = before.partition("\0")  # no key has one, so none lies in between
        end = f"{below}\x01" if nul else before or f"{kind}{LAST}"
        return self._plainly(head_of, "heads_of_system", tenant, kind, end, limit)

    def reviews(self, tenant: Tenant) -> list[Review]:
        """Open reviews, oldest first."""
        return [review_from(row) for row in self._rows("reviews", tenant)]

    def dispositions(self, tenant: Tenant, limit: int) -> list[Found]:
        """Refused and dead inputs, newest first."""
        return [found_of(row) for row in self._rows("dispositions", tenant, limit)]

    def beside(self, ref: Ref) -> list[Found]:
        """The dispositions of a cell, oldest first."""
        return self._plainly(found_of, "beside", ref)

    def removed(self, cell: Address) -> Found | None:
        """What says that a cell was removed."""
        return next(iter(self._plainly(found_of, "removed", *cell)), None)

    def expiring(self, shards: Sequence[int], after: tuple[int, Ref], limit: int) -> list[Kept]:
        """Closed cells by until when they are kept."""
        return self._plainly(kept_of, "expiring", *after, ints(shards), limit)

    def refs(self) -> Iterator[Head]:
        """Every cell, by ref, a page at a time."""
        after = 0
        while heads := self._plainly(head_of, "heads_after", after, PAGE):
            yield from heads
            after = heads[-1].ref

    def frames(self, shard: int, after: int = 0) -> Iterator[FrameWrite]:
        """The frames of a shard, up to where it stood when the first was asked for."""
        (head,) = self.heads([shard])
        yield from frames_of(self._rows, self.where, head, after)

    def frame(self, shard: int, seq: int) -> FrameWrite | None:
        """The frame that holds a sequence number."""
        [head] = self.heads([shard])
        return frame_with(self._rows, self.where, head, seq)

    # For operators

    def facts(self) -> dict[str, Any]:
        """What the database is."""
        facts = self._link.read("its settings", lambda db: facts_of(db, self._sql, self.where))
        meta: dict[str, str] = dict(self._rows("meta"))
        return {
            "kind": "postgres",
            "path": self.where.told,
            "version": int(meta["version"]),
            "owner": self.owner(),
            "schema": self.where.schema,
            "move": mark_from(meta.get(MARK)),
            **facts,
        }

    def integrity(self, *, deep: bool) -> tuple[list[str], list[str]]:
        """What is wrong with the heads, and with the journals: their ends, or all of them."""
        broken = self._rows("heads_broken") if deep else []
        ends: list[str] = []
        for head in self.heads(range(SHARDS)):
            try:
                self.check_end(head)
                if deep:
                    check_chain(self.frames(head.shard))
            except StoreError as trouble:
                ends.append(str(trouble))
        return [f"cell {ref} has no last turn" for (ref,) in broken], ends

    def check_end(self, head: ShardHead) -> None:
        """The last frame must lead to the head, and its entries to the frame."""
        self._link.read(
            "tables frame and entry", lambda db: check_ends(db, self._sql, self.where, [head])
        )

    def close(self) -> None:
        """Let go of the shards, and hang up."""
        self._link.close(self._own.leave)

    def _rows(self, name: str, *values: Any) -> list[Row]:
        """Every row of one statement: a statement alone reads one moment of the store."""
        return self._link.read(f"statement {name}", lambda db: run(db, self._sql[name], values))

    def _plainly(self, make: Callable[[Row], T], name: str, *values: Any) -> list[T]:
        """What the rows of a statement stand for that must follow an index, however new it is."""
        if not all(may_be(value) for value in values if isinstance(value, str)):
            return []

        def work(db: Connection) -> list[T]:
            with db.pipeline():
                db.execute(b"BEGIN READ ONLY")
                db.execute(self._sql["plainly"].encode())
                rows = db.execute(self._sql[name].encode(), values, binary=True)
                db.execute(b"COMMIT")
            return [make(row) for row in rows]

        return self._link.read(f"statement {name}", work)


def is_there(url: str) -> bool:
    """Is there a store at this URL? Nothing is made. Raises StoreError if it cannot be asked."""
    where = where_of(url)
    try:
        with connect(where) as db:
            return is_made(db, where)
    except psycopg.Error as trouble:
        raise errors.unreachable(trouble, where) from trouble
