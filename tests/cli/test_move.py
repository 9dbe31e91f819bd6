"""`pawl move`: what it says, how it ends, and that what was in flight ends in the new place."""

import json

import pytest

from tests.cli.live_kit import until
from tests.cli.test_postgres import ServerPlace
from tests.servers import PASSWORD

ORDER = ("order.yaml", "--input", '{"amount": 1}')


@pytest.fixture
def busy(place):
    """One that is over, and two whose calls are in flight."""
    assert place.pawl("run", *ORDER, "--id", "o-1", "--worker", "shop_steps.py").exit_code == 0
    assert place.pawl("start", *ORDER, "--id", "o-2").exit_code == 0
    assert place.pawl("start", "release.yaml", "--id", "r-2").exit_code == 0
    return place


@pytest.mark.req("R219")
def test_a_project_in_flight_is_moved_and_ends_there(busy, postgres):
    """Counted first, then moved; the old file is only read; replay says that all is the same."""
    with busy.owner("run", "release.yaml", "--id", "r-1", "--stubs", "stubs.yaml"):
        until(lambda: busy.waits_at("r-1", "gate"))
    url = postgres.fresh()
    shown = url.replace(f":{PASSWORD.replace('&', '%26')}@", "@")

    dry = busy.told("move", "--to", url, "--dry-run")
    assert (dry["plan"], dry["to"], dry["counts"]["cells"] > 3) == ("new", shown, True)
    assert busy.pawl("ls", "--db", url).exit_code == 4  # nothing was made there
    moved = busy.told("move", "--to", url)

    assert (moved["to"], moved["verified"], moved["resumed"]) == (shown, True, False)
    assert moved["counts"] == dry["counts"]
    again = busy.pawl("move", "--to", url)
    assert (again.exit_code, "was moved already" in again.stdout) == (0, True)
    for verb in (("start", "release.yaml"), ("signal", "r-1", "health.reported"), ("wait", "r-1")):
        refused = busy.told(*verb, exits=5)["error"]
        assert (refused["code"], shown in refused["message"]) == ("store.moved", True)
    assert busy.shown("r-1")["state"] == "waiting"
    assert "[store.moved]" in busy.pawl("doctor").stdout

    server = ServerPlace(busy.folder)
    server.url = url
    said = ("--by", "ann", "--role", "ReleaseManager")
    with server.owner("wait", "r-1", "--stubs", "stubs.yaml") as owner:
        assert server.pawl("review", "approve", "r-1/gate", *said).exit_code == 0
        assert server.told("signal", "r-1", "health.reported")
        until(lambda: server.state_of("r-1") == "escalated")
        assert server.told("resume", "r-1", "promote", "--by", "ann")["accepted"]
        assert owner.wait(40) == 0
    assert server.pawl("wait", "o-2", "--worker", "shop_steps.py").exit_code == 0
    assert [server.state_of(key) for key in ("o-1", "o-2", "r-1")] == ["completed"] * 3
    assert server.pawl("replay", "--all").exit_code == 0
    assert PASSWORD not in server.told_all


@pytest.mark.req("R219")
def test_the_way_back_is_told(busy, postgres):
    """Undone while nothing has happened there, refused when something has."""
    url = postgres.fresh()
    assert busy.pawl("move", "--to", url).exit_code == 0
    assert busy.told("move", "--undo", exits=5)["error"]["code"] == "move.target"
    undone = busy.pawl("move", "--undo", "--to", url)
    assert (undone.exit_code, "is used again" in undone.stdout) == (0, True)
    assert busy.told("pause", "r-2", "--by", "ann")["accepted"]
    assert busy.told("pause", "r-2", "--db", url, exits=5)["error"]["code"] == "store.moved"

    other = postgres.fresh()
    assert busy.pawl("move", "--to", other).exit_code == 0
    assert busy.pawl("unpause", "r-2", "--by", "ann", "--db", other).exit_code == 0
    assert busy.told("move", "--undo", "--to", other, exits=5)["error"]["code"] == "move.ahead"
    file = f"sqlite:///{busy.folder}/new.db"
    assert busy.pawl("move", "--db", other, "--to", file).exit_code == 0
    assert not json.loads(busy.pawl("show", "r-2", "--db", file, "--json").stdout).get("paused")


@pytest.mark.parametrize(
    ("words", "exits", "code"),
    [
        ((), 2, "cli.usage"),
        (("--to", "URL", "--force"), 2, "cli.usage"),
        (("--undo", "--dry-run"), 2, "cli.usage"),
        (("--undo",), 5, "move.none"),
        (("--to", "memory:"), 2, "store.url"),
        (("--to", "nowhere"), 2, "store.url"),
        (("--to", "sqlite:///pawl.db"), 2, "move.same"),
        (("--to", "sqlite:///pawl.db", "--dry-run"), 2, "move.same"),
        (("--to", "postgresql://pawl@127.0.0.1:1/x"), 69, "store.unreachable"),
        (("--to", "sqlite:///new.db", "--db", "sqlite:///missing.db"), 4, "store.missing"),
    ],
)
def test_what_cannot_be_is_told_by_its_exit_code(busy, words, exits, code):
    """And nothing is marked, nor made."""
    assert busy.told("move", *words, exits=exits)["error"]["code"] == code
    assert busy.told("pause", "r-2", "--by", "ann")["accepted"]
    assert not (busy.folder / "new.db").exists()


def test_an_owner_goes_on(busy):
    """A store that is at work is not moved, and its owner does not notice."""
    with busy.owner("run", "release.yaml", "--stubs", "stubs.yaml") as owner:
        until(lambda: "nobody" not in json.dumps(busy.told("doctor")["checks"]))
        refused = busy.told("move", "--to", "sqlite:///new.db", exits=5)
        assert refused["error"]["code"] == "store.owned"
        dry = busy.told("move", "--to", "sqlite:///new.db", "--dry-run")  # which counts, and warns
        assert (dry["plan"], dry["owned"]) == ("new", [dry["from"]])
        assert "[store.owned]" in busy.pawl("move", "--to", "sqlite:///new.db", "--dry-run").stderr
        assert owner.poll() is None
    assert busy.told("move", "--to", "sqlite:///new.db", "--dry-run")["owned"] == []
    assert not (busy.folder / "new.db").exists()
