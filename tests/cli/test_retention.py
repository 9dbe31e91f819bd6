"""`pawl retain`, `pawl archive`, and what the other verbs say of an instance that was removed."""

import asyncio
import json

import pytest

from pawlflow.embedded import Pawl
from pawlflow.testing import Lab
from tests.cli.kit import pawl
from tests.testing.lab_kit import workflow

KEPT = workflow(
    "kept",
    "retention: {completed: 30d, failed: 36500d}",
    "search: {who: input.who}",
    steps=("name: a, run: x.a, timeout: 1m",),
)
OPEN = workflow("open", steps=("name: w, wait: {event: never}",))
pytestmark = pytest.mark.req("R218")


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A store of years ago: two completed instances of two tenants, a cancelled and an open one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PAWL_DB", f"sqlite:///{tmp_path}/shop.db")

    async def play():
        async with Lab(f"sqlite:///{tmp_path}/shop.db", now="2020-01-01T00:00Z") as lab:
            lab.add(KEPT)
            lab.add(OPEN)
            lab.script("x.a", "fine")
            await (await lab.start("kept", {"who": "ann"}, id="old")).result()
            await lab.skip("1s")
            await (await lab.start("kept", {"who": "bob"}, id="other", tenant="acme")).result()
            await lab.skip("1s")
            lab.script("x.a", hang=True)
            await lab.start("kept", {"who": "eve"}, id="stopped")
            await lab.cancel("stopped")
            await lab.start("open", {}, id="waits")
            await lab.skip("1h")

    asyncio.run(play())
    return tmp_path


def told(*arguments):
    """What a verb says in JSON."""
    done = pawl(*arguments, "--json")
    return json.loads(done.stdout)


def test_what_is_over_is_listed_first(shop):
    """Nothing is done without --now; of all tenants, or of the one that is named."""
    found = told("retain")
    assert (found["over"], found["dry_run"]) == (2, True)
    assert [row["id"] for row in found["instances"]] == ["old", "other"]
    assert found["instances"][0]["kept_until"] == "2020-01-31T00:00:00.000Z"
    assert found["next_at"].startswith("2119")
    assert told("retain", "--tenant", "acme")["over"] == 1
    plain = pawl("retain", "--dry-run")
    assert "old  completed at 2020-01-01T00:00:00.000Z, kept until 2020-01-31" in plain.stdout
    assert "the time of 2 instances is over; the next one's is at 2119" in plain.stderr
    assert {row["id"] for row in told("ls")} == {"old", "stopped", "waits"}
    assert pawl("retain", "--dry-run", "--now").exit_code == 2


def test_now_removes_it_and_everybody_says_so(shop):
    """`show` ends with 4 and tells when and how; the store verifies; the archive does too."""
    done = told("retain", "--now", "--archive", shop / "archive")
    assert (done["removed"], done["kept"]) == (2, [])
    assert told("retain")["over"] == 0

    gone = pawl("show", "old")
    assert gone.exit_code == 4
    assert "as the retention of kept says: it was completed at 2020-01-01" in gone.stderr
    for verb in (["why", "old"], ["history", "old"], ["cancel", "old"], ["wait", "old"]):
        assert told(*verb)["error"]["code"] == "instance.removed"
    assert told("show", "nobody")["error"]["code"] == "instance.unknown"

    replayed = told("replay", "--all")
    assert (replayed["same"], replayed["removed"]) == (True, 2)
    assert "2 removed, their hashes stay" in pawl("replay", "--all").stdout
    assert pawl("doctor", "--deep").exit_code == 0
    verified = told("journal", "verify", shop / "archive", "--store")
    assert [each["same"] for each in verified] == [True, True]
    assert {each["file"] for each in verified} == {each["archive"] for each in done["instances"]}


def test_a_tenant_by_itself(shop):
    """Only its instances go."""
    assert pawl("retain", "--now", "--tenant", "acme").stdout == "1 instance removed\n"
    assert {row["id"] for row in told("ls")} == {"old", "stopped", "waits"}
    assert told("ls", "--tenant", "acme") == []


def test_beside_an_owner_it_goes_by_mail(shop):
    """The owner answers; the second terminal only asks. An engine that may not removes nothing."""

    async def main():
        async with Pawl(f"sqlite:///{shop}/shop.db", retention=False):
            return await asyncio.to_thread(told, "retain", "--now")

    assert asyncio.run(main())["removed"] == 2
    assert told("replay", "--all")["same"]


def test_archives_are_written_and_nothing_is_removed(shop):
    """By id, or by a filter; an open instance has none, and a changed file is refused."""
    rows = told("archive", "old", "stopped", "--to", shop / "files")
    assert [(row["id"], row["state"], row["turns"]) for row in rows] == [
        ("old", "completed", 2),
        ("stopped", "cancelled", rows[1]["turns"]),
    ]
    many = told("archive", "--closed-before", "2020-01-02", "--to", shop / "all")
    assert [row["id"] for row in many] == ["stopped", "old"]
    assert told("archive", "--workflow", "kept", "--state", "completed", "--to", shop / "all") != []
    assert len(told("ls")) == 3
    none = pawl("archive", "--closed-before", "2019-01-01", "--to", shop / "none")
    assert (none.exit_code, "verify" in none.stderr, (shop / "none").exists()) == (0, False, False)

    assert told("archive", "waits", "--to", shop)["error"]["code"] == "archive.open"
    assert pawl("archive", "--to", shop).exit_code == 2
    assert pawl("archive", "old", "--workflow", "kept", "--to", shop).exit_code == 2
    assert told("archive", "nobody", "--to", shop)["error"]["code"] == "instance.unknown"
    path = shop / "files" / rows[0]["file"]
    assert pawl("journal", "verify", path, "--store").exit_code == 0
    data = path.read_bytes()
    path.write_bytes(data[:-40] + bytes([data[-40] ^ 1]) + data[-39:])
    assert pawl("journal", "verify", path).exit_code == 5


def test_an_archive_of_another_store_is_refused(shop, monkeypatch):
    """By itself it is as good as before."""
    pawl("archive", "old", "--to", shop / "files")
    monkeypatch.setenv("PAWL_DB", f"sqlite:///{shop}/empty.db")

    async def main():
        async with Lab(f"sqlite:///{shop}/empty.db"):
            pass

    asyncio.run(main())
    assert pawl("journal", "verify", shop / "files").exit_code == 0
    found = told("journal", "verify", shop / "files", "--store")
    assert found["error"]["code"] == "journal.elsewhere"


def test_a_backup_brings_back_what_was_removed_since(shop):
    """It has what it had; restored, what is over goes again, and all verifies."""
    assert pawl("backup", shop / "before.db").exit_code == 0
    assert told("retain", "--now")["removed"] == 2
    assert pawl("backup", shop / "after.db").exit_code == 0
    assert pawl("restore", shop / "before.db", "--force").exit_code == 0
    assert told("show", "old")["state"] == "completed"
    assert told("retain", "--now")["removed"] == 2
    assert pawl("restore", shop / "after.db", "--force").exit_code == 0
    assert told("show", "old")["error"]["code"] == "instance.removed"
    replayed = told("replay", "--all")
    assert (replayed["same"], replayed["removed"]) == (True, 2)
