"""`ls`, `show`, `history`, `why` and `trace`: looking, in words and as JSON."""

import json

import pytest

from tests.cli.kit import pawl

ROW = {
    *("id", "workflow", "version", "tenant", "state", "rollback", "started_at", "closed_at"),
    *("created_at", "start_at", "search"),
}
SHOWN = {
    *("id", "tenant", "workflow", "version", "definition_hash", "state", "rollback", "lens"),
    *("input", "output", "error", "started_at", "closed_at", "turns", "steps", "waiting"),
}
STEP = {"state", "attempts", "undo", "result", "error", "started_at", "ended_at", "feedback"}


@pytest.fixture
def busy(place):
    """One instance that completed, one that failed, one that waits, and one of another tenant."""
    run = ("run", "order.yaml", "--worker", "shop_steps.py", "--by", "zoe", "--input")
    place.pawl(*run, '{"amount": 1}', "--id", "o-1")
    place.pawl(*run, '{"amount": 200}', "--id", "o-2")
    wait = ("--stubs", "stubs.yaml", "--timeout", "200ms")
    place.pawl("run", "release.yaml", "--id", "r-1", "--by", "zoe", *wait)
    place.pawl(*run, '{"amount": 1}', "--id", "o-1", "--tenant", "acme")
    return place


@pytest.mark.req("R183")
def test_instances_are_listed_by_state_workflow_and_tenant(busy):
    """Newest first; filtered in the store; of one tenant."""
    rows = busy.told("ls")
    by_state = busy.told("ls", "--state", "failed", "--state", "waiting")

    assert [row["id"] for row in rows] == ["r-1", "o-2", "o-1"]
    assert set(rows[0]) == ROW
    assert [row["id"] for row in by_state] == ["r-1", "o-2"]
    assert [row["id"] for row in busy.told("ls", "--workflow", "order")] == ["o-2", "o-1"]
    assert [row["tenant"] for row in busy.told("ls", "--tenant", "acme")] == ["acme"]
    assert busy.told("ls", "--tenant", "nobody") == []
    table = busy.pawl("ls").stdout
    assert table.splitlines()[0].split() == ["INSTANCE", "WORKFLOW", "STATE", "STARTED", "TOOK"]
    assert "✗ failed" in table
    assert "no instance" in busy.pawl("ls", "--state", "queued").stderr
    assert busy.pawl("ls", "--state", "broken").exit_code == 2


@pytest.mark.req("R183")
def test_a_long_list_has_pages(busy):
    """`--limit` bounds a page, `--after` goes on; every instance is on one page."""
    seen = []
    page = busy.pawl("ls", "--limit", "1")
    while "--after" in page.stderr:
        after = page.stderr.strip().rpartition(" ")[2]
        seen.append(after)
        page = busy.pawl("ls", "--limit", "1", "--after", after)

    assert sorted(seen) == ["o-1", "o-2", "r-1"]


@pytest.mark.req("R181", "R184")
def test_an_instance_is_shown(busy):
    """As a tree, and as the object that is promised."""
    shown = busy.shown("o-2")
    tree = busy.pawl("show", "o-2").stdout

    assert set(shown) >= SHOWN
    assert set(shown["steps"]["charge"]) >= STEP
    assert set(shown["lens"]) == {"control-plane", "kernel", "ioa", "ores"}
    assert shown["error"]["step"] == "charge"
    assert "✗ charge" in tree
    assert "the card was refused" in tree
    assert all(line == line.rstrip() for line in tree.splitlines())


@pytest.mark.req("R187")
def test_the_past_is_shown_turn_by_turn(busy):
    """After any turn, as it was then; a turn it does not have is not found."""
    turns = busy.shown("o-1")["turns"]

    states = [busy.told("show", "o-1", "--at", at)["state"] for at in range(1, turns + 1)]

    assert states == ["running", "running", "completed"]
    assert "● charge" in busy.pawl("show", "o-1", "--at", "1").stdout
    missing = busy.told("show", "o-1", "--at", 99, exits=4)
    assert missing["error"]["code"] == "turn.unknown"
    lens = busy.pawl("show", "r-1", "--lens", "control-plane").stdout
    assert lens.endswith("control-plane: AwaitingApproval\n")


@pytest.mark.req("R181", "R182")
def test_why_history_and_trace(busy):
    """Cause and hint; published events; turns tied together by their intents."""
    why = busy.pawl("why", "o-2").stdout
    history = busy.pawl("history", "o-2").stdout
    trace = busy.pawl("trace", "o-2").stdout

    assert "charge" in why
    assert why.splitlines()[-1].startswith("next")
    assert "WorkflowInstanceFailed" in history.splitlines()[-1]
    assert trace.startswith("turn 1 ")
    told = busy.told("trace", "o-2")
    assert told[0]["calls"][0]["intent"] == told[1]["input"]["intent"]
    assert busy.told("why", "o-2")["state"] == "failed"
    envelope = busy.told("history", "o-2")[0]
    assert envelope["eventType"] == "WorkflowInstanceCreated"
    assert envelope["actor"] == "zoe"


def test_a_closed_instance_is_watched_to_its_end(busy):
    """All lines at once, and done."""
    done = busy.pawl("watch", "o-1")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].endswith("completed")


LOOKS = ["show", "history", "why", "trace", "watch", "wait", "replay", "cancel", "pause"]


@pytest.mark.parametrize("verb", LOOKS)
def test_an_unknown_instance_is_not_found(busy, verb):
    """Exit 4, with the ids that may have been meant; system cells are none."""
    done = busy.pawl(verb, "o-3")

    assert done.exit_code == 4, done.output
    assert "did you mean" in done.stderr
    assert "o-1" in done.stderr
    assert "[instance.unknown]" in done.stderr
    assert busy.told(verb, "zzz", exits=4)["error"]["message"].endswith("`pawl ls` lists them")
    assert busy.pawl(verb, "$registry").exit_code in (2, 4)


EVERY = [
    *(("ls",), ("show", "a"), ("history", "a"), ("watch", "a"), ("why", "a"), ("trace", "a")),
    *(("review", "ls"), ("review", "show", "a"), ("review", "approve", "a"), ("wait", "a")),
    *(("review", "reject", "a"), ("review", "claim", "a")),
    *(("signal", "a", "e"), ("emit", "e"), ("cancel", "a"), ("pause", "a"), ("unpause", "a")),
    *(("resume", "a", "b"), ("reassign", "a", "b", "--to", "R"), ("retry", "a", "b")),
    *(("replay", "a"), ("replay", "--all"), ("dlq", "ls"), ("dlq", "redrive", "1")),
    *(("backup", "to.db"), ("start", "name"), ("run", "name")),
]


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_a_missing_store_is_not_made(place, words):
    """Exit 4 with the way out; no file, no folder."""
    url = f"sqlite:///{place.folder}/deep/pawl.db"

    done = pawl(*words, "--db", url)

    assert done.exit_code == 4, done.output + repr(done.exception)
    assert "[store.missing]" in done.stderr
    assert "`run`, `apply` and `serve` make one" in done.stderr
    assert not (place.folder / "deep").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("signal", "r-1", "e", "--data", "{x}"), "cli.json"),
        (("signal", "r-1", "Bad name"), "event.name"),
        (("emit", "no no"), "event.name"),
        (("emit", "e", "--data", "["), "cli.json"),
        (("retry", "r-1", "gate", "--with", "x"), "cli.json"),
        (("reassign", "r-1", "gate", "--to", "a b"), "cli.usage"),
        (("review", "approve", "r-1", "--role", "9"), "cli.usage"),
        (("review", "claim", "r-1", "--role", "9"), "cli.usage"),
        (("cancel", "a b"), "instance.id"),
        (("replay",), "cli.usage"),
        (("replay", "o-1", "--all"), "cli.usage"),
    ],
)
def test_usage_ends_with_2(busy, words, code):
    """What is asked for in the wrong way changes nothing."""
    assert busy.told(*words, exits=2)["error"]["code"] == code


def test_reviews_are_found_by_instance_and_step(busy):
    """An instance stands for the only review it has; what is not open is not found."""
    shown = busy.told("review", "show", "r-1")

    assert (shown["id"], shown["kind"]) == ("r-1/gate", "approval")
    assert shown["show"] == {"image": "i-1"}
    assert [each.split()[2] for each in shown["hints"]] == ["approve", "reject"]
    assert busy.told("review", "show", "r-1", "--step", "gate")["step"] == "gate"
    assert busy.told("review", "show", "r-1/nope", exits=4)["error"]["code"] == "review.unknown"
    assert busy.told("review", "show", "o-1", exits=4)["error"]["code"] == "review.unknown"
    assert busy.told("review", "ls", "--role", "Nobody") == []
    assert "nothing waits" in busy.pawl("review", "ls", "--tenant", "acme").stderr
    assert "r-1/gate" in busy.pawl("review", "ls").stdout
    refused = busy.told("review", "approve", "o-1/charge", exits=5)
    assert refused["error"]["code"] == "instance.closed"


def test_several_reviews_of_one_instance_must_be_told_apart(place):
    """Which one is meant is asked, not guessed."""
    (place.folder / "two.yaml").write_text(
        "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: two}\n"
        "spec:\n  timeout: 1h\n  steps:\n"
        "    - {name: a, approval: {expires: 1h}}\n    - {name: b, approval: {expires: 1h}}\n"
    )
    place.pawl("start", "two.yaml", "--id", "t-1")

    which = place.told("review", "approve", "t-1", exits=2)

    assert which["error"]["code"] == "review.several"
    assert "t-1/a, t-1/b" in which["error"]["message"]
    assert place.pawl("review", "approve", "t-1", "--step", "a").exit_code == 0
    assert place.pawl("review", "reject", "t-1", "--by", "ann").exit_code == 0
    assert place.state_of("t-1") == "cancelled"


def test_options_before_the_verb_win_over_the_environment(busy, monkeypatch):
    """What is typed goes before PAWL_DB, wherever it stands."""
    monkeypatch.setenv("PAWL_DB", "sqlite:///nowhere.db")
    monkeypatch.setenv("PAWL_TENANT", "acme")

    assert len(busy.told("ls")) == 1
    assert len(busy.told("--tenant", "default", "ls")) == 3
    assert pawl("ls").exit_code == 4
    monkeypatch.setenv("PAWL_LOG", "loud")
    assert busy.pawl("ls").exit_code == 2
    monkeypatch.setenv("PAWL_URL", "http://x")
    assert json.loads(busy.pawl("ls", "--json").stdout)["error"]["code"] == "cli.usage"
