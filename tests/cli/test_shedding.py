"""A full mailbox: new starts are told to come later, with 75; everything else is taken."""

import json
from contextlib import contextmanager

import pytest

from pawlflow import requests
from pawlflow.app import Nobody, engine_on, open_store
from pawlflow.definition.load import load_workflows
from pawlflow.definition.plan import compile_plan
from pawlflow.engine.admission import admit_start
from pawlflow.engine.places import mail_of
from pawlflow.model.ids import CellId, InstanceId, Tenant
from pawlflow.shedding import BEGINS, letter, turned_away
from pawlflow.store.poke import Pokes
from tests.cli.live_kit import ORDER

LIMIT = 20


@contextmanager
def owner_away(place):
    """A store whose owner is there, and does nothing; given is how it comes back."""
    store = open_store(f"sqlite:///{place.db}")
    pokes = Pokes(place.db)
    engine = engine_on(store, Nobody())
    try:
        yield engine
    finally:
        pokes.close()
        store.close()


def start(key, tenant="default"):
    """A start as the command posts it."""
    [workflow], _ = load_workflows(ORDER, "order.yaml")
    plan = compile_plan(workflow)
    made = admit_start(plan, {"amount": 1}, tenant=Tenant(tenant), by="ann")
    return letter(CellId(Tenant(tenant), plan.workflow, InstanceId(key)), made, b"")


@pytest.fixture
def full(place):
    """A folder whose settings let few starts wait, and a mailbox that is full of them."""
    (place.folder / "pawl.toml").write_text(f"limits.waiting = {LIMIT}\n")
    assert place.pawl("apply", "-f", "order.yaml").exit_code == 0
    assert (
        place.pawl("start", "order", "--id", "running", "--input", '{"amount": 1}').exit_code == 0
    )
    with owner_away(place) as engine:
        posting = open_store(f"sqlite:///{place.db}")
        posted = posting.post([start(f"s-{n}") for n in range(LIMIT)])
        yield place, engine, posting, posted
        posting.close()


@pytest.mark.req("R214", "R186")
@pytest.mark.parametrize(
    "words",
    [
        ("start", "order", "--id", "late"),
        ("start", "order.yaml", "--input", '{"amount": 2}'),
        ("emit", "price.changed"),
    ],
    ids=" ".join,
)
def test_a_start_is_told_to_come_later(full, words):
    """Exit 75, a code that stays, when to try again; and nothing was posted."""
    place, _, posting, posted = full

    told = place.told(*words, exits=75)["error"]
    said = place.pawl(*words)

    assert (told["code"], told["retry_after_s"]) == ("engine.overloaded", 5)
    assert said.exit_code == 75
    assert f"{LIMIT} starts and events of tenant default wait" in said.stderr
    assert "a start or an event from outside, is turned away, and nothing else" in said.stderr
    assert "try again in 5 s" in said.stderr
    assert [mail.id for mail in posting.mail(range(32), 0, 100)] == posted


@pytest.mark.req("R214", "R186")
def test_a_run_beside_the_owner_is_told_the_same(full):
    """`pawl run` starts by mail where another drives the store."""
    place, *_ = full

    done = place.terminal("run", "order.yaml", "--worker", "shop_steps.py", "--json")

    assert (done.returncode, done.stderr) == (75, ""), done.stdout
    assert json.loads(done.stdout)["error"]["code"] == "engine.overloaded"


@pytest.mark.req("R214", "R225")
def test_everything_else_is_taken_and_all_of_it_comes_to_be(full):
    """Signals, cancels and receipts go into a full mailbox; the owner comes back, and is done."""
    _, engine, posting, posted = full
    cell = requests.instance_cell("default", "running")
    signals = [requests.signal("x", {"n": n}, "default", "ann") for n in range(50)]
    cancel = requests.steer("cancel", "default", by="ann", comment=None)
    taken = posting.post([letter(cell, each, b"") for each in (*signals, cancel)])

    assert len(taken) == 51
    assert turned_away(posting, start("other", "other"), LIMIT) is None
    assert turned_away(posting, start("late"), LIMIT).code == "engine.overloaded"
    engine.core.poked()
    engine.drain()

    assert [posting.answer(mail).code for mail in (*posted, *taken)] == [""] * (LIMIT + 51)
    assert posting.posted(Tenant("default"), BEGINS, 100) == 0
    assert turned_away(posting, start("late"), LIMIT) is None


@pytest.mark.req("R214", "R93")
def test_the_same_start_waits_once_and_may_be_posted_again(full):
    """Who tries again gets the answer to the first; another input under the same id is another."""
    _, _, posting, posted = full

    again = start("s-3")
    assert turned_away(posting, again, LIMIT) is None
    assert posting.post([again]) == [posted[3]]
    assert mail_of(again.cell, requests.signal("x", {}, "default", "ann")).key is None


@pytest.mark.req("R214", "R225")
def test_posters_cannot_fill_a_store_whose_owner_is_away(full):
    """A hundred more try: nothing of it is kept, and nothing of it is in memory."""
    _, engine, posting, posted = full
    tried = [start(f"more-{n}") for n in range(100)]

    kept = [mail for mail in tried if turned_away(posting, mail, LIMIT) is None]

    assert kept == []
    assert len(posting.mail_lines(range(32), 0, 1_000)) == len(posted)
    assert engine.core.inbox.count == 0


@pytest.mark.req("R214")
def test_what_a_fallen_owner_left_is_done_before_anybody_is_turned_away(place):
    """A full mailbox and nobody who owns it: who comes next takes it in, and starts."""
    (place.folder / "pawl.toml").write_text(f"limits.waiting = {LIMIT}\n")
    assert place.pawl("apply", "-f", "order.yaml").exit_code == 0
    posting = open_store(f"sqlite:///{place.db}")
    posting.post([start(f"s-{n}") for n in range(LIMIT)])
    posting.close()

    done = place.pawl("start", "order.yaml", "--id", "mine", "--input", '{"amount": 1}')

    assert done.exit_code == 0, done.stderr
    assert len(place.told("ls")) == LIMIT + 1
