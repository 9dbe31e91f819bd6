"""`apply`, `replay`, `doctor`, `backup` and `restore`: a store kept in order."""

import apsw
import pytest

from pawlflow.kernel.draft import Rejected
from pawlflow.projections import verify
from tests.cli.live_kit import until

RUN = ("run", "order.yaml", "--worker", "shop_steps.py", "--input", '{"amount": 1}', "--id")


def test_definitions_are_published(place):
    """New ones and those that were known; a folder with one that is not valid publishes none."""
    first = place.told("apply", "-f", "order.yaml", "-f", "release.yaml")
    again = place.pawl("apply", "-f", "order.yaml")
    (place.folder / "more").mkdir()
    changed = (place.folder / "order.yaml").read_text().replace("1h", "2h")
    (place.folder / "more" / "order.yaml").write_text(changed)

    assert [(each["name"], each["status"]) for each in first] == [
        ("order", "new"),
        ("release", "new"),
    ]
    assert again.stdout.endswith("unchanged\n")
    assert place.told("apply", "-f", "more")[0]["status"] == "new"
    (place.folder / "more" / "z.yaml").write_text("kind: Workflow\n")
    (place.folder / "more" / "order.yaml").write_text(changed.replace("2h", "3h"))
    broken = place.told("apply", "-f", "more", exits=3)
    assert broken["error"]["findings"][0]["file"].endswith("z.yaml")
    (place.folder / "more" / "z.yaml").unlink()
    assert place.told("apply", "-f", "more")[0]["status"] == "new"


@pytest.mark.req("R11")
def test_a_replay_decides_everything_again(place):
    """The same bytes: 0, for one instance and for the whole store."""
    place.pawl(*RUN, "o-1")

    one = place.told("replay", "o-1")
    every = place.told("replay", "--all")

    assert one == {"id": "o-1", "same": True, "turns": 3, "difference": None}
    assert (every["same"], every["instances"], every["differences"]) == (True, 1, [])
    assert place.pawl("replay", "o-1").stdout == "SAME o-1: 3 turns, the same bytes\n"
    assert place.pawl("replay", "--all").stdout.startswith("SAME ")


@pytest.mark.req("R20")
def test_a_changed_turn_is_named(place):
    """Exit 5, with the instance, the turn and what is wrong with it."""
    place.pawl(*RUN, "o-1")
    with apsw.Connection(str(place.db)) as db:
        db.execute(
            "UPDATE entry SET data = zeroblob(length(data)) WHERE number = 2 AND ref IN ("
            "SELECT ref FROM cell WHERE key = 'o-1')"
        )
    db.close()

    every = place.told("replay", "--all", exits=5)
    one = place.told("replay", "o-1", exits=5)
    said = place.pawl("replay", "--all").stdout

    [found] = [each for each in every["differences"] if each["instance"] == "o-1"]
    assert found["turn"] == 2
    assert one["error"]["code"].startswith(("journal.", "store."))
    assert said.startswith("DIFFERENT")
    assert "o-1 turn 2" in said


@pytest.mark.req("R11")
def test_a_decision_that_is_made_otherwise_is_named(place, monkeypatch):
    """Exit 5, with the turn, what was recorded and what is decided now."""
    place.pawl(*RUN, "o-1")
    monkeypatch.setattr(verify, "step", lambda *_: Rejected("input.misplaced", "no more"))

    one = place.told("replay", "o-1", exits=5)
    every = place.told("replay", "--all", exits=5)
    said = place.pawl("replay", "o-1")

    assert (one["same"], one["difference"]["turn"]) == (False, 1)
    assert ("o-1", 1, "replay.difference") in [
        (each["instance"], each["turn"], each["code"]) for each in every["differences"]
    ]
    assert said.exit_code == 5
    assert said.stdout.startswith("DIFFERENT o-1: turn 1, input\n  recorded: accepted")


def test_the_doctor_checks_machine_and_store(place):
    """Each line says ok, warn or fail; a store that is missing is no failure."""
    before = place.told("doctor")
    place.pawl(*RUN, "o-1")
    after = place.told("doctor")
    deep = place.pawl("doctor", "--deep")

    assert before["ok"]
    assert [each["status"] for each in before["checks"]][-1] == "warn"
    assert not place.db.parent.joinpath("x").exists()
    names = [each["name"] for each in after["checks"]]
    assert names == [
        *("python", "pawlflow", "sqlite", "store", "owner", "pages", "journals", "log", "disk"),
    ]
    assert {each["status"] for each in after["checks"]} == {"ok"}
    assert deep.exit_code == 0
    assert deep.stdout.splitlines()[0].startswith("ok    python")


def test_the_doctor_finds_what_is_damaged(place):
    """Not ours, or cut short: exit 5, and what to do."""
    place.pawl(*RUN, "o-1")
    with apsw.Connection(str(place.db)) as db:
        db.execute("DELETE FROM entry")
    db.close()

    found = place.told("doctor", exits=5)

    assert [each["name"] for each in found["checks"] if each["status"] == "fail"] == ["journals"]
    place.db.write_text("hello")
    [line] = [x for x in place.pawl("doctor").stdout.splitlines() if x.startswith("fail")]
    assert "[store.not_ours]" in line


def test_a_backup_brings_the_past_back(place):
    """Whole, beside nothing else; restoring keeps what was there."""
    place.pawl(*RUN, "o-1")
    saved = place.folder / "saved.db"

    made = place.pawl("backup", saved)
    place.pawl(*RUN, "o-2")
    clash = place.told("backup", saved, exits=5)
    refused = place.told("restore", saved, exits=5)
    restored = place.told("restore", saved, "--force")

    assert made.stdout == f"{saved}: {saved.stat().st_size:,} bytes\n"
    assert (clash["error"]["code"], refused["error"]["code"]) == ("cli.exists", "cli.exists")
    assert [row["id"] for row in place.told("ls")] == ["o-1"]
    assert restored["kept"].endswith("before-restore")
    assert place.pawl("replay", "--all").exit_code == 0
    assert place.told("backup", saved, "--force")["bytes"] > 0
    elsewhere = f"sqlite:///{place.folder}/else/where.db"
    again = place.pawl("restore", saved, "--db", elsewhere)
    assert again.exit_code == 0, again.output
    assert "restored from" in again.stdout
    assert [row["id"] for row in place.told("ls", "--db", elsewhere)] == ["o-1"]
    assert place.told("restore", "nope.db", exits=4)["error"]["code"] == "cli.not_found"
    assert place.told("restore", saved, "--db", "memory:", exits=2)["error"]["code"] == "store.url"
    foreign = place.told("restore", "order.yaml", "--force", exits=5)
    assert foreign["error"]["code"] == "store.not_ours"


def test_a_store_that_is_owned_is_not_restored(place):
    """Its owner must be gone first."""
    run = ("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml")
    with place.owner(*run):
        until(lambda: place.waits_at("r-1", "gate"))
        assert place.pawl("backup", "saved.db").exit_code == 0
        done = place.told("restore", "saved.db", "--force", exits=5)
    assert done["error"]["code"] == "store.owned"
