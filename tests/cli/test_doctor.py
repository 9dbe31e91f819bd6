"""`pawl doctor` on servers: what is unsafe, what is away, and what NATS says it keeps."""

import asyncio
import signal
import subprocess

import nats as client
import pytest
from nats.js import api

from pawlflow.cli.doctor import exit_code, far_check
from pawlflow.cli.doctor_servers import (
    Check,
    clock_check,
    commits,
    connections,
    flushing,
    server_checks,
    storage,
)
from pawlflow.embedded import Pawl
from pawlflow.services import protocol
from tests.cli.test_postgres import ServerPlace
from tests.servers import Nats, Postgres

NAMES = [
    *("python", "pawlflow", "sqlite", "store", "owner", "pages", "journals", "psycopg"),
    *("server", "flushing", "commits", "clock", "pooler", "connections"),
]


def named(found):
    """The checks by their names."""
    return {each["name"]: each for each in found["checks"]}


@pytest.fixture
def server(place, postgres):
    made = ServerPlace(place.folder)
    made.url = postgres.fresh()
    made.told("start", "release.yaml", "--id", "r-1")
    return made


# PostgreSQL


@pytest.fixture(scope="module")
def safe():
    """A server that flushes, as one of a user does."""
    made = Postgres()
    made.execute("ALTER SYSTEM SET fsync = on", database="postgres")
    made.restart()
    yield made
    made.remove()


def test_a_server_that_is_fine_is_told_check_by_check(place, safe):
    """Versions, flushing, clock, connections, pooler; the names are for machines to rely on."""
    server = ServerPlace(place.folder)
    server.url = safe.fresh()
    server.told("start", "release.yaml", "--id", "r-1")

    found = server.told("doctor")

    checks = named(found)
    assert list(checks) == NAMES
    assert {each["status"] for each in checks.values()} == {"ok"}
    assert (found["ok"], checks["pooler"]["detail"]) == (True, "none: pokes are heard")
    assert " connections are used" in checks["connections"]["detail"]
    with server.owner("wait", "r-1", "--stubs", "stubs.yaml"):
        owned = named(until_owned(server))["owner"]["detail"]
    assert "(32 shards" in owned


def until_owned(server):
    """What the doctor says once somebody drives the store."""
    found = server.told("doctor")
    while named(found)["owner"]["detail"] == "nobody drives it now":
        found = server.told("doctor")
    return found


def test_a_replica_that_went_away_holds_the_log_up(place, safe):
    """Its slot is named, for somebody has to drop it."""
    server = ServerPlace(place.folder)
    server.url = safe.fresh()
    server.told("start", "release.yaml", "--id", "r-1")
    safe.execute("SELECT pg_create_physical_replication_slot('gone')")
    found = server.told("doctor")
    safe.execute("SELECT pg_drop_replication_slot('gone')")

    slots = named(found)["slots"]
    assert (slots["status"], "nobody reads gone" in slots["detail"]) == ("warn", True)


@pytest.mark.parametrize(
    ("offset", "doubt", "status"),
    [
        (0, 1, "ok"),
        (-499, 0, "ok"),
        (500, 0, "warn"),
        (600, 200, "ok"),
        (-4_999, 0, "warn"),
        (5_000, 0, "fail"),
        (-5_100, 50, "fail"),
    ],
)
def test_clocks_may_be_half_a_second_apart(offset, doubt, status):
    """From half a second on it is a warning, from the length of a lease on unsafe."""
    found = clock_check(offset, doubt)
    assert (found.status, f"{offset:+,} ms" in found.detail) == (status, True)
    assert ("NTP" in found.detail) == (status != "ok")


def test_settings_of_a_server_are_judged():
    """What may lose a commit is unsafe; what only might is a warning."""
    facts = {"fsync": "on", "full_page_writes": "on"}
    assert flushing(facts).status == "ok"
    assert flushing(facts | {"full_page_writes": "off"}).status == "warn"
    assert flushing(facts | {"fsync": "off"}).status == "fail"
    assert [commits(each).status for each in ("on", "off", "remote_apply")] == ["ok"] * 3
    assert [connections(used, 97).status for used in (5, 90)] == ["ok", "warn"]
    assert [storage(9, most).status for most in (-1, 100, 10)] == ["ok", "ok", "warn"]


def test_replicas_that_commits_do_not_wait_for_are_a_warning():
    """With a name in synchronous_standby_names they are none."""
    plain = {
        "server": "16",
        "database": "d",
        "schema": "pawl",
        "fsync": "on",
        "replicas": 1,
        "full_page_writes": "on",
        "synchronous_commit": "on",
        "idle_slots": [],
        "clock_ms": 0,
        "clock_doubt_ms": 0,
        "pooled": True,
        "connections": 1,
        "connections_max": 100,
    }
    for names, status in (("", "warn"), ("b", "ok")):
        checks = {e.name: e for e in server_checks(plain | {"synchronous_standby_names": names})}
        assert checks["replicas"].status == status
        assert "once a second" in checks["pooler"].detail


def test_the_exit_code_says_the_worst():
    """Nothing, warnings, unreachable, unsafe."""
    ok, warn = Check("a", "ok", ""), Check("b", "warn", "")
    away, bad = Check("c", "fail", "", "nats.unreachable"), Check("d", "fail", "")
    assert [exit_code(each) for each in ([ok], [ok, warn], [warn, away], [away, bad])] == [
        *(0, 0, 69, 5),
    ]


def test_a_file_on_another_machine_is_unsafe(tmp_path, monkeypatch):
    """The nearest mount above the file decides."""
    mounts = tmp_path / "mounts"
    monkeypatch.setattr("pawlflow.cli.doctor.MOUNTS", mounts)
    mounts.write_text("/dev/sda / ext4 rw 0 0\nfiler:/x /srv nfs4 rw 0 0\n/dev/b /srv/a xfs rw\n")
    found = [[e.status for e in far_check(tmp_path.__class__(at))] for at in PLACES]
    assert found == [[], ["fail"], []]


PLACES = ("/home/pawl.db", "/srv/pawl.db", "/srv/a/pawl.db")


# NATS


async def opened(url, folder):
    """An engine with NATS comes and goes."""
    async with Pawl(f"sqlite:///{folder}/nats.db", nats=url):
        return


@pytest.fixture
def empty(nats):
    """A server that nobody else uses, if there can be one."""
    assert nats.program
    made = Nats()
    yield made
    made.remove()


def test_nats_is_looked_at(place, empty):
    """The server, JetStream, each stream and consumer: missing ones are made by an engine."""
    before = named(place.told("doctor", "--nats", empty.url))
    asyncio.run(opened(empty.url, place.folder))
    after = named(place.told("doctor", "--nats", empty.url))

    assert before["nats"]["detail"].startswith("nats-server 2.")
    assert before["jetstream"]["status"] == "ok"
    streams = ("stream:PAWL_COMPLETIONS", "stream:PAWL_DEAD_LETTERS")
    for name in (*streams, "consumer:pawl", "consumer:pawl-batches"):
        assert (after[name]["status"], "as asked for" in after[name]["detail"]) == ("ok", True)
    for name in ("stream:PAWL_COMMANDS", "stream:PAWL_BATCHES"):
        assert "not there yet" in after[name]["detail"]


async def meddled(url):
    """Somebody makes streams and consumers of ours, in their own way."""
    connection = await client.connect(url)
    js = connection.jetstream()
    for name in (protocol.COMPLETIONS.name, protocol.COMMANDS):
        try:
            await js.delete_stream(name)
        except client.js.errors.NotFoundError:
            continue
    await js.add_stream(
        name=protocol.COMPLETIONS.name,
        subjects=[protocol.COMPLETED],
        storage=api.StorageType.MEMORY,
        max_age=60,
    )
    await js.add_stream(name=protocol.COMMANDS, subjects=["a.v1.b.c"], max_age=protocol.DAY_S)
    config = api.ConsumerConfig(
        durable_name="a",
        deliver_subject="workflow.v1.deliver.a",
        deliver_group="a",
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=77,
        filter_subject="a.v1.b.c",
    )
    await js.add_consumer(protocol.COMMANDS, config)
    await connection.close()


def test_what_nats_keeps_in_another_way_is_named(place, empty):
    """Each difference with what is wanted and found, and the way out; exit 5."""
    asyncio.run(meddled(empty.url))
    found = named(place.told("doctor", "--nats", empty.url, exits=5))

    stream, consumer = found["stream:PAWL_COMPLETIONS"], found["consumer:a"]
    assert stream["status"] == consumer["status"] == "fail"
    for words in ("storage is memory, wanted file", "max_age is 60", "retention is limits"):
        assert words in stream["detail"]
    assert "ack_wait is 77" in consumer["detail"]
    assert "delete the consumer a, and it is made anew" in consumer["detail"]


def test_a_server_that_keeps_nothing_is_unsafe(place, nats):
    """JetStream is off: nothing that is sent there would be kept."""
    words = [nats.program, "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(place.folder)]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        line = next(each for each in process.stderr if "client connections" in each)
        url = f"nats://{line.split()[-1]}"
        found = named(place.told("doctor", "--nats", url, exits=5))
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert (found["jetstream"]["status"], "-js" in found["jetstream"]["detail"]) == ("fail", True)


def test_a_server_that_is_away_is_unreachable(place, monkeypatch):
    """Exit 69, and no password."""
    monkeypatch.setattr("pawlflow.bus.nats.CONNECT_S", 0.3)
    found = place.told("doctor", "--nats", "nats://me:secret@127.0.0.1:1", exits=69)
    assert named(found)["nats"]["code"] == "nats.unreachable"
    assert "secret" not in str(found)
