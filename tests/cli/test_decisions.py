"""Decisions at the command line: changes, guards, the ladder, late effects, and what is shown."""

import pytest

from pawlflow.store.sqlite import SqliteStore
from tests.engine.kit import Bench
from tests.engine.test_orphans import closed, success

NOTES = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: notes}
spec:
  timeout: 4h
  escalation: [{role: OnCall, channel: chat, timeout: 1h}, {role: Lead}]
  steps:
    - name: draft
      agent: writer
      timeout: 30s
      check: {type: object, required: [title]}
      maxCorrectionAttempts: 2
    - name: gate
      approval: {role: Editor, expires: 24h, onReject: changes, guards: [publish]}
      show: {title: "${ steps.draft.title }"}
      dependsOn: [draft]
    - name: publish
      run: web.publish
      dependsOn: [gate]
      with: {title: "${ steps.draft.title }", by: "${ steps.gate.by }"}
      onFailure: escalate
      timeout: 30s
"""
STUBS = """\
draft: [{ok: {body: no title}}, {ok: {title: dull}}, {ok: {title: lively}}]
publish: [{fail: terminal, message: no route}, {ok: {}}]
"""
WAIT = ("wait", "n-1", "--stubs", "notes-stubs.yaml", "--timeout", "300ms")
EDITOR = ("--by", "ann", "--role", "Editor")


@pytest.fixture
def drafted(place):
    """Notes that wait at their gate, after one correction; nobody drives the store."""
    (place.folder / "notes.yaml").write_text(NOTES)
    (place.folder / "notes-stubs.yaml").write_text(STUBS)
    run = ("run", "notes.yaml", "--id", "n-1", "--by", "zoe", "--stubs", "notes-stubs.yaml")
    assert place.pawl(*run, "--timeout", "300ms").exit_code == 75
    return place


@pytest.mark.req("R105", "R206")
def test_a_step_is_shown_attempt_by_attempt(drafted):
    """With what a check refused, what it found, and what the next attempt was told."""
    told = drafted.told("show", "n-1", "--step", "draft")

    assert [rung["outcome"] for rung in told["ladder"]] == ["failed", "succeeded"]
    assert told["ladder"][0]["output"] == {"body": "no title"}
    assert told["ladder"][1]["feedback"] == told["ladder"][0]["findings"]
    text = drafted.pawl("show", "n-1", "--step", "draft").stdout
    assert "attempt 1, round 1" in text
    assert "validation check.failed" in text
    unknown = drafted.told("show", "n-1", "--step", "drafts", exits=4)["error"]
    assert unknown["code"] == "step.unknown"
    assert "draft" in unknown["message"]


@pytest.mark.req("R129", "R134", "R186")
def test_changes_are_asked_for_and_the_review_tells_the_whole_story(drafted):
    """A rejection sends the draft back; the next review shows what was decided before."""
    [row] = drafted.told("review", "ls")
    assert (row["id"], row["show"]) == ("n-1/gate", {"title": "dull"})
    guarded = drafted.told("review", "show", "n-1/gate")["guards"]
    assert guarded == {"publish": {"round": 1, "params": {"title": "dull", "by": None}}}

    assert drafted.pawl("review", "reject", "n-1", *EDITOR, "--comment", "dull").exit_code == 0
    drafted.pawl(*WAIT)

    [row] = drafted.told("review", "ls")
    assert row["show"]["title"] == "lively"
    assert [(each["path"], each["was"], each["now"]) for each in row["show"]["changed"]] == [
        ("/title", "dull", "lively"),
    ]
    shown = drafted.told("review", "show", "n-1/gate")
    assert [(each["decision"], each["comment"]) for each in shown["decisions"]] == [
        ("rejected", "dull"),
    ]
    assert "rejected by ann (Editor): dull" in drafted.pawl("review", "show", "n-1/gate").stdout
    assert drafted.shown("n-1")["steps"]["draft"]["feedback"] == 2
    said = drafted.told("why", "n-1")["because"]
    assert any('rejected gate, saying "dull"' in each["text"] for each in said)
    assert drafted.told("replay", "--all")["same"]


@pytest.mark.req("R135", "R204", "R133")
def test_an_escalation_says_whom_it_asks_and_an_edit_needs_another_approval(drafted):
    """The rung and its time; who acts in the wrong role is told which one fits."""
    drafted.pawl("review", "approve", "n-1", *EDITOR)
    drafted.pawl(*WAIT)
    [row] = drafted.told("review", "ls")
    assert (row["kind"], row["role"], row["show"]["level"]) == ("escalation", "OnCall", 1)
    assert row["due_at"] is not None
    [waiting] = drafted.shown("n-1")["waiting"]
    assert (waiting["role"], waiting["channel"], waiting["level"]) == ("OnCall", "chat", 1)
    assert waiting["until"] == row["due_at"]
    assert "--role OnCall" in waiting["hint"]
    assert "OnCall is asked (level 1)" in drafted.told("why", "n-1")["now"]

    retry = ("retry", "n-1", "publish", "--with", '{"title": "new"}', "--by", "joe")
    refused = drafted.told(*retry, "--role", "Janitor", exits=5)["error"]
    assert refused["code"] == "escalation.wrong_role"
    assert "OnCall or Lead" in refused["message"]
    assert drafted.pawl(*retry, "--role", "Lead").exit_code == 0

    assert "waits for gate to agree" in drafted.told("why", "n-1")["now"]
    assert "void" in "".join(each["text"] for each in drafted.told("why", "n-1")["because"])
    assert drafted.shown("n-1")["steps"]["publish"]["state"] == "ready"
    drafted.pawl("review", "approve", "n-1/gate", *EDITOR)
    assert drafted.pawl(*WAIT).exit_code == 0
    assert drafted.told("replay", "--all")["same"]


def test_a_role_says_nothing_of_many_instances(drafted):
    """The rung of one review is no rule for a batch."""
    refused = drafted.told("cancel", "--where", "workflow == 'notes'", "--role", "Lead", exits=2)

    assert "--role goes with one instance" in refused["error"]["message"]


@pytest.fixture
def orphaned(place):
    """An order that was cancelled, and whose card was charged all the same."""
    bench = Bench(SqliteStore(place.db))
    cell, charge = closed(bench)
    bench.ask(cell, success(charge))
    bench.store.close()
    return place


@pytest.mark.req("R129", "R186")
def test_a_late_effect_is_listed_shown_and_settled(orphaned):
    """Whoever deals with it says what was done, and that is kept."""
    [row] = orphaned.told("review", "ls")
    assert (row["id"], row["step"], row["kind"]) == ("o-1/charge/late", "charge", "effect.orphaned")
    assert row["show"] == {"effect": "card.charge", "undo": "card.refund"}
    assert "effect.orphaned" in orphaned.pawl("review", "ls").stdout
    shown = orphaned.told("review", "show", "o-1")
    assert len(shown["trace"]) == 32
    assert shown["late"]["result"] == {"id": "ch-1"}
    assert shown["hints"] == ["pawl review settle o-1/charge/late --by NAME --comment TEXT"]
    assert "effect.orphaned" in orphaned.pawl("review", "show", "o-1").stdout

    refused = orphaned.told("review", "approve", "o-1", "--by", "ann", exits=5)["error"]
    assert "pawl review settle o-1/charge/late" in refused["message"]
    assert orphaned.told("review", "settle", "o-1", "--by", "ann", exits=2)

    settle = ("review", "settle", "o-1", "--by", "ann", "--comment", "refunded by hand")
    assert orphaned.told(*settle)["accepted"]

    assert orphaned.told("review", "ls") == []
    kept = orphaned.told("dlq", "ls", "--all")
    assert [(each["kind"], each["code"]) for each in kept] == [
        ("settled", "review.settled"),
        ("rejected", "effect.orphaned"),
    ]
    assert kept[0]["input"]["comment"] == "refunded by hand"
    assert orphaned.told(*settle, exits=4)["error"]["code"] == "review.unknown"
    assert orphaned.told("replay", "--all")["same"]


def test_only_late_effects_are_settled(drafted):
    """A gate is decided, not settled."""
    settle = ("review", "settle", "n-1/gate", "--by", "ann", "--comment", "done")

    assert drafted.told(*settle, exits=5)["error"]["code"] == "review.unknown"


@pytest.mark.req("R186", "R133")
def test_an_escalated_gate_by_itself_says_who_was_asked_and_what_comes_next(place):
    """The role of the gate, since when; the rung that is asked now, and every way out."""
    waits = NOTES.replace("expires: 24h, onReject: changes, guards: [publish]", "expires: 10ms")
    (place.folder / "notes.yaml").write_text(waits)
    (place.folder / "notes-stubs.yaml").write_text(STUBS)
    run = ("run", "notes.yaml", "--id", "n-1", "--by", "zoe", "--stubs", "notes-stubs.yaml")
    place.pawl(*run, "--timeout", "300ms")
    while place.shown("n-1")["steps"]["gate"]["state"] != "escalated":
        place.pawl(*WAIT)

    told = place.told("show", "n-1", "--step", "gate")

    waiting = told["waiting"]
    assert (waiting["kind"], waiting["role"], waiting["level"]) == ("escalation", "OnCall", 1)
    assert waiting["gate"] == {"role": "Editor", "since": told["started_at"], "votes": []}
    assert waiting["then"] == ["Lead"]
    assert told["hints"][0] == "pawl resume n-1 gate --by NAME --role OnCall"
    lines = place.pawl("show", "n-1", "--step", "gate").stdout.splitlines()
    assert lines[0] == "gate  approval  escalated"
    told_lines = dict(line.split(maxsplit=1) for line in lines[1:])
    assert told_lines["asked"] == f"Editor, {told['started_at']}"
    assert "approval.expired" in told_lines["because"]
    assert told_lines["asks"] == "OnCall (rung 1 of the ladder) by chat, then Lead"
    assert told_lines["since"] == waiting["since"]
    assert told_lines["next"] == told["hints"][0]
    assert place.told("show", "n-1", "--step", "draft")["waiting"] is None
