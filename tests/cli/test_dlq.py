"""`pawl dlq`: a cell whose program raises is put aside with its input, and a human decides."""

import pytest

from pawlflow.cli.deadletters import Letter, is_whole
from pawlflow.engine import stepping
from pawlflow.kernel import step as kernel
from pawlflow.model.ids import CellId, TimeMs
from pawlflow.model.inputs import Signal
from pawlflow.model.journal import Disposition
from pawlflow.model.payload import Payload


def raising(cell, incoming, stamps, *rest):
    """A program that breaks on one signal, and on no other input."""
    if isinstance(incoming, Signal) and incoming.event == "poison":
        raise ZeroDivisionError("a broken program")
    return kernel.step(cell, incoming, stamps, *rest)


@pytest.fixture
def broken(place, monkeypatch):
    """An instance that was put aside, and one that was not."""
    place.pawl("start", "release.yaml", "--id", "r-1", "--by", "zoe")
    place.pawl("start", "release.yaml", "--id", "r-2", "--by", "zoe")
    with monkeypatch.context() as patch:
        patch.setattr(stepping, "step", raising)
        sent = place.pawl("signal", "r-1", "poison", "--data", '{"n": 1}')
    assert sent.exit_code == 5
    assert "cell.quarantined" in sent.stderr
    return place


@pytest.mark.req("R224")
def test_a_broken_cell_is_put_aside_with_its_input(broken):
    """Its input is a dead letter, a human is asked, and others go on."""
    [letter] = broken.told("dlq", "ls")

    assert (letter["instance"], letter["kind"], letter["code"]) == ("r-1", "dead", "cell.raised")
    assert letter["input"]["kind"] == "signal"
    assert letter["input"]["data"] == {"n": 1}
    assert "ZeroDivisionError: a broken program" in letter["detail"]
    [review] = broken.told("review", "ls")
    assert (review["id"], review["kind"], review["step"]) == ("r-1", "quarantine", None)
    assert broken.told("review", "show", "r-1")["hints"][0] == "pawl dlq ls"
    claimed = broken.told("review", "claim", "r-1", exits=5)["error"]
    assert (claimed["code"], "pawl dlq ls" in claimed["message"]) == ("cell.quarantined", True)
    refused = broken.told("review", "approve", "r-1", exits=5)
    assert "pawl dlq ls" in refused["error"]["message"]
    assert broken.pawl("pause", "r-2").exit_code == 0
    assert broken.pawl("replay", "--all").exit_code == 0


@pytest.mark.req("R155", "R224")
def test_a_dead_letter_is_sent_once_more(broken):
    """The cell goes on with the very input that broke it; the letter is no longer open."""
    [letter] = broken.told("dlq", "ls")

    done = broken.told("dlq", "redrive", letter["number"], "--by", "ann", "--comment", "mended")

    assert done == {"number": letter["number"], "instance": "r-1", "act": "redriven"}
    assert broken.told("dlq", "ls") == []
    assert broken.told("review", "ls") == []
    received = [e for e in broken.told("history", "r-1") if e["eventType"] == "SignalReceived"]
    assert [e["payload"]["data"] for e in received] == [{"n": 1}]
    again = broken.told("dlq", "redrive", letter["number"], exits=5)
    assert again["error"]["code"] == "dlq.resolved"
    kinds = [each["kind"] for each in broken.told("dlq", "ls", "--all")]
    assert kinds == ["redriven", "dead"]


@pytest.mark.req("R155", "R224")
def test_a_dead_letter_is_thrown_away(broken):
    """The cell goes on without it."""
    [letter] = broken.told("dlq", "ls")
    before = broken.shown("r-1")["turns"]

    done = broken.pawl("dlq", "discard", letter["number"], "--by", "ann")

    assert done.stdout == f"r-1: letter {letter['number']} discarded\n"
    assert broken.told("dlq", "ls") == []
    assert broken.shown("r-1")["turns"] == before
    assert "it was discarded" in broken.pawl("dlq", "show", letter["number"]).stdout
    assert broken.pawl("pause", "r-1").exit_code == 0


@pytest.mark.req("R154")
def test_refused_inputs_are_kept_and_found(place):
    """Who asked for what, and why not; they are no dead letters."""
    place.pawl("start", "release.yaml", "--id", "r-1")
    place.pawl("unpause", "r-1", "--by", "ann", "--comment", "why")

    [letter] = place.told("dlq", "ls", "--all")

    assert (letter["kind"], letter["code"]) == ("rejected", "instance.not_paused")
    assert letter["input"] == {"kind": "unpause", "by": "ann", "comment": "why"}
    assert place.told("dlq", "ls") == []
    assert "rejected [instance.not_paused]" in place.pawl("dlq", "ls", "--all").stdout
    assert place.told("dlq", "show", letter["number"])["instance"] == "r-1"
    refused = place.told("dlq", "discard", letter["number"], exits=5)
    assert refused["error"]["code"] == "dlq.resolved"
    assert place.told("dlq", "show", 7, exits=4)["error"]["code"] == "dlq.unknown"


@pytest.mark.req("R155")
def test_a_large_dead_letter_is_sent_whole(place, monkeypatch):
    """What is too large to lie beside its entry comes from the cell's blobs."""
    place.pawl("start", "release.yaml", "--id", "r-1")
    large = "x" * 100_000
    (place.folder / "large.json").write_text(f'"{large}"')
    with monkeypatch.context() as patch:
        patch.setattr(stepping, "step", raising)
        place.pawl("signal", "r-1", "poison", "--data", "@large.json")
    [letter] = place.told("dlq", "ls")

    assert letter["input"]["data"] == large
    assert place.pawl("dlq", "redrive", letter["number"]).exit_code == 0
    received = [e for e in place.told("history", "r-1") if e["eventType"] == "SignalReceived"]
    assert received[0]["payload"]["data"] == large


def test_an_erased_letter_is_not_whole():
    """What lost its values cannot be sent once more."""
    there = Payload.of({"n": 1}, "default")
    cell = CellId("default", "release", "r-1")

    def letter(data):
        return Letter(1, Disposition(cell, "dead", "c", there, Signal("e", data, "by"), TimeMs(0)))

    assert is_whole(letter(there))
    assert not is_whole(letter(Payload(there.addr, None)))


TRIGGERED = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: tagged}
spec:
  timeout: 1h
  input: {type: object, required: [repo]}
  trigger: {event: repo.tagged}
  steps: [{name: a, run: do.a, timeout: 1m}]
"""


@pytest.mark.req("R45", "R154")
def test_a_start_by_an_event_that_was_refused_is_listed_with_a_way_out(place):
    """Who emitted it was told that it is out; the refusal lies among the letters."""
    (place.folder / "tagged.yaml").write_text(TRIGGERED)
    place.pawl("apply", "-f", "tagged.yaml")

    emitted = place.pawl("emit", "repo.tagged", "--data", '{"tag": "v1"}')

    assert emitted.exit_code == 0
    [letter] = place.told("dlq", "ls")
    assert (letter["workflow"], letter["code"]) == ("tagged", "input.invalid")
    assert letter["hints"] == ["pawl explain input.invalid", f"pawl dlq discard {letter['number']}"]
    text = place.pawl("dlq", "show", letter["number"]).stdout
    assert f"next      {letter['hints'][0]}" in text
    assert "repo" in text
    assert place.pawl(*letter["hints"][1].split()[1:]).exit_code == 0
    assert place.told("dlq", "ls") == []


@pytest.mark.req("R155", "R92")
def test_the_letter_of_a_child_names_the_step_to_retry(place, monkeypatch):
    """Its parent was told that it failed: redriving would answer twice, so it is refused."""
    child = "apiVersion: pawl.dev/v1\nkind: Workflow\nmetadata: {name: kid}\n"
    child += "spec: {timeout: 1h, steps: [{name: k, run: x.k, timeout: 1m}]}\n"
    parent = child.replace("kid", "up").replace("run: x.k", "workflow: kid, onFailure: escalate")
    (place.folder / "up.yaml").write_text(f"{parent}---\n{child}")

    def breaking(cell, incoming, stamps, *rest):
        if cell.state.cell.workflow == "kid":
            raise ZeroDivisionError("a broken program")
        return kernel.step(cell, incoming, stamps, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(stepping, "step", breaking)
        place.pawl("start", "up.yaml", "--id", "u-1")

    [letter] = place.told("dlq", "ls")
    refused = place.told("dlq", "redrive", letter["number"], exits=5)["error"]
    assert refused["code"] == "dlq.answered"
    assert "u-1" in refused["message"]
    assert letter["hints"][0] == "pawl retry u-1 k --by NAME"
    assert place.pawl(*letter["hints"][0].replace("NAME", "ann").split()[1:]).exit_code == 0
    assert place.pawl(*letter["hints"][1].split()[1:]).exit_code == 0
    assert len(place.shown("u-1")["children"]) == 2
