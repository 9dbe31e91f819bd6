"""What SQLite's errors mean to an operator: one code each, and the way out."""

from pathlib import Path

import apsw

from pawlflow.store.port import StoreError, StoreFullError, StoreUnknownError


def told(trouble: apsw.Error, path: Path, place: str) -> StoreError:
    """An error of SQLite in the words of the port; `place` says what was being done, and where."""
    match trouble:
        case apsw.FullError():
            return StoreFullError(
                "store.full",
                f"{path} has no room for more, {place}; nothing was written, nothing is lost: "
                "free space on the disk, or raise its quota, and go on",
            )
        case apsw.NotADBError() | apsw.CorruptError() | apsw.FormatError():
            return StoreError(
                "store.damaged",
                f"{path} is damaged, {place}: {trouble}; "
                "`pawl doctor` lists the damage, `pawl restore` brings a backup back",
            )
        case apsw.BusyError() | apsw.LockedError():
            return StoreError(
                "store.busy",
                f"{path} is being written by another process for too long, {place}: try again",
            )
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            return read_only(path, f"{place}: {trouble}")
        case apsw.IOError():
            return StoreError(
                "store.io",
                f"the disk of {path} failed, {place}: {trouble}; nothing was written: look at the "
                "disk and at the system's log",
            )
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return StoreError("store.closed", "this store is closed: open it again")
        case apsw.ConstraintError():
            return StoreError(
                "store.batch",
                f"the batch does not fit together: {trouble}, {place}; nothing was written",
            )
        case _:
            return StoreError("store.trouble", f"{path} cannot be used, {place}: {trouble!r}")


def odd(path: Path, place: str, what: object) -> StoreError:
    """Something in the file is not as we write it."""
    return StoreError(
        "store.damaged",
        f"{path} is damaged, reading {place}: {what}; "
        "`pawl doctor` lists the damage, `pawl restore` brings a backup back",
    )


def unknown(trouble: apsw.Error, path: Path) -> StoreError:
    """An error in the very act of committing. Only a full disk surely wrote nothing."""
    if isinstance(trouble, apsw.FullError | apsw.BusyError | apsw.ReadOnlyError):
        return told(trouble, path, "committing")
    return StoreUnknownError(
        "store.unknown",
        f"{path} failed while committing: {trouble!r}; it is not known whether the batch is "
        "durable: read the heads again, and look at the disk",
    )


def read_only(path: Path, why: object) -> StoreError:
    """The file, or the folder where SQLite keeps its log beside it, cannot be written."""
    return StoreError(
        "store.read_only",
        f"{path} cannot be opened or written ({why}): let this user write to the file and to its "
        "folder, or copy the file to where they may",
    )


def not_ours(path: Path, what: str) -> StoreError:
    """The file is somebody else's; it was not touched."""
    return StoreError(
        "store.not_ours",
        f"{path} is {what}, not a store of pawlflow; it was left as it is: name another file",
    )


def newer(path: Path, found: int, known: int) -> StoreError:
    """The file was written by a later version of pawlflow."""
    return StoreError(
        "store.newer",
        f"{path} has version {found}, and this pawlflow knows versions up to {known}: "
        "upgrade pawlflow",
    )


def gap(path: Path, shard: int, seq: int, what: str) -> StoreError:
    """A part of the journal is missing."""
    return StoreError(
        "store.gap",
        f"{path}: the journal of shard {shard} has a gap at sequence {seq}: {what}; "
        "`pawl doctor` lists the damage, `pawl restore` brings a backup back",
    )
