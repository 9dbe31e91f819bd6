"""The statements of the SQLite store by name, and the rows it writes."""

from typing import Final

from pawlflow.store.port import Entry, FrameWrite, Head, Mail, Review, position
from pawlflow.store.removal import listed_under
from pawlflow.store.rows import FOLDER, Row, statements

SQL: Final = statements((FOLDER / "sqlite.sql").read_text())


def cell_row(head: Head) -> Row:
    """The part of a head that seldom changes, as its row."""
    cell = head.cell
    return (
        head.ref,
        cell.tenant,
        cell.workflow,
        cell.key,
        head.shard,
        head.definition,
        head.version,
        head.state,
        head.rollback,
        head.created_at,
        head.started_at,
        head.closed_at,
        head.quarantined,
    )


def frame_row(written: FrameWrite, at: int) -> Row:
    """A frame as its row; its entries lie from `at` on."""
    frame = written.frame
    place = position(frame.shard, frame.first)
    return (place, frame.last, at, frame.prev, frame.root, frame.hash, written.epoch, written.now)


def entry_row(at: int, prev: int | None, entry: Entry) -> Row:
    """A turn as its row."""
    return (at, prev, entry.ref, entry.number, entry.data, entry.hash, entry.beside, None, None)


def disposition_row(at: int, place: int, entry: Entry) -> Row:
    """A disposition as its row: no turn comes before it, and it says whose it is."""
    tenant = listed_under(entry)
    return (at, 0, entry.ref, 0, entry.data, entry.hash, entry.beside, place, tenant)


def review_row(review: Review) -> Row:
    """A review as its row."""
    cell = review.cell
    return (
        review.ref,
        review.step,
        cell.tenant,
        cell.workflow,
        cell.key,
        review.kind,
        review.role,
        review.since,
        review.due_at,
        review.show,
        review.claimed_by,
    )


def mail_row(mail: Mail) -> Row:
    """Mail as its row; the store gives the id."""
    cell = mail.cell
    return mail.shard, cell.tenant, cell.workflow, cell.key, mail.input, mail.beside, mail.key
