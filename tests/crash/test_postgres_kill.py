"""kill -9 of engines on PostgreSQL, and of the server under them: nothing acknowledged is lost."""

import random
import signal
import threading

import pytest

from pawlflow.projections.proof import verify_store
from pawlflow.store.port import Filter
from pawlflow.store.postgres import PostgresStore
from tests.crash.child import Spec, read_ledger
from tests.crash.parent import KILLED, TENANT, outline

LIVES = 6


@pytest.mark.req("R140", "R141", "R143")
@pytest.mark.parametrize("driver", ["inline", "thread"])
def test_an_engine_is_killed_again_and_again(nursery, untouched, postgres, tmp_path, driver):
    """After so many acknowledgements each: every life goes on from the last."""
    chance = random.Random(driver)
    spec = Spec(str(tmp_path / "world"), driver, url=postgres.fresh())
    started: set[str] = set()
    closed: dict[str, str] = {}
    kills = 0
    for until in [*(chance.randint(1, 14) for _ in range(LIVES)), ""]:
        code, said = nursery.run(spec, until)
        assert code == KILLED if until else code == 0, (code, said)
        kills += code == KILLED
        note(said, started, closed)
        check(spec, started, closed)
    assert kills == LIVES
    check_end(spec, untouched, closed)


@pytest.mark.req("R142", "R143")
def test_the_server_is_killed_under_an_engine(nursery, untouched, postgres, tmp_path):
    """As by a crash, twice in the life of an engine, which does not end for it."""
    spec = Spec(str(tmp_path / "world"), "inline", url=postgres.fresh())
    lives: list[tuple[int, list[str]]] = []
    life = threading.Thread(target=lambda: lives.append(nursery.run(spec)))
    life.start()
    ledger = spec.ledger
    for lines in (3, 8):
        while len(read_ledger(ledger)) < lines and life.is_alive():
            life.join(0.005)
        postgres.restart(signal.SIGQUIT)
    life.join()
    [(code, said)] = lives
    assert code == 0, said
    started: set[str] = set()
    closed: dict[str, str] = {}
    note(said, started, closed)
    check(spec, started, closed)
    check_end(spec, untouched, closed)


def note(said, started, closed):
    """Remember what was acknowledged. A second word must say the same as the first."""
    for line in said:
        word, *rest = line.split()
        assert word != "trouble", said
        if word == "started":
            started.add(rest[0])
        if word == "closed":
            assert closed.setdefault(rest[0], rest[1]) == rest[1]


def check(spec, started, closed):
    """What was acknowledged is there, and the store can be proven."""
    store = PostgresStore(spec.url)
    try:
        states = {head.cell.key: head.state for head in store.instances(Filter(tenant=TENANT))}
        assert started <= states.keys()
        assert closed == {key: states[key] for key in closed}
        assert verify_store(store).differences == []
    finally:
        store.close()


def check_end(spec, untouched, closed):
    """All is as if there had been only one life, and the world was changed once per step key."""
    assert closed == {**dict.fromkeys(untouched, "completed"), "saga-1": "failed"}
    lines = read_ledger(spec.ledger)
    assert len({line["key"] for line in lines}) == len(lines)
    store = PostgresStore(spec.url)
    try:
        assert {key: outline(store, key) for key in untouched} == untouched
    finally:
        store.close()
