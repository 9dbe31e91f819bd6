"""How a SQLite store removes cells, inside a transaction that somebody else opened."""

from typing import Final

import apsw

from pawlflow.store.check import wrong
from pawlflow.store.find import key_of
from pawlflow.store.port import Batch, Head
from pawlflow.store.removal import check_removed, other_history, rules_of
from pawlflow.store.rows import head_of
from pawlflow.store.sqlite_find import read_attributes
from pawlflow.store.sqlite_rows import SQL

IN_ORDER: Final = (  # what leads to others goes after them
    *("remove_turns", "remove_beside", "remove_blobs", "remove_mentions", "remove_snapshot"),
    *("remove_attributes", "remove_reviews", "remove_expiry", "remove_pulse", "remove_cell"),
)


def remove_cells(db: apsw.Connection, batch: Batch) -> None:
    """Take out all that these cells can be asked for, and the bytes of their entries."""
    check_removed(batch)
    for head in batch.removed:
        row = db.execute(SQL["head_at"], (head.ref,)).fetchone()
        known = None if row is None else head_of(row)
        if known is None or (known.cell, known.hash) != (head.cell, head.hash):
            raise wrong(other_history(head))
        _remove(db, known)


def _remove(db: apsw.Connection, head: Head) -> None:
    ref, tenant = head.ref, head.cell.tenant
    values = read_attributes(db, ref) or {}
    for name, value in values.items():
        db.execute(SQL["remove_search"], (tenant, name, *key_of(value), head.created_at, ref))
    for name in IN_ORDER:
        db.execute(SQL[name], (ref,))


def write_expiry(db: apsw.Connection, batch: Batch, facts: dict[int, int]) -> None:
    """Keep until when closed cells are kept, and where it says that others are gone."""
    db.executemany(SQL["expiry_put"], batch.expiring)
    gone = [(head.cell.tenant, head.cell.key, facts[head.ref]) for head in batch.removed]
    db.executemany(SQL["removed_add"], gone)


def fill_expiry(db: apsw.Connection) -> None:
    """Version 4: instances that closed before retention counted are kept as long as any other."""
    rules = rules_of(db.execute(SQL["definitions_all"]))
    kept = {(definition, state): ms for definition, state, ms in rules}
    for ref, definition, state, closed_at in db.execute(SQL["closed_all"]) if kept else ():
        ms = kept.get((definition, state))
        if ms is not None:
            db.execute(SQL["expiry_put"], (ref, closed_at + ms))
