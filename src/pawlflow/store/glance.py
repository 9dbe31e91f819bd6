"""A glance at a SQLite file: names to complete a word with. Quick, read only, and light to import.

It opens the file by itself: the store proper takes longer to import than a person waits for a tab.
"""

import re
import time
from pathlib import Path
from typing import Any, Final

import apsw

FOLDER: Final = Path(__file__).parent / "sql"
NAMED: Final = re.compile(r"^-- (\w+): (?:.*\n)(?:-- .*\n)*((?:(?!--).*\n?)+)", re.MULTILINE)
FOUND_MAX: Final = 200  # nobody chooses from more
BUSY_MS: Final = 20
LOOK_S: Final = 0.05  # for a query: then the answer is nothing
LAST: Final = "\U0010ffff"  # sorts behind every text
IN_FORCE: Final = "policy in force"
EVENTS: Final = 5  # where in a turn they stand (docs/journal.md)
RETIRED: Final = ".retired"  # how the tag of an event ends after which a policy is not in force
SYSTEM: Final = {"schedule": "$schedule/", "batch": "$batch/"}


def names_in(path: Path, kind: str, tenant: str, begin: str = "", of: str = "") -> list[str]:
    """Names of a kind that begin so: `id workflow review role tenant schedule batch step policy`.

    For `step`, `of` is the instance; `policy` is one that was ever published, `policy in force` one
    that is not retired. Raises apsw.Error, or gives nothing, if it cannot be told.
    """
    if not path.is_file() or not path.stat().st_size:
        return []
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.set_busy_timeout(BUSY_MS)
        db.pragma("query_only", True)  # noqa: FBT003  # the value of the pragma
        until = time.monotonic() + LOOK_S
        db.set_progress_handler(lambda: time.monotonic() > until, 10_000)
        return found_in(db, kind, tenant, begin, of)
    finally:
        db.close()


def found_in(db: apsw.Connection, kind: str, tenant: str, begin: str, of: str) -> list[str]:
    """Ask by the statement of a kind."""
    sql = {name: text.strip() for name, text in NAMED.findall((FOLDER / "glance.sql").read_text())}
    if kind == "step":
        rows = db.execute(sql["definition"], (tenant, of)).fetchall()
        return [name for row in rows for name in steps_of(row[0]) if name.startswith(begin)]
    if kind in ("policy", IN_FORCE):
        turns = [row[0] for row in db.execute(sql["policy"], (tenant,))]
        return [
            each for each in policies_of(turns, in_force=kind == IN_FORCE) if each.startswith(begin)
        ]
    before = SYSTEM.get(kind, "")
    name = "system" if before else kind
    if kind == "id":
        name = "ids" if begin else "newest_ids"
    text = sql[name]
    given = (tenant, before + begin, before + begin + LAST, FOUND_MAX)
    bound = given if "?1" in text else (None, *given[1:])
    return [str(row[0]).removeprefix(before) for row in db.execute(text, bound)]


def steps_of(data: Any) -> list[str]:
    """The names of a definition's steps."""
    import cbor2

    return [str(step["name"]) for step in cbor2.loads(data)["steps"]]


def policies_of(turns: list[bytes], *, in_force: bool) -> list[str]:
    """The names in the turns of their cell, newest first: no table has them."""
    import cbor2

    last: dict[str, str] = {}  # what happened last to each
    for data in turns:
        for tag, name, *_ in reversed(cbor2.loads(data)[EVENTS]):
            last.setdefault(name, tag)
    return sorted(name for name, tag in last.items() if not (in_force and tag.endswith(RETIRED)))
