"""Replay and snapshots: what they say when something is not as it was."""

import msgspec
import pytest

from pawlflow.kernel.draft import open_intents
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.snapshot import (
    SNAPSHOT_FORMAT,
    SnapshotError,
    state_bytes,
    state_from_bytes,
)
from pawlflow.kernel.step import Stepped
from pawlflow.model.codec import CodecError, decode, encode
from pawlflow.model.events import StepReady
from pawlflow.model.ids import Digest
from pawlflow.model.inputs import (
    CancelInstance,
    PauseInstance,
    Receipt,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.intents import Stop
from pawlflow.model.journal import Stamps, Turn, turn_bytes, turn_hash
from pawlflow.projections.verify import Difference, first_difference, verify
from pawlflow.testing.sim.derived import derived
from tests.kernel.support import Live, payload

TWO = """
timeout: 1h
failurePolicy: compensate
steps:
  - {name: a, run: x.a, timeout: 1m, undo: {run: x.undo}, with: {n: "${ input.n }"}}
  - {name: b, run: x.b, timeout: 1m, dependsOn: [a], undo: {run: x.undo}}
"""


def finished() -> Live:
    live = Live(TWO)
    live.start({"n": 1})
    live.ok("a", {"id": 1})
    live.ok("b", {"id": 2})
    return live


def altered(live: Live, place: int, /, **changes: object) -> list[tuple[bytes, Digest]]:
    """The journal with one turn changed, and rechained so that only its content is wrong."""
    turns = [read_turn(turn.data, live.payloads) for turn in live.turns]
    turns[place - 1] = msgspec.structs.replace(turns[place - 1], **changes)
    journal: list[tuple[bytes, Digest]] = []
    head = Live(TWO).cell.head
    for turn in turns:
        data = turn_bytes(turn)
        head = turn_hash(head, data)
        journal.append((data, head))
    return journal


def found(live: Live, journal: list[tuple[bytes, Digest]]) -> tuple[int, str]:
    difference = verify(live.id, live.plan, journal, live.payloads)
    assert difference is not None
    return difference.turn, difference.where


@pytest.mark.req("R11", "R20")
def test_the_first_difference_is_named():
    """By turn, and by the part of it: event, intent, stamp, number, input, chain."""
    live = finished()
    turns = [turn.turn for turn in live.turns]
    ready = msgspec.structs.replace(turns[1].events[1], params=payload("else"))
    wrong = (turns[1].events[0], ready, *turns[1].events[2:])

    assert verify(live.id, live.plan, live.journal(), live.payloads) is None
    assert found(live, altered(live, 2, events=wrong)) == (2, "events[1]")
    assert found(live, altered(live, 2, events=turns[1].events[:2])) == (2, "events[2]")
    assert found(live, altered(live, 2, events=(*turns[1].events, wrong[0]))) == (2, "events[3]")
    assert found(live, altered(live, 2, intents=())) == (2, "intents")
    assert found(live, altered(live, 2, rules=9)) == (2, "bytes")
    assert found(live, altered(live, 2, number=7)) == (2, "number")
    assert found(live, altered(live, 2, input=CancelInstance("eve"))) == (2, "events[0]")
    assert found(live, altered(live, 3, input=Receipt(b"k" * 16, 1, "ok"))) == (3, "input")
    assert found(live, [*live.journal()[:1], (live.turns[1].data, Digest(b"?" * 32))]) == (
        2,
        "chain",
    )


@pytest.mark.req("R13")
def test_time_comes_from_the_stamps_alone():
    """A timeout is decided by the journalled time: a millisecond earlier it was not due."""
    live = Live(TWO)
    live.start({"n": 1})
    live.tick(60_000)

    assert verify(live.id, live.plan, live.journal(), live.payloads) is None
    assert found(live, altered(live, 2, stamps=Stamps(59_999, 2))) == (2, "input")
    assert live.reread().cell.state.now == 60_000


def test_a_turn_of_another_format_is_not_read():
    """A newer version wrote it."""
    turn = msgspec.structs.replace(finished().turns[0].turn, format=2)

    with pytest.raises(CodecError, match="turn format 2"):
        read_turn(turn_bytes(turn), {})


@pytest.mark.req("R227")
def test_erased_bytes_are_reported_where_they_are_missed():
    """The chain still verifies; deciding again stops where the value is needed."""
    live = finished()
    start = live.turns[0].turn.input
    gone = {addr: data for addr, data in live.payloads.items() if addr != start.input.addr}

    difference = verify(live.id, live.plan, live.journal(), gone)

    assert isinstance(difference, Difference)
    assert (difference.turn, difference.where, difference.derived) == (
        1,
        "payload",
        "payload.erased",
    )


def test_a_difference_may_be_in_the_stamps_only():
    """Then no event differs, and the whole turn is shown."""
    one = Turn(1, 1, 1, Stamps(0, 1), CancelInstance("a"), (StepReady(0, -1, None),))
    two = msgspec.structs.replace(one, stamps=Stamps(1, 1))

    assert first_difference(one, two).where == "bytes"
    assert first_difference(one, msgspec.structs.replace(one, events=())).where == "events[0]"


def test_a_snapshot_of_another_format_or_definition_is_not_used():
    """It is a cache: an unknown number means that the turns are read instead."""
    live = finished()
    data = state_bytes(live.cell.state)
    fields = decode(data)

    for position, value in ((0, SNAPSHOT_FORMAT + 1), (1, b"?" * 32)):
        changed = encode([*fields[:position], value, *fields[position + 1 :]])
        with pytest.raises(SnapshotError):
            state_from_bytes(changed, live.id, live.plan, live.payloads)


BUSY = """
timeout: 1h
failurePolicy: compensate
steps:
  - {name: a, run: x.a, timeout: 1m, retryPolicy: {maxRetries: 1}, undo: {run: x.u, timeout: 5m}}
  - {name: b, agent: Writer, timeout: 1m, maxCorrectionAttempts: 2, undo: {run: x.u}}
  - {name: c, run: x.c, timeout: 1m, onTimeout: escalate}
  - {name: d, run: x.d, timeout: 1m, when: "false"}
  - {name: e, run: x.e, timeout: 1m, dependsOn: [{step: d, require: success}, a]}
  - {name: w, wait: {event: e, timeout: 30m}}
"""


def same_after_reading(live: Live) -> None:
    data = state_bytes(live.cell.state)
    again = state_from_bytes(data, live.id, live.plan, live.payloads)
    assert state_bytes(again) == data
    assert derived(again) == derived(live.cell.state)
    assert open_intents(again) == open_intents(live.cell.state)


@pytest.mark.req("R12", "R110")
def test_a_busy_state_survives_being_written():
    """Back-off, correction, escalation, a kept signal, a pause, an undo that is retried."""
    live = Live(BUSY)
    live.start()
    live.submit(PauseInstance("ann"))
    live.submit(Signal("other", payload(1), "ann"))
    live.fail("a", "transient")
    live.fail("b", "validation", ["too short"])
    same_after_reading(live)
    live.submit(UnpauseInstance("ann"))
    live.ok("b")
    live.tick(60_000)
    live.submit(ResumeStep("c", "ann", "retry", params=payload({"m": 2})))
    live.ok("a")
    same_after_reading(live)
    live.submit(CancelInstance("ann"))
    live.settle("c")
    same_after_reading(live)
    live.settle_stopped()
    live.fail("undo/a", "transient")
    same_after_reading(live)
    live.tick(live.now + 1_000)
    live.fail("undo/a", "terminal")
    same_after_reading(live)
    assert (live.state, live.cell.state.rollback) == ("cancelled", "partial")


@pytest.mark.req("R39", "R143")
def test_what_is_in_flight_is_offered_again_as_it_was():
    """After a crash: the same calls with the same identity; while stopping, the stops."""
    live = Live(BUSY)
    live.start()
    asked = {call.id for call in live.calls}
    assert {call.id for call in open_intents(live.reread().cell.state)} == asked

    live.ok("a")
    live.submit(CancelInstance("ann"))
    again = open_intents(live.reread().cell.state)
    assert [intent.call.step for intent in again if isinstance(intent, Stop)] == ["b", "c"]
    live.settle("b")
    live.settle("c")
    (undo,) = open_intents(live.reread().cell.state)
    assert undo == live.call("undo/a")


@pytest.mark.req("R16")
def test_a_step_that_raises_leaves_the_journal_as_it_was(monkeypatch):
    """An exception inside a turn spoils the live cell only: read again, it is as before."""
    live = Live(TWO)
    live.start({"n": 1})
    before = state_bytes(live.reread().cell.state)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("pawlflow.kernel.fans.make_ready", broken)
        with pytest.raises(ZeroDivisionError):
            live.ok("a")

    assert state_bytes(live.reread().cell.state) == before
    recovered = live.reread()
    assert isinstance(recovered.ok("a"), Stepped)
