"""What was removed is told from what is missing: an entry says so, and says which."""

import asyncio
import shutil

import apsw
import pytest

from pawlflow.projections.proof import verify_store
from pawlflow.store.sqlite import SqliteStore
from pawlflow.testing import Lab
from tests.testing.lab_kit import workflow

KEPT = workflow("kept", "retention: {completed: 1d}", steps=("name: a, run: x.a, timeout: 1m",))
pytestmark = pytest.mark.req("R218")
FACT = "(SELECT entry FROM removed)"
BARE = "(SELECT min(id) FROM entry WHERE data = x'' AND number = 1)"
LAST = "(SELECT max(id) FROM entry WHERE data = x'' AND number > 0)"
LIVE = "(SELECT ref FROM cell WHERE key = 'stays')"
TAMPERINGS = {
    "DELETE FROM removed": "journal.removed",
    f"UPDATE entry SET data = x'', beside = x'' WHERE id = {FACT}": "journal.bytes",
    f"UPDATE entry SET data = x'01' WHERE id = {BARE}": "journal.entry",
    f"UPDATE entry SET number = number + 1 WHERE id = {LAST}": "journal.removed",
    f"UPDATE entry SET hash = zeroblob(32) WHERE id = {LAST}": "journal.hash",
    f"UPDATE entry SET data = x'', beside = x'' WHERE ref = {LIVE}": "journal.bytes",
    f"UPDATE entry SET data = x'', beside = x'' WHERE ref = {LIVE} AND number = 1": "journal.bytes",
    f"UPDATE entry SET data = x'' WHERE ref = {LIVE};"
    f"DELETE FROM pulse WHERE ref = {LIVE}; DELETE FROM expiry WHERE ref = {LIVE};"
    f"DELETE FROM cell WHERE ref = {LIVE}": "journal.bytes",
    "DELETE FROM expiry": "store.index",
    "UPDATE expiry SET until = until + 1": "store.index",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store from which one instance was removed, while another stays."""
    path = tmp_path_factory.mktemp("removed") / "whole.db"

    async def play():
        async with Lab(f"sqlite:///{path}") as lab:
            lab.add(KEPT)
            lab.script("x.a", "fine")
            await (await lab.start("kept", id="goes")).result()
            with pytest.raises(Exception, match="goes"):
                await lab.signal("goes", "late", {})
            await lab.skip("1d")
            await (await lab.start("kept", id="stays")).result()

    asyncio.run(play())
    return path


def proven(path, sql=""):
    """What a proof says of a file that was tampered with."""
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    store = SqliteStore(path)
    try:
        return verify_store(store)
    finally:
        store.close()


def test_what_was_removed_is_no_damage(whole):
    """Its hashes lead to the same roots, and the entry that says so to the same turns."""
    report = proven(whole)
    assert (report.differences, report.removed, report.instances) == ([], 1, 1)


@pytest.mark.parametrize("sql", TAMPERINGS)
def test_what_is_missing_without_a_word_is_damage(whole, sql, tmp_path):
    """So is a word about something that is not missing."""
    copy = shutil.copy(whole, tmp_path / "copy.db")
    report = proven(copy, sql)
    assert TAMPERINGS[sql] in {problem.code for problem in report.differences}
