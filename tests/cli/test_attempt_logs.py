"""What functions write with `ctx.log`: kept with the attempt, and shown wherever it is."""

import pytest

from tests.cli.live_kit import Place

STEPS = """\
from pawlflow import Terminal, Transient, step


@step(name="card.charge")
async def charge(ctx):
    ctx.log(f"attempt {ctx.attempt} asks the bank")
    if ctx.attempt == 1:
        raise Transient("busy")
    ctx.log("the bank agreed")
    return 1


@step(name="card.refund")
def refund(ctx):
    ctx.log("given back")


@step(name="parcel.send")
def send(ctx):
    ctx.log("no parcel \\x1b[2J fits")
    raise Terminal("too large")
"""
ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  failurePolicy: compensate
  steps:
    - name: charge
      run: card.charge
      timeout: 30s
      retryPolicy: {maxRetries: 1, backoff: constant, initialDelay: 1ms}
      undo: {run: card.refund}
    - {name: ship, run: parcel.send, dependsOn: [charge], timeout: 30s}
"""
CHARGED = ["attempt 1 asks the bank", "attempt 2 asks the bank", "the bank agreed"]


@pytest.fixture
def place(tmp_path):
    """A folder in which an order has failed."""
    made = Place(tmp_path)
    (tmp_path / "order.yaml").write_text(ORDER)
    (tmp_path / "steps.py").write_text(STEPS)
    words = ["run", tmp_path / "order.yaml", "--worker", tmp_path / "steps.py", "--id", "o-1"]
    assert made.pawl(*words).exit_code == 1
    return made


@pytest.mark.req("R184", "R96")
def test_json_has_them_with_the_step_and_with_each_attempt(place):
    """Of failed attempts and of undos too."""
    steps = place.shown("o-1")["steps"]
    assert steps["charge"]["log"] == CHARGED
    assert [rung["log"] for rung in steps["charge"]["ladder"]] == [CHARGED[:1], CHARGED[1:]]
    assert steps["charge"]["undo_log"] == ["given back"]
    assert steps["ship"]["log"] == ["no parcel \x1b[2J fits"]
    assert steps["ship"]["ladder"][0]["outcome"] == "failed"


@pytest.mark.req("R184")
@pytest.mark.parametrize(
    "words", [["show", "o-1"], ["show", "o-1", "--step", "charge"], ["watch", "o-1"]]
)
def test_people_see_them(place, words):
    """In the tree, attempt by attempt, and live; nothing in them moves the cursor."""
    done = place.pawl(*words)
    assert done.exit_code == 0
    for line in CHARGED:
        assert line in done.output
    assert "\x1b[2J" not in done.output
    if words[0] == "watch":
        assert "undo | given back" in done.output


def test_a_run_tells_them_as_they_come(place):
    """`pawl run` prints what `watch` does, where nobody's terminal is."""
    words = ["--worker", place.folder / "steps.py", "--id", "o-2"]
    done = place.pawl("run", place.folder / "order.yaml", *words)
    lines = [line for line in done.stderr.splitlines() if "| " in line]
    assert [line.split("| ")[1] for line in lines][:3] == CHARGED
