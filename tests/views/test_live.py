"""Read models beside an engine: kept fresh by a thread, at a cost that grows with what happens."""

import asyncio
import logging
import threading

import apsw
import pytest

from pawlflow import Pawl, PawlError
from pawlflow.readmodels import ReadModelWorker, compare, rebuild
from pawlflow.store.port import SHARDS
from tests.effects.kit import run, written
from tests.views.kit import Books, ask, change

CHAIN = """
  steps:
    - {name: one, run: do.it}
    - {name: two, run: do.it, dependsOn: [one]}
    - {name: three, run: do.it, dependsOn: [two]}
"""
TURNS = 4  # the start, and a receipt for each step


async def start_many(url, folder, count, *, first=0, **more):
    """Run so many chains to their ends."""
    path = written(folder, "chain", CHAIN)
    async with Pawl(url, **more) as pawl:
        pawl.load(path)
        pawl.effect("do.it")(lambda: {"fine": True})
        wanted = [(f"i-{first + n}", {"n": n}) for n in range(count)]
        runs = [started.run async for started in pawl.starting("chain", wanted)]
        await asyncio.gather(*[each.result(timeout="50s") for each in runs])
        if pawl.following is not None:
            assert await asyncio.to_thread(pawl.following.flush)


@pytest.mark.req("R164")
def test_an_engine_keeps_them_fresh_if_it_is_told_to(url, tmp_path):
    """On both stores, on a thread and connections of its own; they are as a rebuild makes them."""
    run(start_many(url, tmp_path, 20, read_models=True))
    [live] = ask(
        url, "SELECT count(*) AS n, sum(current_step_index) AS done FROM workflow_instance"
    )
    rows = "SELECT * FROM workflow_step ORDER BY workflow_instance_id, step_index"
    followed = ask(url, rows)

    built = rebuild(url)

    assert (live["n"], live["done"]) == (20, 60)
    assert (built.instances, built.steps, built.removed) == (20, 60, 0)
    assert ask(url, rows) == followed
    assert compare(url).difference is None


def test_an_engine_does_not_by_itself(tmp_path):
    """The read model is dearer than the journal: who wants it says so."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    run(start_many(url, tmp_path, 1))
    with pytest.raises(PawlError) as missing:
        compare(url)
    assert missing.value.code == "views.missing"
    assert ask(url, "SELECT name FROM sqlite_schema WHERE name LIKE 'read%'") == []


def test_what_is_in_memory_has_no_sql(tmp_path):
    """It is refused when the engine is opened, and the engine can be opened without."""
    with pytest.raises(PawlError) as refused:
        run(start_many("memory:", tmp_path, 1, read_models=True))
    assert refused.value.code == "views.no_sql"
    run(start_many("memory:", tmp_path, 1))


@pytest.mark.req("R164")
def test_a_node_follows_the_shards_it_owns(url, tmp_path):
    """Two nodes share them; each asks before every look which ones are its own."""
    run(start_many(url, tmp_path, 30))
    owned = [set(range(0, SHARDS, 2)), set(range(1, SHARDS, 2))]
    workers = [ReadModelWorker(url, lambda mine=mine: mine) for mine in owned]
    workers[0].start()
    assert workers[0].flush()
    half = {row["shard"] for row in ask(url, "SELECT DISTINCT shard FROM workflow_instance")}
    workers[1].start()
    assert workers[1].flush()
    owned[0], owned[1] = set(), set(range(SHARDS))
    workers[1].shards = lambda: owned[1]  # a node was lost: its shards have moved
    run(start_many(url, tmp_path, 10, first=100))
    assert workers[1].flush()
    for worker in workers:
        worker.stop()

    assert half and all(shard % 2 == 0 for shard in half)
    assert compare(url).behind == 0
    assert ask(url, "SELECT count(*) AS n FROM workflow_instance") == [{"n": 40}]


def test_trouble_is_told_and_tried_again(tmp_path, caplog):
    """The engine is not stopped by it, and the rows come once it is over."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    run(start_many(url, tmp_path, 2))
    worker = ReadModelWorker(url, every_s=0.01)
    worker.start()
    assert worker.flush()
    with caplog.at_level(logging.ERROR, "pawl.views"):
        change(url, "DROP TABLE read_mark")
        run(start_many(url, tmp_path, 2, first=10))
        assert worker.flush()
    worker.stop()

    assert any("are behind, and tried again" in each.getMessage() for each in caplog.records)
    assert ask(url, "SELECT count(*) AS n FROM workflow_instance") == [{"n": 4}]


@pytest.mark.req("R164")
@pytest.mark.parametrize("first", [100, pytest.param(500, marks=pytest.mark.slow)])
def test_the_cost_is_linear_in_turns(first, tmp_path):
    """Statements and turns are counted: of four times as many instances, four times as many."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    told, known = [], 0
    for count in (first, 3 * first):
        run(start_many(url, tmp_path, count, first=known))
        known += count
        books = Books(url)
        statements = counted(books)
        books.models.restart(range(SHARDS))
        statements.clear()
        following = books.follower()
        following.catch_up()
        told.append((following.tally, len(statements)))
        books.close()

    (small, few), (large, many) = told
    assert (small.folded, large.folded) == (first * TURNS, 4 * first * TURNS)
    assert (small.refolded, large.refolded) == (0, 0)
    assert large.steps <= 4 * first * 3 * 2  # written once for each page it was touched in
    assert many <= 4 * few + 200  # and the few of each shard


@pytest.mark.req("R164")
def test_nothing_is_read_twice_for_each_turn_without_a_cache(tmp_path):
    """With room for one instance each is read again once, to its end, and not for every turn."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    run(start_many(url, tmp_path, 60))
    books = Books(url)
    tight = books.follower(folded_max=1, page=1)
    tight.catch_up()
    assert compare(url).difference is None
    assert tight.tally.refolded <= 60
    assert tight.tally.folded <= 2 * 60 * TURNS
    books.close()


@pytest.mark.req("R164")
def test_a_rebuild_beside_an_engine_at_work(tmp_path):
    """Again and again, on the same file: nobody meets a lock, and nothing is missing at the end."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    run(start_many(url, tmp_path, 50))
    done, built, trouble = threading.Event(), [], []

    def rebuilds():
        try:
            while not done.is_set():
                built.append(rebuild(url))
        except PawlError as error:
            trouble.append(error)

    beside = threading.Thread(target=rebuilds)
    beside.start()
    run(start_many(url, tmp_path, 200, first=1_000))
    done.set()
    beside.join()
    rebuild(url)

    assert trouble == []
    assert built
    assert (compare(url).instances, compare(url).difference) == (250, None)


def test_following_costs_what_is_new(tmp_path):
    """Nothing that was read is read again, and a look that finds nothing is one question."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    run(start_many(url, tmp_path, 50))
    books = Books(url)
    following = books.follower()
    following.catch_up()
    before = (following.tally.entries, following.tally.folded)
    statements = counted(books)

    following.catch_up()
    quiet = len(statements)
    run(start_many(url, tmp_path, 1, first=100))
    following.catch_up()

    assert quiet == 1  # all there is to ask when nothing is new
    assert following.tally.folded - before[1] == TURNS
    assert following.tally.entries - before[0] <= TURNS + 2
    books.close()


def counted(books):
    """Every statement that is executed from now on."""
    seen = []

    def trace(_, sql, __):
        seen.append(sql)
        return True

    for db in (books.models.db, books.store._db):
        assert isinstance(db, apsw.Connection)
        db.exec_trace = trace
    return seen
