"""What somebody with a database tool can do to a store, and where each must be found."""

from typing import NamedTuple

# The places that tamperings are found at: a turn, a frame, a cell, a shard, or only a code.
CHAIN = "(SELECT ref FROM cell WHERE key = 'chain-1')"
GATE = "(SELECT ref FROM cell WHERE key = 'gate-1')"
STUCK = "(SELECT ref FROM cell WHERE key = 'stuck-1')"
TURN = f"(SELECT id FROM entry WHERE ref = {CHAIN} AND number = 3)"
LAST = f"(SELECT last FROM pulse WHERE ref = {CHAIN})"
FRAME = f"(SELECT max(pos) FROM frame WHERE at <= {TURN})"
FRAME_BEFORE = f"(SELECT max(pos) FROM frame WHERE pos < {FRAME} AND pos % 32 = {FRAME} % 32)"
REFUSED = "(SELECT min(id) FROM entry WHERE number = 0)"
SHARD = f"({FRAME} % 32)"
FRAME_LAST = f"(SELECT max(pos) FROM frame WHERE pos % 32 = {SHARD})"
END_BEFORE = f"(SELECT last, hash, now FROM frame WHERE pos = {FRAME_BEFORE})"
RULES = f"(SELECT definition FROM cell WHERE ref = {CHAIN})"
ENTRY = "prev, ref, number, data, hash, beside, pos, tenant"


class Tampering(NamedTuple):
    """One thing somebody does to a file, and what must be found."""

    what: str
    sql: str
    code: str
    place: str = ""


def changed(table: str, column: str, where: str, code: str, place: str = "") -> Tampering:
    """A value was changed: a number is one more, bytes and text are others."""
    sql = f"UPDATE {table} SET {column} = changed({column}) WHERE {where}"
    return Tampering(f"{table}.{column} changed", sql, code, place)


def updated(table: str, setting: str, where: str, code: str, place: str = "") -> Tampering:
    """A value was chosen with care."""
    sql = f"UPDATE {table} SET {setting} WHERE {where}"
    return Tampering(f"{table} set {setting.split()[0]}", sql, code, place)


def deleted(table: str, where: str, code: str, place: str = "") -> Tampering:
    """A row was deleted."""
    return Tampering(f"{table} deleted", f"DELETE FROM {table} WHERE {where}", code, place)


def swapped(table: str, columns: str, a: str, b: str, code: str, place: str) -> Tampering:
    """Two rows have changed places."""
    key = "id" if table == "entry" else "pos"
    sets = ", ".join(
        f"{c} = (SELECT {c} FROM swap WHERE swap.k <> {table}.{key})" for c in columns.split()
    )
    sql = (
        f"CREATE TEMP TABLE swap AS SELECT {key} AS k, * FROM {table} WHERE {key} IN ({a}, {b});"
        f"UPDATE {table} SET {sets} WHERE {key} IN (SELECT k FROM swap)"
    )
    return Tampering(f"{table} reordered", sql, code, place)


TAMPERINGS = [
    changed("entry", "data", f"id = {TURN}", "store.damaged", "turn"),
    changed("entry", "hash", f"id = {TURN}", "journal.hash", "frame"),
    changed("entry", "ref", f"id = {TURN}", "journal.orphan", "shard"),
    changed("entry", "number", f"id = {TURN}", "store.damaged", "turn"),
    changed("entry", "prev", f"id = {TURN}", "store.damaged", "cell chain-1"),
    changed("entry", "beside", f"id = {TURN}", "payload.corrupt", "cell chain-1"),
    updated("entry", "beside = x''", f"id = {TURN}", "payload.erased", "turn"),
    deleted("entry", f"id = {TURN}", "store.gap", "frame"),
    deleted("entry", f"id = {LAST}", "store.damaged"),
    deleted("entry", "true", "store.damaged"),
    swapped("entry", "prev ref number data hash beside", "2", "3", "journal.hash", "shard of 2"),
    Tampering(
        "entry inserted",
        f"UPDATE entry SET id = -id WHERE id > {TURN};"
        "UPDATE entry SET id = 1 - id WHERE id < 0;"
        f"INSERT INTO entry SELECT id + 1, {ENTRY} FROM entry WHERE id = {TURN}",
        "journal.hash",
    ),
    changed("entry", "data", f"id = {REFUSED}", "journal.entry", "cell gate-1"),
    changed("entry", "beside", f"id = {REFUSED}", "payload.corrupt"),
    changed("entry", "pos", f"id = {REFUSED}", "store.index"),
    changed("entry", "tenant", f"id = {REFUSED}", "store.index"),
    changed("frame", "last", f"pos = {FRAME}", "journal.hash", "frame"),
    changed("frame", "at", f"pos = {FRAME}", "journal.hash", "frame"),
    changed("frame", "prev", f"pos = {FRAME}", "journal.hash", "frame"),
    changed("frame", "root", f"pos = {FRAME}", "journal.hash", "frame"),
    changed("frame", "hash", f"pos = {FRAME}", "journal.hash", "frame"),
    changed("frame", "now", f"pos = {FRAME}", "journal.stamp", "frame"),
    updated("frame", "epoch = -1", f"pos = {FRAME}", "journal.stamp", "frame"),
    deleted("frame", f"pos = {FRAME}", "store.gap", "frame"),
    deleted("frame", f"pos = {FRAME_LAST}", "store.gap", "shard"),
    swapped("frame", "last at prev root hash now", FRAME, FRAME_BEFORE, "journal.hash", "shard"),
    changed("shard", "seq", f"id = {SHARD}", "store.gap", "shard"),
    updated("shard", "seq = seq - 1", f"id = {SHARD}", "journal.head", "shard"),
    changed("shard", "hash", f"id = {SHARD}", "journal.head", "shard"),
    changed("shard", "now", f"id = {SHARD}", "journal.head", "shard"),
    updated("shard", "epoch = 0", f"id = {SHARD}", "journal.head", "shard"),
    updated("shard", f"(seq, hash, now) = {END_BEFORE}", f"id = {SHARD}", "journal.head", "shard"),
    changed("cell", "tenant", f"ref = {CHAIN}", "store.damaged"),
    changed("cell", "workflow", f"ref = {CHAIN}", "store.damaged", "turn 1"),
    changed("cell", "key", f"ref = {CHAIN}", "store.damaged"),
    changed("cell", "shard", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "definition", f"ref = {CHAIN}", "definition.lost", "cell chain-1"),
    changed("cell", "version", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "state", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "rollback", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "created_at", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "started_at", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "closed_at", f"ref = {CHAIN}", "cell.head", "cell chain-1"),
    changed("cell", "quarantined", f"ref = {CHAIN}", "store.index", "cell chain-1"),
    updated("cell", "ref = ref + 3200", f"ref = {CHAIN}", "store.damaged"),
    deleted("cell", f"ref = {CHAIN}", "journal.orphan", "shard"),
    Tampering(
        "cell inserted",
        "INSERT INTO cell SELECT ref + 320, tenant, workflow, key || '2', shard, definition,"
        " version, state, rollback, created_at, started_at, closed_at, quarantined"
        f" FROM cell WHERE ref = {CHAIN}",
        "store.damaged",
    ),
    changed("pulse", "last", f"ref = {CHAIN}", "store.damaged"),
    changed("pulse", "due_at", f"ref = {STUCK}", "cell.head", "cell stuck-1"),
    changed("pulse", "calls", f"ref = {STUCK}", "cell.head", "cell stuck-1"),
    deleted("pulse", f"ref = {CHAIN}", "store.damaged"),
    changed("review", "step", f"ref = {GATE}", "cell.review"),
    changed("review", "key", f"ref = {GATE}", "cell.review"),
    changed("review", "tenant", f"ref = {GATE}", "cell.review"),
    changed("review", "role", f"ref = {GATE}", "cell.review"),
    changed("review", "kind", f"ref = {GATE}", "cell.review"),
    changed("review", "since", f"ref = {GATE}", "cell.review"),
    changed("review", "due_at", f"ref = {GATE}", "cell.review"),
    changed("review", "show", f"ref = {GATE}", "cell.review"),
    updated("review", "claimed_by = 'eve'", f"ref = {GATE}", "cell.review"),
    deleted("review", f"ref = {GATE}", "cell.review"),
    deleted("review", "kind = 'quarantine'", "cell.review"),
    Tampering(
        "review inserted",
        "INSERT INTO review SELECT ref + 32, step, tenant, workflow, key, kind, role, since,"
        f" due_at, show, claimed_by FROM review WHERE ref = {GATE}",
        "cell.review",
    ),
    changed("published", "version", "name = 'chain'", "store.published"),
    changed("published", "definition", "name = 'chain'", "store.published"),
    changed("published", "at", "name = 'chain'", "store.published"),
    deleted("published", "name = 'chain'", "store.published"),
    changed("definition", "data", f"hash = {RULES}", "definition.lost", "cell chain-1"),
    deleted("definition", f"hash = {RULES}", "definition.lost", "cell chain-1"),
    changed("blob", "data", "true", "payload.corrupt", "cell fan-1"),
    deleted("blob", "true", "payload.erased", "cell fan-1"),
    deleted("cell_blob", "true", "payload.erased", "cell fan-1"),
    changed("snapshot", "data", "true", "cell.snapshot", "cell count-1"),
    changed("snapshot", "beside", "true", "payload.corrupt", "cell count-1"),
    updated("snapshot", "beside = x''", "true", "cell.snapshot", "cell count-1"),
    deleted("shard", f"id = {SHARD}", "store.damaged"),
]  # fmt: skip
# Nobody can see these from inside: docs/durability.md says so. They change no answer.
UNSEEN = [
    changed("shard", "batch", "true", ""),
    changed("shard", "epoch", "true", ""),
    deleted("snapshot", "true", ""),
    Tampering(
        "entry added in no frame",
        f"INSERT INTO entry SELECT 100000, {ENTRY} FROM entry WHERE id = 2",
        "",
    ),
    Tampering("definition added", "INSERT INTO definition VALUES (x'00', x'00')", ""),
]
