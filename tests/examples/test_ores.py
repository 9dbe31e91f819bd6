"""Four sagas over services that are processes of their own, on PostgreSQL and NATS."""

import ast
import asyncio
import json
import re

import psycopg
import pytest

from examples.ores.client import Client, RefusedError
from examples.ores.ledger import changes_of, tables_of
from examples.ores.stage import ROOT, SERVICES
from pawlflow import WorkflowFailed
from pawlflow.bus.port import Letter
from pawlflow.services.batches import unpacked
from tests.examples.kit import actions, completed, everything, undone

PARTY = {"name": "Ada", "login": "ada", "role": "owner"}
TRADES = [{"name": "a", "notional": 70}, {"name": "b", "notional": 30}]
FILE = {"file": "may.xml", "trades": TRADES, "total": 100}
REPORT = {"title": "May", "trades": ["A", "B"], "hours": 6}


def bundle(count, name="b"):
    """A bundle whose every dataset needs the one before."""
    datasets = [{"name": f"{name}-{n}", "revision": 1} for n in range(count)]
    for n, each in enumerate(datasets[1:]):
        each["needs"] = [f"{name}-{n}"]
    return {"bundle": name, "datasets": datasets}


def close_batches(stage):
    """The hours of the grid are over."""
    with psycopg.connect(stage.database) as db:
        db.execute("UPDATE grid.batch SET closes_at = now()")


def ended(pawl, stage, workflow, given, id_):
    """Start one, let the grid's hours pass if it comes to that, and wait for the end."""
    run = pawl.start(workflow, given, id=id_)
    if workflow == "report_execution":
        for told in run.events():
            if told["eventType"] == "WorkflowStepWaiting":
                close_batches(stage)
    try:
        run.result(timeout="40s")
    except WorkflowFailed as failed:
        return run, failed
    return run, None


@pytest.mark.req("R191", "R192", "R193", "R194")
@pytest.mark.parametrize(
    ("workflow", "given", "done"),
    [
        ("provision_parties", PARTY, ["party", "account", "link"]),
        ("ore_import", FILE, ["execute", "verify"]),
        ("report_execution", REPORT, ["gather", "prepare", "submit", "process", "finalise"]),
        ("bundle_publish", bundle(3, "s"), [f"publish-s-{n}" for n in range(3)] + ["seal"]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_saga_succeeds(pawl, stage, workflow, given, done):
    run, failed = ended(pawl, stage, workflow, given, f"{workflow}-fine")
    assert failed is None
    assert completed(run.history()) == done
    assert undone(run.history()) == []
    changing = [each for each in done if each != "verify"]
    assert len(actions(stage, run.id)) == len(changing)


FAILING = [
    # workflow, what is wrong with the input, the step that fails, the message, undone
    ("provision_parties", {**PARTY, "name": ""}, "party", "has a name", []),
    ("provision_parties", {**PARTY, "name": "Bob"}, "account", "is taken", ["party"]),
    (
        *("provision_parties", {"name": "Cy", "login": "cy", "role": "boss"}, "link"),
        *("no role", ["account", "party"]),
    ),
    ("ore_import", {**FILE, "trades": [{"name": "x"}]}, "execute", "0 of 1 trades", []),
    ("ore_import", {**FILE, "total": 99}, "verify", "add up to 100", ["execute"]),
    ("report_execution", {**REPORT, "trades": []}, "gather", "says nothing", []),
    (
        *("report_execution", {**REPORT, "trades": ["T"] * 1_001}, "prepare"),
        *("do not fit", ["gather"]),
    ),
    ("report_execution", {**REPORT, "hours": 49}, "submit", "49", ["prepare", "gather"]),
    (
        *("report_execution", {**REPORT, "trades": ["DIVERGENT"]}, "process"),
        *("does not converge", ["submit", "prepare", "gather"]),
    ),
    (
        *("report_execution", REPORT, "finalise"),
        *("already", ["process", "submit", "prepare", "gather"]),
    ),
]


@pytest.fixture(scope="module")
def taken(pawl, stage):
    """A login, and a title, that others have."""
    first = ended(pawl, stage, "provision_parties", {**PARTY, "name": "first"}, "taken-login")
    second = ended(pawl, stage, "report_execution", REPORT, "taken-title")
    for run, failed in (first, second):
        if failed is not None:  # the tests above were faster
            assert "taken" in str(failed) or "already" in str(failed), run.id


@pytest.mark.req("R112", "R113", "R114", "R116", "R117", "R118")
@pytest.mark.parametrize("case", FAILING, ids=[f"{each[0]}-{each[2]}" for each in FAILING])
def test_a_step_that_fails_is_followed_by_undos_last_first(pawl, stage, taken, case):
    """Each once, in reverse, one after the other; what was saved is gone by its saved id."""
    workflow, given, step, message, undoes = case
    before = tables_of(stage.database)
    run, failed = ended(pawl, stage, workflow, given, f"{workflow}-{step}-fails")
    assert failed is not None
    assert (failed.step, failed.failure_class) == (step, "terminal")
    assert message in str(failed)
    assert failed.rollback == "full"
    history = run.history()
    assert undone(history) == undoes
    have_undo = [each for each in completed(history) if each != "verify"]
    assert undoes == list(reversed(have_undo))
    changes = changes_of(stage.database, run.id)
    assert len(changes) == 2 * len(undoes)
    assert len({each["step_id"] for each in changes}) == len(changes)
    assert left(tables_of(stage.database)) == left(before)


def left(tables):
    """What sagas leave behind when they are undone: that there was a report, an import, a batch."""
    kept = dict(tables)
    kept["reporting"] = [each for each in tables["reporting"]["report"] if each["state"] == "final"]
    kept["ore"] = (
        [each for each in tables["ore"]["import"] if each["state"] == "imported"],
        tables["ore"]["trade"],
    )
    del kept["grid"]  # a batch that was computed stays, whoever wants it
    return kept


@pytest.mark.req("R96", "R117", "R192")
def test_a_rollback_carries_the_ids_that_were_saved(pawl, stage):
    """Also of an import that succeeded with warnings: trades of others are not touched."""
    other, _ = ended(pawl, stage, "ore_import", {**FILE, "file": "other.xml"}, "import-other")
    given = {"file": "w.xml", "trades": [*TRADES, {"name": "c"}], "total": 1}
    run, failed = ended(pawl, stage, "ore_import", given, "import-warned")
    assert failed.rollback == "full"
    saved = run.show()["steps"]["execute"]
    assert (saved["warnings"], saved["undo"]) == (1, "done")
    [asked] = [each for each in run.history() if each["eventType"] == "CompensationTaskAssigned"]
    ids = saved["result"]["saved"]
    assert asked["payload"]["params"] == {"imported": saved["result"]["import"], "saved": ids}
    gone = changes_of(stage.database, run.id)[-1]
    assert gone["result"] == {"deleted": 2}
    kept = {each["id"] for each in tables_of(stage.database)["ore"]["trade"]}
    assert not kept & set(ids)
    assert kept >= set(other.show()["steps"]["execute"]["result"]["saved"])


@pytest.mark.req("R81", "R115")
def test_an_undo_that_fails_is_not_hidden(pawl, stage):
    """The rollback is partial, what it did not come to is told, and nothing is called undone."""
    given = {"name": "keepers", "login": "root", "role": "boss"}
    run, failed = ended(pawl, stage, "provision_parties", given, "partial-1")
    assert failed.rollback == "partial"
    shown = run.show()
    undos = {name: each["undo"] for name, each in shown["steps"].items()}
    assert undos == {"party": "pending", "account": "failed", "link": "none"}
    assert shown["lens"]["ores"] == "failed"
    assert actions(stage, run.id) == ["party keepers saved", "account root saved"]
    told = run.history()[-2]
    assert told["eventType"] == "WorkflowStepCompensationFailed"
    assert "cannot be deleted" in told["payload"]["failure"]["message"]


@pytest.mark.req("R93", "R94", "R192")
def test_every_import_has_an_instance(pawl, stage):
    """Asked for over NATS; asked twice, it is one."""

    async def story():
        async with Client(stage.nats) as client:
            ids = []
            for n in range(6):
                asked = {**FILE, "file": f"{n}.xml", "total": 100 if n % 2 else 1}
                ids.append(await client.start("ore_import", asked, f"import-{n}"))
                assert await client.start("ore_import", asked, f"import-{n}") == ids[-1]
            with pytest.raises(RefusedError, match=r"instance\.conflict"):
                await client.start("ore_import", {**FILE, "file": "z"}, "import-0")
            with pytest.raises(RefusedError, match=r"workflow\.unknown"):
                await client.start("ore_export", FILE, "import-0")
            with pytest.raises(RefusedError, match=r"input\.invalid"):
                await client.start("ore_import", {}, "import-9")
            return ids, [await client.closed(each, "ore_import") for each in ids]

    ids, rows = asyncio.run(story())
    assert [each["rollback"] for each in rows] == ["full", "none"] * 3
    imports = tables_of(stage.database)["ore"]["import"]
    of_each = {each["instance"]: each["state"] for each in imports}
    assert len(of_each) == len(imports)
    assert [of_each[each] for each in ids] == ["rolled back", "imported"] * 3
    known = {each["id"] for each in pawl.list(workflow="ore_import", limit=1_000)}
    assert set(of_each) <= known


@pytest.mark.req("R114", "R144", "R145")
def test_commands_and_completions_that_come_again_change_nothing(pawl, stage):
    """Every message of a saga that was undone, once more; also to services without a memory."""

    def go():
        given = {"name": "again", "login": "again", "role": "boss"}
        return ended(pawl, stage, "provision_parties", given, "again-1")[0]

    run, heard = asyncio.run(record(stage, go))
    commands = [each for each in heard if not each.subject.startswith("workflow")]
    assert len(commands) == 5
    before, journal = everything(stage), run.history()

    async def again():
        async with Client(stage.nats) as client:
            told = await client.connection.subscribe("workflow.v1.events.step-completed")
            stream = client.connection.jetstream()
            for each in heard:
                await stream.publish(each.subject, each.data, headers=each.headers)
            told_again = [json.loads((await told.next_msg(30)).data) for _ in range(10)]
            forget(stage)
            for each in commands:
                await stream.publish(each.subject, each.data, headers=each.headers)
            for service in ("refdata", "iam"):
                await taken_by(stream, service)
            return {each["step_id"] for each in told_again}

    assert len(asyncio.run(again())) == 5
    assert (everything(stage), run.history()) == (before, journal)


async def record(stage, go):
    """What is said while something is done; each message alone, also if it came in a batch."""
    heard = []

    async def keep(message):
        if not message.headers or "X-Batch-Size" not in message.headers:
            heard.append(Letter(message.subject, message.data, message.headers or {}))
            return
        heard.extend(part.alone for part in unpacked(message.data))

    async with Client(stage.nats) as client:
        for subject in (
            "refdata.v1.>",
            "iam.v1.>",
            "workflow.v1.events.>",
            "workflow.v1.batches.>",
        ):
            await client.connection.subscribe(subject, cb=keep)
        await client.connection.flush()
        told = await asyncio.to_thread(go)
        await client.connection.flush()
        return told, list(heard)


def forget(stage):
    """Two services no longer know what they have carried out."""
    with psycopg.connect(stage.database) as db:
        db.execute("DELETE FROM refdata.pawl_worker_commands")
        db.execute("DELETE FROM iam.pawl_worker_commands")


async def taken_by(stream, service):
    """Wait until a service has taken every command."""
    while True:
        info = await stream.consumer_info("PAWL_COMMANDS", service)
        if info.num_pending == 0 and info.num_ack_pending == 0:
            return


@pytest.mark.req("R68", "R194")
@pytest.mark.parametrize("count", [0, 1, 50])
def test_a_bundle_has_as_many_steps_as_datasets(pawl, stage, count):
    given = bundle(count, f"n{count}")
    run, failed = ended(pawl, stage, "bundle_publish", given, f"bundle-{count}")
    assert failed is None
    names = [f"publish-n{count}-{n}" for n in range(count)]
    assert list(run.show()["steps"]) == [*names, "seal"]
    assert completed(run.history()) == [*names, "seal"]  # each needs the one before
    assert run.show()["output"] == {"datasets": count}


def test_a_dataset_that_fails_leaves_those_before_it(pawl, stage):
    """There is no undo; published once more by another instance, nothing is another."""
    given = bundle(3, "f")
    given["datasets"][2]["revision"] = 0
    run, failed = ended(pawl, stage, "bundle_publish", given, "bundle-fails")
    assert (failed.step, failed.rollback) == ("publish-f-2", "none")
    assert actions(stage, run.id) == ["f-0 published", "f-1 published"]
    given["datasets"][2]["revision"] = 4
    second, failed = ended(pawl, stage, "bundle_publish", given, "bundle-mended")
    assert failed is None
    shown = tables_of(stage.database)["publishing"]["dataset"]
    revisions = {each["name"]: each["revision"] for each in shown if each["name"].startswith("f-")}
    assert revisions == {"f-0": 1, "f-1": 1, "f-2": 4}
    assert len(actions(stage, second.id)) == 4


def test_a_bundle_that_makes_no_sense_is_refused_at_once(pawl):
    circle = [{"name": "a", "revision": 1, "needs": ["a"]}]
    stranger = [{"name": "a", "revision": 1, "needs": ["b"]}]
    for datasets, said in ((circle, "CycleError"), (stranger, "none of that name")):
        with pytest.raises(Exception, match=said) as refused:
            pawl.start("bundle_publish", {"bundle": "x", "datasets": datasets})
        assert refused.value.code == "flow.raised"


@pytest.mark.req("R199")
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_knows_no_saga(name):
    """It knows the worker library, its own tables and its own commands, and nobody else."""
    path = ROOT / "examples" / "ores" / "services" / f"{name}.py"
    tree = ast.parse(path.read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module)
        if isinstance(node, ast.Import):
            imported |= {each.name for each in node.names}
    ours = {each for each in imported if each.startswith(("pawlflow", "examples"))}
    assert ours == {"pawlflow.worker", "examples.ores.services.tables"}
    assert not {each for each in imported if each.partition(".")[0] == "nats"}
    texts = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant)}
    texts = {each for each in texts if isinstance(each, str)}
    others = [each for each in SERVICES if each != name]
    assert not [text for text in texts for each in others if f"{each}.v1." in text]
    assert not [text for text in texts if "workflow.v1" in text]
    sources = path.read_text()
    for word in ("ctx.step", "ctx.undo", "ctx.workflow", "ctx.attempt"):
        assert word not in sources, "a service does not ask which step of which saga this is"


def test_the_tables_of_a_service_are_its_own():
    """SQL names no schema: each service sees the one that its connection has."""
    folder = ROOT / "examples" / "ores" / "services"
    named = re.compile(
        rf"(?:FROM|INTO|UPDATE|JOIN|TABLE(?: IF NOT EXISTS)?) (?:{'|'.join(SERVICES)})\."
    )
    for path in folder.glob("*.py"):
        assert not named.findall(path.read_text()), path
    assert named.findall("UPDATE grid.batch SET told = true")


@pytest.mark.req("R44", "R230")
def test_a_secret_is_nowhere_but_with_its_service(pawl, stage):
    """The journal, its payloads and every message have the reference alone."""

    def go():
        given = {**PARTY, "name": "sec", "login": "sec"}
        return ended(pawl, stage, "provision_parties", given, "secret-1")

    _, heard = asyncio.run(record(stage, go))
    secret = stage.environment["IAM_SECRET_FIRST_PASSWORD"].encode()
    with psycopg.connect(stage.database) as db:
        names = db.execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        kept = "".join(
            str(row[0])
            for schema, table in names
            for row in db.execute(f'SELECT each::text FROM "{schema}"."{table}" each').fetchall()
        )
    assert secret.hex() not in kept
    assert secret.decode() not in kept
    assert b"first-password".hex() in kept
    found = [each.data for each in heard]
    assert [each for each in found if b"first-password" in each]
    assert not [each for each in found if secret in each]
