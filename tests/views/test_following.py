"""Rows follow the journal: live or rebuilt, killed or not, they come out the same."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pawlflow.effects.headers import instance_uuid
from pawlflow.projections.comparing import Comparison
from pawlflow.store.port import StoreError
from tests.views.kit import EVERYTHING, Books, change, live_through

SOME = EVERYTHING[:4]
ROOT = Path(__file__).parent.parent.parent


def compared(books):
    """Every row held against the journal."""
    return Comparison(books.store, books.models, instance_uuid).run()


@pytest.mark.req("R164", "R141")
def test_rows_followed_live_and_rows_rebuilt_are_the_same(books):
    """Frame by frame as they are committed, or all at once from the beginning."""
    live = books.follower(page=1)
    live_through(books.url, *EVERYTHING, after_each=live.catch_up)
    followed = books.rows()
    report = compared(books)
    assert (report.difference, report.behind) == (None, 0)

    books.models.restart(range(32))
    books.follower().catch_up()

    assert books.rows() == followed
    assert len(followed[0]) > len(EVERYTHING)  # children have rows too
    assert {row["direction"] for row in followed[1]} == {"do", "undo"}


@pytest.mark.req("R164")
def test_a_follower_that_is_killed_goes_on_to_the_same_rows(books):
    """After every page another one begins with nothing but the watermark."""
    live_through(books.url, *SOME)
    whole = books.follower()
    whole.catch_up()
    expected = books.rows()
    books.models.restart(range(32))

    pages = 0
    while True:
        killed = books.follower(page=1)
        killed.catch_up(going=lambda one=killed: not one.tally.pages)  # it sees no second page
        if not killed.tally.pages:
            break
        pages += killed.tally.pages
    books.follower().catch_up()

    assert pages == whole.tally.entries  # each turn was a commit of its own, and is a page now
    assert books.rows() == expected


KILLED = """
import os, sys
from tests.views.kit import Books
books = Books(sys.argv[1])
commits = int(sys.argv[2])
def at_commit():
    global commits
    commits -= 1
    if commits == 0:
        os.kill(os.getpid(), 9)
    return False
books.models.db.set_commit_hook(at_commit)
books.follower(page=1).catch_up()
"""


@pytest.mark.req("R164")
def test_killed_in_the_middle_of_a_commit(tmp_path):
    """Rows and watermark are one transaction: of the page that was cut short nothing is there."""
    books = Books(f"sqlite:///{tmp_path}/pawl.db")
    live_through(books.url, *SOME)
    books.follower().catch_up()
    expected = books.rows()
    books.models.restart(range(32))

    command = [sys.executable, "-c", KILLED, books.url, "3"]
    done = subprocess.run(command, check=False, cwd=ROOT)
    seen = sum(each.mark.seq for each in books.models.standings().values())
    books.follower().catch_up()

    assert done.returncode == -signal.SIGKILL
    assert seen == 2  # the pages before the one it died in
    assert books.rows() == expected
    books.close()


@pytest.mark.req("R164")
def test_of_two_who_follow_one_shard_only_one_writes_a_page(books):
    """Who finds the watermark moved drops what it read, and goes on from there."""
    live_through(books.url, *SOME)
    first, second = books.follower(page=1), books.follower(page=1)
    standing = next(each for each in books.models.standings().values() if each.behind > 1)
    first.write_page(standing.mark)

    met = second.write_page(standing.mark)

    assert met == books.models.standings()[standing.mark.shard].mark
    assert (met.seq, second.tally.pages) == (standing.mark.seq + 1, 0)
    first.catch_up()
    second.catch_up()
    first.catch_up()
    assert compared(books).difference is None


def test_a_rebuild_beside_somebody_who_follows(books):
    """The one who followed notices that the rows are built again, and helps."""
    live = books.follower()
    live_through(books.url, *SOME, after_each=live.catch_up)
    expected = books.rows()
    books.models.restart(range(32))
    rebuilding = books.follower(page=1)
    rebuilding.catch_up(going=lambda: rebuilding.tally.pages < 5)

    live.catch_up()

    assert books.rows() == expected
    assert [each.mark.swept for each in books.models.standings().values()] == [True] * 32


@pytest.mark.req("R164")
def test_a_rebuild_takes_away_what_does_not_follow_and_mends_what_was_changed(books):
    """Readers always see rows: they are replaced one by one, and what is left is swept."""
    live_through(books.url, *SOME)
    books.follower().catch_up()
    expected = books.rows()
    change(books.url, "UPDATE read_step SET status = 'fine', ref = ref + 32000000 WHERE item = 0")
    change(books.url, "UPDATE read_instance SET status = 'fine'")
    assert books.rows() != expected

    books.models.restart(range(32))
    rebuilding = books.follower()
    rebuilding.catch_up()

    assert books.rows() == expected
    assert rebuilding.tally.swept > 0
    assert books.ask("SELECT count(*) AS n FROM read_step WHERE status = 'fine'") == [{"n": 0}]


def test_rows_of_another_journal_are_built_again(books):
    """After a restore the watermark may be ahead of the journal, or of another one."""
    live_through(books.url, *SOME)
    books.follower().catch_up()
    expected = books.rows()
    change(books.url, "UPDATE read_mark SET seq = seq + 1 WHERE seq > 0 AND shard % 2 = 0")
    change(
        books.url,
        "UPDATE read_mark SET hash = (SELECT hash FROM shard WHERE id = 31), "
        "seq = seq - 1 WHERE seq > 0 AND shard % 2 = 1",
    )
    change(books.url, "UPDATE read_instance SET status = 'of another'")

    again = books.follower()
    again.catch_up()

    assert books.rows() == expected
    assert again.tally.entries == sum(each.seq for each in books.models.standings().values())


def test_a_format_of_another_version_is_made_anew(books):
    """They follow from the journal: there is nothing to migrate."""
    live_through(books.url, *SOME)
    books.follower().catch_up()
    expected = books.rows()
    change(books.url, "UPDATE read_mark SET format = 0")

    with pytest.raises(StoreError) as refused:
        type(books.models)(*where(books), make=False)
    again = Books(books.url)

    assert refused.value.code == "views.missing"
    assert again.rows() == ([], [])
    again.follower().catch_up()
    assert again.rows() == expected
    again.close()


def where(books):
    """What an adapter is made with."""
    return [books.models.path] if hasattr(books.models, "path") else [books.url]


def test_what_shows_a_difference(books):
    """The first column that is not as the journal gives it, a row too few, a row too many."""
    live_through(books.url, *SOME)
    books.follower().catch_up()
    step = books.ask("SELECT workflow_instance_id AS i, name, id FROM workflow_step LIMIT 1")[0]
    assert compared(books).difference is None

    change(books.url, f"UPDATE read_step SET attempt = 41 WHERE key = '{step['id']}'")
    found = compared(books).difference
    assert (found.instance, found.step, found.column) == (step["i"], step["name"], "attempt")
    assert found.kept == 41 and found.journal != 41
    assert found.words.startswith(f"{step['i']} {step['name']}: attempt is 41, and the journal")

    change(books.url, f"DELETE FROM read_step WHERE key = '{step['id']}'")
    assert compared(books).difference.kept == "a turn touched it, and no row"
    change(books.url, f"DELETE FROM read_instance WHERE id = '{step['i']}'")
    assert "it has no row" in compared(books).difference.words
    books.models.restart(range(32))
    books.follower().catch_up()
    change(books.url, "UPDATE read_instance SET ref = ref + 32000000 WHERE id LIKE 'a%'")
    assert compared(books).difference is not None


def test_rows_may_be_behind_and_are_right_all_the_same(books):
    """Each instance is compared as of the turn its row names; what is missing is counted."""
    live_through(books.url, *SOME[:2])
    books.follower().catch_up()
    live_through(books.url, *SOME[2:])

    report = compared(books)

    assert report.difference is None
    assert report.behind == sum(each.behind for each in books.models.standings().values()) > 0
    [(told)] = books.ask("SELECT sum(behind) AS behind FROM workflow_watermark")
    assert told["behind"] == report.behind
