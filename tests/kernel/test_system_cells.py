"""Instances and system cells together: by sends alone they agree, whatever happens."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel.draft import calls_open, open_intents
from pawlflow.kernel.snapshot import (
    SnapshotError,
    snapshot_payloads,
    state_bytes,
    state_from_bytes,
)
from pawlflow.kernel.state import Instance, next_deadline
from pawlflow.kernel.step import RULES, Stepped, new_cell, step
from pawlflow.kernel.units import WAITING
from pawlflow.model.codec import decode, encode
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import CancelInstance, Signal, Tick
from pawlflow.model.journal import Send, Stamps, payloads_of
from pawlflow.model.system import (
    REGISTRY,
    SLOTS,
    TOPIC,
    AwaitEvent,
    EmitEvent,
    registry_cell,
    slots_key,
    topic_cell,
)
from pawlflow.projections.verify import Difference, first_difference
from tests.kernel.support import TENANT, Live, payload, sent
from tests.kernel.system_kit import Alone, Cells, instance, named

ONE_AT_A_TIME = named(
    "deploy",
    "timeout: 1h\nconcurrency: {key: input.repo}\nsteps: [{name: a, run: x.a, timeout: 1m}]",
)
ORDER = named(
    "order",
    "timeout: 1h\nsteps:\n"
    "  - {name: paid, wait: {event: paid, match: event.order == instance.id, timeout: 1h}}\n"
    "  - {name: tell, emit: shipped, dependsOn: [paid], with: {order: '${ instance.id }'}}",
)
INVOICE = named(
    "invoice",
    "timeout: 1h\ntrigger: {event: shipped, condition: event.order != 'free'}\n"
    "steps: [{name: a, run: x.a, timeout: 1m, with: {of: '${ input.order }'}}]",
)


@pytest.mark.req("R86", "R214", "R225", "R226")
def test_instances_with_one_key_run_one_after_another():
    """In order of their start; one that is cancelled in the queue is passed over."""
    cells = Cells(ONE_AT_A_TIME)
    for key in ("a", "b", "c", "d"):
        cells.start("deploy", key, {"repo": "r1"})
    cells.start("deploy", "other", {"repo": "r2"})
    waiting = {"b": "queued", "c": "queued", "d": "queued"}
    assert cells.instances() == {"a": "running", "other": "running", **waiting}

    cells.submit(instance("deploy", "b"), CancelInstance("ann"))
    cells.ok("a", "a")
    assert cells.instances() == {
        "a": "completed",
        "other": "running",
        "b": "cancelled",
        "c": "running",
        "d": "queued",
    }
    cells.ok("c", "a")
    cells.ok("d", "a")

    slots = cells.state(CellId(TENANT, SLOTS, slots_key("deploy", "r1")))
    assert (slots.holders, len(slots.queue), slots.label) == ({}, 0, "r1")
    assert cells.refused == []
    cells.assert_replays()


@pytest.mark.req("R45", "R67", "R225", "R226")
def test_an_event_goes_its_way_from_instance_to_instance():
    """Paid wakes the order it names; shipped, which that emits, starts an invoice."""
    cells = Cells(ORDER)
    cells.publish(INVOICE)
    for key in ("o-1", "o-2", "free"):
        cells.start("order", key)

    cells.emit("paid", {"order": "o-2"})
    cells.emit("paid", {"order": "nobody"})
    cells.emit("paid", {"order": "free"})

    running = {key: state for key, state in cells.instances().items() if "invoice" in key}
    assert list(running.values()) == ["running"]
    assert cells.instances() | running == {
        "o-1": "waiting",
        "o-2": "completed",
        "free": "completed",
        **running,
    }
    assert cells.calls[-1].params.value == {"of": "o-2"}
    started = cells.state(instance("invoice", next(iter(running))))
    assert started.by == "event:shipped"
    assert cells.refused == []
    cells.assert_replays()


@pytest.mark.req("R67")
def test_a_new_version_is_what_events_start_from_then_on():
    """And an event that no longer starts it, starts it no longer."""
    cells = Cells()
    cells.publish(INVOICE)
    newer = named("invoice", "timeout: 1h\ntrigger: {event: sent}\nsteps: [{name: b, sleep: 1s}]")
    newer = type(newer)(
        name=newer.name, version=2, steps=newer.steps, trigger=newer.trigger, timeout_ms=9_000
    )
    cells.emit("shipped", {"order": "o-1"})
    cells.publish(newer)

    cells.emit("shipped", {"order": "o-2"})
    cells.emit("sent", {"order": "o-3"})

    plans = [cell.state.plan for cell in cells.cells.values() if isinstance(cell.state, Instance)]
    assert [plan.version for plan in plans] == [1, 2]
    assert cells.state(registry_cell(TENANT)).latest("invoice") == (2, plans[1].definition)
    cells.assert_replays()


def test_an_instance_that_emits_what_it_waits_for_does_not_hear_itself():
    """Others do, and what comes from outside reaches all."""
    echo = named(
        "echo",
        "timeout: 1h\nsteps:\n  - {name: w, wait: {event: e, timeout: 1h}}\n"
        "  - {name: s, sleep: 1s}\n  - {name: say, emit: e, with: {n: 1}, dependsOn: [s]}",
    )
    cells = Cells(echo)
    cells.start("echo", "one")
    cells.start("echo", "two")

    cells.now = 1_000
    cells.submit(instance("echo", "one"), Tick())

    heard = [key for key in ("one", "two") if cells.state(instance("echo", key)).result_of(0)]
    assert heard == ["two"]
    cells.submit(instance("echo", "two"), Tick())
    assert cells.instances() == {"one": "completed", "two": "completed"}
    cells.assert_replays()


# Whatever happens

BUSY = named(
    "busy",
    "timeout: 1h\nconcurrency: {key: input.k, limit: 2}\nsteps:\n"
    "  - {name: a, run: x.a, timeout: 1m, onFailure: skip}\n"
    "  - {name: w, wait: {event: e, match: event.n == input.n, timeout: 5m}, onFailure: skip}\n"
    "  - {name: v, wait: {event: e, timeout: 7m}, dependsOn: [a]}\n"
    "  - {name: say, emit: e, dependsOn: [w], with: {n: '${ input.n + 1 }'}}",
)
STARTED = named(
    "started",
    "timeout: 9m\ntrigger: {event: e, condition: event.n == 2}\nsteps: [{name: z, run: x.z}]",
)


def act(random: Random, cells: Cells) -> None:
    """Something happens to somebody."""
    live = [id_ for id_, cell in cells.cells.items() if isinstance(cell.state, Instance)]
    cells.now += random.choice([0, 1_000, 100_000])
    choice = random.random()
    if choice < 0.3 or not live:
        given = {"k": random.randint(0, 1), "n": random.randint(0, 2)}
        cells.start("busy", f"i{len(cells.log)}", given)
    elif choice < 0.5 and cells.calls:
        call = random.choice(cells.calls)
        cells.ok(call.cell.key, call.step)
    elif choice < 0.7:
        cells.emit("e", {"n": random.choice([0, 1, 2, 2.0, "x"])})
    elif choice < 0.8:
        cells.submit(random.choice(live), Tick())
    elif choice < 0.9:
        cells.submit(random.choice(live), Signal("e", payload({"n": 1}), "ann"))
    elif choice < 0.95:
        cells.publish(STARTED)
    else:
        cells.submit(random.choice(live), CancelInstance("ann"))


@pytest.mark.req("R225", "R226", "R86", "R45")
@given(st.integers(min_value=0, max_value=2**32))
def test_slots_and_topics_know_what_instances_know(seed):
    """Holders run, queued ones wait, every open wait is listed, and all of it replays."""
    random = Random(seed)
    cells = Cells(BUSY)
    for _ in range(25):
        act(random, cells)
    live = {
        (id_.workflow, id_.key): cell.state
        for id_, cell in cells.cells.items()
        if isinstance(cell.state, Instance) and cell.state.closed is None
    }

    for id_, cell in cells.cells.items():
        state: Any = cell.state
        if id_.workflow == SLOTS:
            mine = {who: each for who, each in live.items() if each.slot == id_.key}
            assert set(state.holders) == {
                who for who, each in mine.items() if each.started is not None
            }
            assert set(state.queue.priorities) == {
                who for who, each in mine.items() if each.started is None
            }
            assert len(state.holders) <= 2
        if id_.workflow == TOPIC:
            listed = {(wait.key, wait.step) for wait in state.waits.values()}
            assert listed == {
                (each.cell.key, each.plan.steps[step].name)
                for each in live.values()
                for step in each.listening.get("e", ())
                if each.unit(step).status == WAITING
            }
            assert state.relays == {}
    cells.assert_replays()


# The kernel's questions, of system cells


@pytest.mark.req("R226")
def test_a_system_cell_has_no_deadlines_and_no_intents():
    """It acts when it is sent something, and what leaves it are sends."""
    for workflow in (SLOTS, TOPIC, REGISTRY):
        state = new_cell(CellId(TENANT, workflow, f"{workflow}/x"), None).state
        assert (next_deadline(state), open_intents(state), calls_open(state)) == (None, [], 0)


def test_a_system_cell_is_decided_by_the_rules_of_the_day():
    """It lives for ever; every turn records the rules it was decided by, and they never fall."""
    alone = Alone(topic_cell(TENANT, "e"))
    alone.submit(AwaitEvent("w", "i", "s"))
    later = step(alone.cell, AwaitEvent("w", "j", "s"), Stamps(5, 2), RULES + 1)
    again = step(alone.cell, AwaitEvent("w", "k", "s"), Stamps(6, 3))
    refused = step(alone.cell, Tick(), Stamps(7, 4), RULES + 2)

    assert isinstance(later, Stepped)
    assert isinstance(again, Stepped)
    assert [turn.turn.rules for turn in (*alone.turns, later, again)] == [2, 3, 3]
    assert not isinstance(refused, Stepped)
    assert (alone.cell.state.rules, alone.cell.state.turn, alone.cell.state.now) == (3, 3, 6)


def test_a_snapshot_of_another_format_is_not_used():
    """Of a system cell as of an instance: the turns are read instead."""
    for workflow in (SLOTS, TOPIC, REGISTRY):
        id_ = CellId(TENANT, workflow, f"{workflow}/x")
        fields = decode(state_bytes(new_cell(id_, None).state))
        with pytest.raises(SnapshotError, match="format 9"):
            state_from_bytes(encode([9, *fields[1:]]), id_, None, {})


@pytest.mark.req("R12")
def test_a_snapshot_names_what_must_lie_beside_it():
    """Payloads of records, of lists of records, and of lists of their own."""
    alone = Alone(topic_cell(TENANT, "e"))
    alone.submit(AwaitEvent("w", "i", "s", "n", payload(7)))
    live = Live(
        "timeout: 1h\nsteps:\n  - {name: a, agent: A, timeout: 1m, maxCorrectionAttempts: 1}\n"
        "  - {name: b, run: x.b, undo: {run: x.u}}"
    )
    live.start({"n": 1})
    live.ok("b", "done")
    live.fail("a", "validation", ["no"])
    live.submit(Signal("e", payload("kept"), "ann"))

    assert [kept.value for kept in snapshot_payloads(alone.cell.state)] == [7]
    found = snapshot_payloads(live.cell.state)
    beside = {kept.addr: kept.data for kept in found}
    again = state_from_bytes(state_bytes(live.cell.state), live.id, live.plan, beside)
    assert sorted(map(repr, snapshot_payloads(again))) == sorted(map(repr, found))
    assert all(kept.data is not None for kept in snapshot_payloads(again))
    assert {"n": 1} in [kept.value for kept in found]
    assert "kept" in [kept.value for kept in found]


@pytest.mark.req("R11", "R20", "R225")
def test_a_difference_in_what_was_sent_is_named():
    """What is sent is as much part of a turn as what happened; its payloads lie beside it."""
    live = Live("timeout: 1h\nsteps: [{name: a, emit: e, with: {n: 7}}]")
    turn = live.start().turn
    other = Send(TOPIC, "$topic/f", EmitEvent(payload({"n": 7}), "zoe", "i-1"))
    changed = type(turn)(*[getattr(turn, name) for name in turn.__struct_fields__[:-1]], (other,))

    difference = first_difference(changed, turn)

    assert isinstance(difference, Difference)
    assert (difference.where, "$topic/f" in difference.recorded) == ("sends", True)
    assert payload({"n": 7}) in payloads_of(changed)[-1:]
    assert sent(live.turns[0])[0][0] == "$topic/e"
