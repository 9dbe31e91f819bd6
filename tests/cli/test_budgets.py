"""Reviews of budgets from the command line: looked at, raised, refused; on a real file."""

import json

import pytest

from tests.cli.live_kit import until

BOOKLET = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: booklet}
spec:
  timeout: 4h
  budget: {usd: {soft: 0.7, hard: 1}, tokens: {hard: 9000}}
  steps:
    - {name: outline, run: write, cost: {usd: 0.4}, timeout: 1h}
    - {name: draft, run: write, cost: {usd: 0.4, tokens: 500}, timeout: 1h}
    - name: pictures
      run: draw
      cost: {usd: 0.4}
      timeout: 1h
      onFailure: skip
  output: ${ steps.pictures }
"""
STUBS = """\
outline: [{ok: {}, usage: {usd: 0.35}}]
draft: [{ok: {}}]
pictures: [{ok: {pages: 3}, usage: {usd: 0.1}}]
"""
RUN = ("run", "booklet.yaml", "--id", "b-1", "--by", "zoe", "--stubs", "booklet.stubs.yaml")
APPROVE = ("review", "approve", "b-1/pictures", "--by", "ann", "--comment", "worth it")


@pytest.fixture
def held(place):
    """A booklet whose pictures the budget holds; nobody drives its store."""
    (place.folder / "booklet.yaml").write_text(BOOKLET)
    (place.folder / "booklet.stubs.yaml").write_text(STUBS)
    assert place.pawl(*RUN, "--timeout", "300ms").exit_code == 75
    assert place.waits_at("b-1", "pictures")
    return place


@pytest.mark.req("R205", "R186", "R163")
def test_a_held_step_is_told_by_every_verb_that_looks(held):
    """In the list, the review, the object, the tree, the reason and the history."""
    [row] = held.told("review", "ls")
    assert (row["id"], row["kind"], row["role"], row["due_at"]) == (
        *("b-1/pictures", "budget"),
        *(None, None),
    )
    assert row["show"]["unit"] == "usd"
    review = held.told("review", "show", "b-1")
    figures = {"unit": "usd", "limit": 1, "spent": 0.75, "reserved": 0, "needed": 1.15}
    assert {name: review[name] for name in figures} == figures
    assert review["hints"] == [
        """pawl review approve b-1/pictures --by NAME --limits '{"usd": 1.15}'""",
        "pawl review reject b-1/pictures --by NAME",
    ]
    text = held.pawl("review", "show", "b-1").stdout
    for line in ("unit     usd", "limit    1", "spent    0.75", "reserved 0", "needed   1.15"):
        assert line in text
    shown = held.shown("b-1")
    assert shown["state"] == "running"
    assert shown["budget"] == {
        "usd": {"soft": 0.7, "hard": 1, "spent": 0.75, "reserved": 0},
        "tokens": {"soft": None, "hard": 9000, "spent": 500, "reserved": 0},
    }
    assert (shown["steps"]["pictures"]["held"], shown["steps"]["draft"]["held"]) == (True, False)
    [waiting] = shown["waiting"]
    assert (waiting["step"], waiting["kind"], waiting["until"]) == ("pictures", "budget", None)
    tree = held.pawl("show", "b-1").stdout
    assert "ready, held by the budget" in tree
    assert "usd 0.75 of 1" in tree
    assert "is held by the budget: usd 1.15, and the hard limit is 1" in tree
    why = held.told("why", "b-1")
    assert "pictures is ready, but held by the budget since" in why["now"]
    assert why["now"].endswith("it would take usd to 1.15, and the hard limit is 1")
    assert why["hint"].endswith("""approve b-1/pictures --by NAME --limits '{"usd": 1.15}'""")
    events = {each["eventType"]: each["payload"] for each in held.told("history", "b-1")}
    assert events["BudgetExceeded"]["unit"] == "usd"
    assert events["BudgetWarned"] == {"unit": "usd", "amount": 0.8}
    assert events["AgentTaskCompleted"].get("usage") in (None, {"usd": 0.35})
    lines = held.pawl("history", "b-1").stdout
    assert "BudgetWarned                   usd 0.8" in lines


@pytest.mark.req("R205", "R206")
def test_whoever_approves_raises_the_limit(held):
    """By what they say; it is on the record with who and why, and the run goes on."""
    done = held.pawl(*APPROVE, "--limits", '{"usd": 2.5}')

    assert done.exit_code == 0, done.output
    assert held.told("review", "ls") == []
    assert held.shown("b-1")["budget"]["usd"]["hard"] == 2.5
    texts = [each["text"] for each in held.told("why", "b-1")["because"]]
    raised = 'ann raised the hard limit to usd 2.5 for pictures, saying "worth it"'
    assert raised in texts
    finished = held.told("wait", "b-1", "--stubs", "booklet.stubs.yaml")
    assert finished["state"] == "completed"
    assert finished["output"] == {"pages": 3}
    assert finished["budget"]["usd"]["spent"] == 0.85
    assert held.told("replay", "--all")["same"]


@pytest.mark.req("R205")
def test_without_limits_it_rises_to_what_is_needed(held):
    """No arithmetic is asked of anybody."""
    assert held.pawl("review", "approve", "b-1", "--by", "ann").exit_code == 0
    assert held.shown("b-1")["budget"]["usd"]["hard"] == 1.15


@pytest.mark.req("R205")
def test_whoever_rejects_fails_the_step(held):
    """And onFailure decides; the reason is told."""
    refused = ("review", "reject", "b-1/pictures", "--by", "ann", "--comment", "too dear")
    assert held.pawl(*refused).exit_code == 0
    shown = held.shown("b-1")
    assert (shown["state"], shown["steps"]["pictures"]["state"]) == ("completed", "skipped")
    assert shown["steps"]["pictures"]["error"] == {
        "class": "governance",
        "code": "budget.exceeded",
        "message": "ann did not raise the budget for pictures: too dear",
        "findings": [],
    }
    said = held.told("why", "b-1")["because"]
    assert not any("attempt 0" in each["text"] for each in said)


@pytest.mark.req("R205", "R34")
@pytest.mark.parametrize(
    ("limits", "exits", "code", "words"),
    [
        ('{"usd": 1.1}', 5, "budget.too_low", "usd must be at least 1.15"),
        ('{"usd": 2, "tokens": 1}', 5, "budget.too_low", "tokens must be at least 9000"),
        ('{"eur": 5}', 5, "budget.limits", "such as {usd: 10}"),
        ("[1]", 5, "budget.limits", "such as {usd: 10}"),
        ("lots", 2, "cli.json", "--limits:1:1"),
        ("@nothing.json", 4, "cli.unreadable", "nothing.json"),
    ],
)
def test_what_is_no_limit_is_refused_by_name(held, limits, exits, code, words):
    """And nothing has changed."""
    before = held.shown("b-1")
    error = held.told(*APPROVE, "--limits", limits, exits=exits)["error"]
    assert error["code"] == code
    assert words in error["message"]
    assert held.shown("b-1") == before


@pytest.mark.req("R205", "R134")
def test_a_budget_may_be_claimed_and_a_limit_means_nothing_elsewhere(held):
    """The verbs of reviews, each for what it is for."""
    assert held.pawl("review", "claim", "b-1", "--by", "ann").exit_code == 0
    assert held.told("review", "ls")[0]["claimed_by"] == "ann"
    assert "ann looks after it" in held.told("why", "b-1")["now"]
    assert held.pawl("review", "reject", "b-1", "--limits", "{}").exit_code == 2
    unknown = held.told("review", "approve", "b-1/draft", "--by", "ann", exits=5)["error"]
    assert unknown["code"] == "approval.not_open"


@pytest.mark.req("R205", "R228")
def test_a_limit_is_raised_beside_an_owner(place):
    """By mail, and whoever watches reads along."""
    (place.folder / "booklet.yaml").write_text(BOOKLET)
    (place.folder / "booklet.stubs.yaml").write_text(STUBS)
    with place.owner(*RUN) as owner:
        until(lambda: place.waits_at("b-1", "pictures"))
        assert place.pawl(*APPROVE, "--limits", '{"usd": 9}').exit_code == 0
        out, err = owner.communicate(timeout=40)
        assert owner.returncode == 0
    assert json.loads(out) == {"pages": 3}
    assert "and the hard limit is 1\n" in err
    assert "the hard limit of usd was raised to 9" in err


PRINTS = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: prints}
spec:
  timeout: 1h
  budget: {usd: {hard: 1}}
  steps:
    - {name: print, run: press, forEach: "${ input.l }", cost: {usd: 1}, timeout: 1h}
"""


@pytest.mark.req("R205", "R163")
def test_items_that_the_budget_holds_do_not_run(place):
    """They are counted as held, and the step as what it is: ready, until somebody agrees."""
    (place.folder / "prints.yaml").write_text(PRINTS)
    (place.folder / "prints.stubs.yaml").write_text("print: [{ok: {}}]\n")
    run = ("run", "prints.yaml", "--id", "p-1", "--stubs", "prints.stubs.yaml")
    followed = place.pawl(*run, "--input", '{"l": [1, 2, 3]}', "--timeout", "300ms")
    assert place.waits_at("p-1", "print[2]")

    shown = place.shown("p-1")

    counts = shown["steps"]["print"]["items"]
    assert (counts["total"], counts["done"], counts["held"], counts["running"]) == (3, 1, 2, 0)
    states = {name: step["state"] for name, step in shown["steps"].items()}
    assert states == {
        "print": "ready",
        "print[0]": "succeeded",
        "print[1]": "ready",
        "print[2]": "ready",
    }
    assert "1 of 3 (2 held)" in place.pawl("show", "p-1").stdout
    assert "ready, held by the budget" in place.pawl("show", "p-1", "--step", "print[1]").stdout
    assert "print[1]  ready, held by the budget" in followed.stderr
    assert "1 of 3 items of print are done, held up by" in place.told("why", "p-1")["now"]
