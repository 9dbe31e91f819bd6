"""kill -9 of the engine at every point of a saga: its history is that of one that nobody killed."""

import random
import subprocess
import sys
from contextlib import closing

import msgspec
import psycopg
import pytest

from examples.ores.ledger import changes_of
from examples.ores.stage import ROOT
from pawlflow.model.ids import InstanceId
from pawlflow.projections.proof import verify_store
from pawlflow.projections.reading import story_of
from pawlflow.projections.show import show
from pawlflow.store.postgres import PostgresStore
from tests.crash.parent import KILLED, TENANT, Nursery, outline
from tests.examples.child import LABELS, Spec
from tests.examples.kit import actions, shapes, without_ids

GIVEN = {
    "done": {"login": "ada", "role": "owner"},
    "undone": {"login": "ada", "role": "nobody"},
}
LIVES_MAX = 12  # of one instance: more than it has turns


class Cradle(Nursery):
    """Gives birth to engines that will be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.examples.child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def cradle():
    """Where the engines come from."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAWL_NATS_UNSIGNED", "allow")
        made = Cradle()
    yield made
    made.close()


def spec_of(stage, way, id_):
    """A provisioning that ends this way, under names of its own."""
    given = {**GIVEN[way], "name": f"party {id_}", "login": f"login {id_}"}
    return Spec(stage.database, stage.nats, "provision_parties", given, id_)


def facts(stage, id_):
    """The step history: in the engine's journal, its rows, and the tables of the services."""
    with closing(PostgresStore(stage.database)) as store:
        story = story_of(store, TENANT, InstanceId(id_))
        shown = show(story)
        steps = {
            name: (each["state"], each["attempts"], each["undo"])
            for name, each in shown["steps"].items()
        }
        assert verify_store(store).differences == []
        told = outline(store, id_)
    changes = changes_of(stage.database, id_)
    assert len({each["step_id"] for each in changes}) == len(changes), "something was done twice"
    ended = (shown["state"], shown["rollback"], shown["turns"])
    return {"events": told, "steps": steps, "ended": ended, "tables": named(stage, id_)}


def named(stage, id_):
    """What the services did, without the names that this instance has for itself."""
    return [without_ids(each.replace(id_, "X")) for each in actions(stage, id_)]


@pytest.fixture(scope="module")
def untouched(stage, cradle):
    """Both ways without a kill: the history, and how often each point is passed."""
    found = {}
    for way in GIVEN:
        id_ = f"untouched-{way}-x"
        code, said = cradle.run(spec_of(stage, way, id_))
        assert code == 0, said
        words = [line.split(maxsplit=2) for line in said if line.startswith("passed")]
        passages = {label: int(times) for _, times, label in words}
        assert all(passages[label] for label in LABELS), passages
        found[way] = (facts(stage, id_), passages)
    return found


def live(cradle, spec, label="", passages=0):
    """One life; was it cut short?"""
    code, said = cradle.run(msgspec.structs.replace(spec, label=label, passages=passages))
    assert code in (0, KILLED), (label, passages, code, said)
    return code == KILLED


def test_a_provisioning_that_nobody_kills(untouched):
    """What the others are held against is what it should be."""
    done, undone = untouched["done"][0], untouched["undone"][0]
    assert done["ended"] == ("completed", "none", 4)
    assert undone["ended"] == ("failed", "full", 6)
    assert done["tables"] == [
        "party party X saved",
        "account login X saved",
        "account N linked to party N",
    ]
    assert undone["tables"][2:] == ["account N deleted", "party N deleted"]
    assert undone["steps"] == {
        "party": ("succeeded", 1, "done"),
        "account": ("succeeded", 1, "done"),
        "link": ("failed", 1, "none"),
    }


@pytest.mark.req("R119", "R140", "R141", "R142", "R143", "R148")
@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize(
    "label", [pytest.param("turn stepped", marks=pytest.mark.slow), "turn committed"]
)
def test_killed_at_every_turn(stage, cradle, untouched, way, label):
    """Each engine comes one turn further than the one before, and dies as it commits it, or has."""
    id_ = f"{way}-{label[5:]}-x"
    spec = spec_of(stage, way, id_)
    wanted, _ = untouched[way]
    kills = 0
    while live(cradle, spec, label, 1 if label == "turn committed" else 2):
        kills += 1
        assert kills < LIVES_MAX
    assert kills >= wanted["ended"][2] - 1  # the last turn leaves nothing to be killed in
    assert facts(stage, id_) == wanted


@pytest.mark.slow
@pytest.mark.req("R119", "R140", "R141", "R142", "R143", "R144", "R148")
@pytest.mark.parametrize("way", GIVEN)
@pytest.mark.parametrize("label", LABELS)
def test_killed_at_every_passage_of_every_point(stage, cradle, untouched, way, label):
    """One instance for each: the first engine dies there, the second ends what it began."""
    wanted, passages = untouched[way]
    kills = 0
    for nth in range(1, passages[label] + 1):
        id_ = f"{way}-{label.replace(' ', '-')}-{nth:03}-x"
        spec = spec_of(stage, way, id_)
        kills += live(cradle, spec, label, nth)
        assert not live(cradle, spec)
        assert facts(stage, id_) == wanted, (label, nth)
    assert kills >= max(1, passages[label] - 2)  # others end a moment before the last


@pytest.mark.slow
@pytest.mark.req("R140", "R141")
@pytest.mark.parametrize("seed", range(20))
def test_killed_anywhere_again_and_again(stage, cradle, untouched, seed):
    """Several engines die at random points of one instance."""
    chance = random.Random(seed)
    way = chance.choice(list(GIVEN))
    wanted, passages = untouched[way]
    id_ = f"seed-{seed:02}-x"
    spec = spec_of(stage, way, id_)
    for _ in range(6):
        label = chance.choice(list(LABELS))
        live(cradle, spec, label, chance.randint(1, passages[label]))
    assert not live(cradle, spec)
    assert facts(stage, id_) == wanted


@pytest.mark.req("R140", "R147", "R193")
def test_killed_while_the_grid_computes(stage, cradle):
    """The batch is closed while no engine is there: the grid tells it to the next one."""
    given = {"title": "June", "trades": ["A", "B"], "hours": 7}
    spec = Spec(stage.database, stage.nats, "report_execution", given, "report-1")
    code, said = cradle.run(spec, "waiting")
    assert code == KILLED, said
    with closing(PostgresStore(stage.database)) as store:
        shown = show(story_of(store, TENANT, InstanceId("report-1")))
        assert [each["kind"] for each in shown["waiting"]] == ["event"]
        assert not [each for each in shown["steps"].values() if each["state"] == "running"]
    with psycopg.connect(stage.database) as db:
        db.execute("UPDATE grid.batch SET closes_at = now()")
    code, said = cradle.run(spec)
    assert (code, "closed completed" in said) == (0, True), said
    assert shapes(stage, "report-1") == [
        "inputs of June gathered",
        "report N packed",
        "batch submitted",
        "results of report N processed",
        "report N finalised",
    ]
