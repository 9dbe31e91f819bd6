"""What the codes of stores mean: cause, and the way out."""

from typing import Final

STORE_CODES: Final[dict[str, tuple[str, str]]] = {
    "node.store": (
        "Several nodes were asked for on a store that one process owns.",
        "Use --db sqlite:///PATH or postgresql://..., or one process.",
    ),
    "store.batch": (
        "A commit does not fit together: a defect of Pawl. Nothing was written.",
        "Report it with the log.",
    ),
    "store.busy": (
        "The store did not answer in time; a request may be in its mailbox and be taken later.",
        "Try again; `pawl doctor` says who owns the file.",
    ),
    "store.chain": (
        "The end of a shard's journal does not fit its head.",
        "Restore a backup with `pawl restore`; `pawl doctor` names the place.",
    ),
    "store.closed": ("The store was closed.", "Open it again."),
    "store.damaged": (
        "The database file is damaged, or its contents contradict each other.",
        "Keep a copy, then restore a backup with `pawl restore`.",
    ),
    "store.driver": (
        "The driver for this kind of store is not installed.",
        "pip install 'pawlflow[postgres]'",
    ),
    "store.fenced": (
        "Another owner has taken over; nothing was written.",
        "Nothing: the new owner goes on.",
    ),
    "store.full": (
        "There is no room. New starts are refused, nothing that was accepted is lost.",
        "Make room; what runs goes on by itself.",
    ),
    "store.gap": ("Entries of a journal are missing.", "Restore a backup with `pawl restore`."),
    "store.index": (
        "An index of the store does not find what is there.",
        "Restore a backup, or copy the file with `pawl backup`, which writes it anew.",
    ),
    "store.io": (
        "The disk reported an error; nothing is known to be durable since.",
        "Look at the disk, then start again: what was acknowledged is there.",
    ),
    "store.missing": (
        "There is no database at this place.",
        "Name it with --db or PAWL_DB, or start something first.",
    ),
    "store.moved": (
        "The store was moved to another place, which the message names; this one can only be read.",
        "Work there (--db, PAWL_DB); `pawl move --undo --to URL` takes it back.",
    ),
    "store.moving": (
        "The store is being moved: nobody may own it or post to it meanwhile.",
        "Wait; `pawl move --to URL` goes on if it was cut short, `pawl move --undo` gives it up.",
    ),
    "store.newer": (
        "The database was written by a newer version of Pawl.",
        "Update pawlflow, or restore a backup of the older version.",
    ),
    "store.not_ours": (
        "The file, or the schema, is no store of Pawl; it was left untouched.",
        "Name another one with --db or PAWL_DB.",
    ),
    "store.owned": (
        "Another process owns the database.",
        "Stop it, or use a verb that works beside it: it will take requests by mail.",
    ),
    "store.poke": (
        "The socket by which the owner hears of mail cannot be made.",
        "Nothing is lost: mail is found within half a minute. Check the folder's permissions.",
    ),
    "store.published": (
        "The list of published definitions differs from what was published.",
        "Restore a backup with `pawl restore`.",
    ),
    "store.read_only": (
        "The file or its folder cannot be written to.",
        "Change the permissions, or name another file with --db.",
    ),
    "store.rights": (
        "The database does not let this role do what a store needs.",
        "Let the role own the schema, or create one in the database (docs/postgres.md).",
    ),
    "store.server": (
        "The server is too old, or its database cannot hold every character.",
        "Use PostgreSQL 15 or newer, and a database with ENCODING 'UTF8'.",
    ),
    "store.shards": (
        "The store has another number of shards than this version.",
        "Use the version of Pawl that made it.",
    ),
    "store.target": (
        "The target of a backup or restore cannot be used.",
        "Name another, or remove what is there (--force).",
    ),
    "store.trouble": ("The database reported an error.", "The message has its words; try again."),
    "store.unfinished": (
        "The store holds a part of another one, whose move has not ended.",
        "Move again with the same stores: it goes on where it has stopped.",
    ),
    "store.unknown": (
        "It is not known whether a commit is durable; the engine looks before it goes on.",
        "Nothing, unless it stops: then start it again.",
    ),
    "store.unreachable": (
        "The server of the store cannot be reached, or does not take this user.",
        "See whether it runs, and look at host, port, user, password and database of the URL.",
    ),
    "store.url": (
        "The URL names no store.",
        "Use sqlite:///PATH, postgresql://USER@HOST/DATABASE or memory:",
    ),
    "views.missing": (
        "The store has no read models, or those of another version of Pawl.",
        "`pawl rebuild` builds them from the journal (docs/sql.md).",
    ),
    "views.no_sql": (
        "The store is in memory and has no tables to be read with SQL.",
        "Use sqlite:///PATH or postgresql://USER@HOST/DATABASE.",
    ),
    "views.different": (
        "A row of the read models is not the one that the journal gives.",
        "`pawl rebuild` builds all of them again; nothing else reads them, so nothing is lost.",
    ),
}

MOVE_CODES: Final[dict[str, tuple[str, str]]] = {
    "move.ahead": (
        "The new place has gone on since the move: to go back would lose what happened there.",
        "Move it back as it is: pawl move --db NEW --to sqlite:///ANOTHER.db. Or say --force.",
    ),
    "move.differs": (
        "The copy is not the same as what was copied; it was not let go.",
        "Empty it with `pawl move --undo --to URL`, look at both disks, and move again.",
    ),
    "move.none": ("The store was not moved, so nothing can be undone.", "Name the one that was."),
    "move.not_empty": (
        "The target of a move holds something already.",
        "Name a file that is not there, an empty database, or another schema (?schema=NAME).",
    ),
    "move.same": ("A store was to be moved to itself.", "Name another place with --to."),
    "move.target": (
        "To undo a move that has ended, the place it was moved to must be asked.",
        "Name it with --to URL; if it is gone for good, say --force.",
    ),
}
