"""What an instance says to topics and slots, and what it makes of their answers."""

from typing import Any

import pytest

from pawlflow.definition.correlate import correlated, correlation_of
from pawlflow.definition.plan import FORWARD_ROOTS
from pawlflow.kernel.system.starting import LABEL_MAX, Newcomer, label_of
from pawlflow.model.inputs import (
    CancelInstance,
    DeliverEvent,
    GrantSlot,
    HoldInstance,
    PauseInstance,
    ResumeStep,
    Signal,
    UnpauseInstance,
)
from pawlflow.model.payload import Payload
from pawlflow.model.system import (
    AcquireSlot,
    AwaitEvent,
    EmitEvent,
    ReleaseSlot,
    StopAwaiting,
    Subscribe,
    slots_key,
)
from tests.kernel.support import Live, names, payload, refused, sent

WAIT = "timeout: 1h\nsteps:\n  - {name: w, wait: {event: e, timeout: 1m}}"


def waiting(spec: str, value: Any = None, rules: int = 2) -> tuple[Live, list[Any]]:
    live = Live(spec, rules=rules)
    return live, sent(live.start(value))


# Waits


@pytest.mark.req("R45", "R225")
def test_a_wait_is_listed_when_it_opens_and_dropped_when_it_ends():
    """Told to the topic of its event, by whatever it ends."""
    ends = (
        lambda live: live.submit(DeliverEvent("e", payload(1))),
        lambda live: live.submit(Signal("e", payload(1), "ann")),
        lambda live: live.tick(60_000),
        lambda live: live.submit(CancelInstance("ann")),
    )
    for end in ends:
        live, opened = waiting(WAIT)
        assert opened == [("$topic/e", AwaitEvent("w", "i-1", "w"))]
        assert sent(end(live)) == [("$topic/e", StopAwaiting("w", "i-1", "w"))]


def test_a_wait_that_opens_and_ends_in_one_turn_is_told_to_nobody():
    """A signal that came early has met it already."""
    live, opened = waiting(
        "timeout: 1h\nsteps:\n  - {name: s, sleep: 1s}\n"
        "  - {name: w, wait: {event: e, timeout: 1m}, dependsOn: [s]}"
    )
    live.submit(Signal("e", payload(1), "ann"))

    assert opened == []
    assert sent(live.tick(1_000)) == []
    assert live.state == "completed"


def test_a_wait_that_opens_again_in_the_same_turn_stays_listed():
    """A timeout with nothing to wait for between two attempts: the topic need not know."""
    live, _ = waiting(
        "timeout: 1h\nsteps:\n  - {name: w, wait: {event: e, timeout: 1m}, onTimeout: retry,\n"
        "     retryPolicy: {maxRetries: 1, backoff: 0s}}"
    )

    again = live.tick(60_000)

    assert names(again) == ["StepBackedOff", "StepRequeued", "StepWaiting"]
    assert sent(again) == []
    assert sent(live.tick(120_000)) == [("$topic/e", StopAwaiting("w", "i-1", "w"))]


def test_an_escalated_wait_leaves_and_comes_back():
    """While a human decides it does not listen."""
    live, _ = waiting(f"{WAIT[:-1]}, onTimeout: escalate}}")

    assert [type(each) for _, each in sent(live.tick(60_000))] == [StopAwaiting]
    resumed = live.submit(ResumeStep("w", "ann", "resume"))
    assert [type(each) for _, each in sent(resumed)] == [AwaitEvent]


@pytest.mark.req("R223")
def test_under_rules_1_nobody_is_told():
    """As it always was: instances that began so go on so."""
    live, opened = waiting(WAIT, rules=1)

    assert opened == []
    assert sent(live.tick(60_000)) == []
    assert {turn.turn.rules for turn in live.turns} == {1}


# Correlation

CORRELATIONS = [
    ("event.id == input.id", "id"),
    ("input.id == event.order.id", "order.id"),
    ("payload.order.id == input.id", "order.id"),
    ("event['id'] == input.id", "id"),
    ("event.n > 1 && event.id == input.id", "id"),
    ("event.n > 1 && (true && input.id == event.id)", "id"),
    ("event.a == event.b && event.id == input.id", "id"),
    ("event.id == 7", "id"),
    ("event.id == input.list.map(x, x + 1)[0]", "id"),
    ("event.id == event.other", None),
    ("event.id != input.id", None),
    ("event.id == input.id || event.n == 1", None),
    ("!(event.id == input.id)", None),
    ("event.id == input.id == true", None),
    ("event == input.id", None),
    ("event.list[0] == input.id", None),
    ("event[input.id] == 1", None),
    ("event['a.b'] == input.id", None),
    ("event[''] == input.id", None),
    ("input.a == input.b", None),
    ("event.id", None),
    (None, None),
]


@pytest.mark.req("R45")
@pytest.mark.parametrize(("match", "path"), CORRELATIONS)
def test_what_an_event_must_hold_is_read_from_the_match(match, path):
    """An equation that must hold, between a member of the event and what is known before it."""
    found = correlation_of(match, FORWARD_ROOTS, {}, 0)

    assert (found and found[0]) == path


def match_of(match: str) -> str:
    return f'timeout: 1h\nsteps: [{{name: w, wait: {{event: e, match: "{match}", timeout: 1m}}}}]'


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (7, 7),
        (7.0, 7),
        (-0.0, 0),
        (1e300, 1e300),
        (float(2**63), 2**63),
        (0.5, 0.5),
        ("7", "7"),
        (True, True),
    ],
)
def test_a_value_is_looked_up_as_cel_compares_it(value, wanted):
    """A whole double is its integer; anything else is itself."""
    _, ((_, awaits),) = waiting(match_of("event.id == input.id"), {"id": value})

    assert awaits == AwaitEvent("w", "i-1", "w", "id", payload(wanted))
    assert type(awaits.value.value) is type(wanted)
    assert correlated(value) == wanted


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x", "x" * 1_025])
def test_other_values_are_not_looked_up(value):
    """Then every event comes, and the whole match decides."""
    _, ((_, awaits),) = waiting(match_of("event.id == input.id"), {"id": value})

    assert (awaits.path, awaits.value) == ("", None)


def test_a_side_without_a_value_is_not_looked_up():
    """What is wrong with it shows when an event comes."""
    live, ((_, awaits),) = waiting(match_of("event.id == 1 / input.zero"), {"zero": 0})
    assert (awaits.path, awaits.value) == ("", None)

    live.submit(DeliverEvent("e", payload({"id": 1})))

    assert live.state == "failed"


# Emitting

EMIT = (
    "timeout: 1h\nsteps:\n  - {name: a, emit: order.placed, with: {n: '${ input.n }'}}\n"
    "output: ${ steps.a }"
)


@pytest.mark.req("R67", "R225")
def test_an_emit_step_gives_its_data_to_the_topic():
    """Done at once; its result is what it emitted."""
    live = Live(EMIT)
    done = live.start({"n": 1})

    assert sent(done) == [("$topic/order.placed", EmitEvent(payload({"n": 1}), "zoe", "i-1"))]
    assert names(done)[-3:] == ["StepReady", "StepSucceeded", "InstanceCompleted"]
    assert (live.state, live.cell.state.output.value) == ("completed", {"n": 1})
    assert live.published()[-3:] == [
        "WorkflowStepReady",
        "WorkflowStepCompleted",
        "WorkflowInstanceCompleted",
    ]


def test_an_emit_without_data_emits_an_empty_map():
    """As a step without `with` has no parameters."""
    live = Live("timeout: 1h\nsteps: [{name: a, emit: e}]")

    assert [each.data.value for _, each in sent(live.start())] == [{}]


@pytest.mark.req("R133")
def test_an_emit_whose_data_has_no_value_follows_on_failure():
    """Skipped, failed, or escalated until a human gives it some."""
    spec = "timeout: 1h\nsteps: [{name: a, emit: e, with: '${ 1 / input.zero }', onFailure: HOW}]"
    skipped, failed = Live(spec.replace("HOW", "skip")), Live(spec.replace("HOW", "abort"))
    asked = Live(spec.replace("HOW", "escalate"))
    for live in (skipped, failed, asked):
        assert sent(live.start({"zero": 0})) == []
    assert [live.state for live in (skipped, failed, asked)] == ["completed", "failed", "escalated"]

    assert refused(asked.submit(ResumeStep("a", "ann", "resume"))) == "step.no_input"
    given = asked.submit(ResumeStep("a", "ann", "retry", params=payload({"n": 2})))

    assert sent(given) == [("$topic/e", EmitEvent(payload({"n": 2}), "zoe", "i-1"))]
    assert asked.state == "completed"


# Slots

LIMITED = (
    "timeout: 1h\nconcurrency: {key: input.repo, limit: 2}\n"
    "steps: [{name: a, run: x.a, timeout: 1m}]"
)
SLOT = slots_key("w", "r1")


@pytest.mark.req("R86", "R214")
def test_an_instance_with_a_key_asks_for_a_slot_before_it_starts():
    """Created, and nothing else; its clock does not run."""
    live = Live(LIMITED)
    created = live.start({"repo": "r1"})

    assert names(created) == ["InstanceCreated"]
    assert created.turn.events[0].slot == SLOT
    assert sent(created) == [(SLOT, AcquireSlot("w", "i-1", 2, "r1"))]
    assert (live.state, live.started) == ("created", [])
    assert refused(live.tick(3_600_000)) == "timer.not_due"


@pytest.mark.req("R86")
def test_a_granted_slot_starts_the_instance():
    """At once it is not published as queued; after a wait it was."""
    free, full = Live(LIMITED), Live(LIMITED)
    for live in (free, full):
        live.start({"repo": "r1"})

    assert names(free.submit(GrantSlot()))[:2] == ["InstanceQueued", "InstanceStarted"]
    assert names(full.submit(HoldInstance(3))) == ["InstanceQueued"]
    assert full.state == "queued"
    full.now = 5_000
    assert names(full.submit(GrantSlot()))[:2] == ["InstanceStarted", "StepReady"]

    assert (free.state, full.state) == ("running", "running")
    assert full.cell.state.started == 5_000
    assert "WorkflowInstanceQueued" not in free.published()
    assert "WorkflowInstanceQueued" in full.published()


@pytest.mark.req("R86", "R225")
def test_a_slot_is_given_back_whatever_the_end():
    """Completed, failed, cancelled; also from the queue, and before any answer came."""
    given = [(SLOT, ReleaseSlot("w", "i-1"))]
    lives = [Live(LIMITED) for _ in range(5)]
    done, failed, cancelled, queued, unheard = lives
    for live in lives:
        live.start({"repo": "r1"})
    for live in (done, failed, cancelled):
        live.submit(GrantSlot())
    queued.submit(HoldInstance(0))

    assert sent(done.ok("a")) == given
    assert sent(failed.fail("a")) == given
    assert sent(cancelled.submit(CancelInstance("ann"))) == []  # the attempt must settle first
    assert sent(cancelled.settle("a")) == given
    assert sent(queued.submit(CancelInstance("ann"))) == given
    assert sent(unheard.submit(CancelInstance("ann"))) == given
    assert [live.state for live in lives] == ["completed", "failed", *["cancelled"] * 3]
    assert refused(queued.submit(GrantSlot())) == "instance.closed"


def test_answers_that_nobody_waits_for_are_refused():
    """A second grant, a second hold, and a slot for one that needs none."""
    live, free = Live(LIMITED), Live(WAIT)
    live.start({"repo": "r1"})
    free.start()

    assert refused(free.submit(GrantSlot())) == "slot.not_awaited"
    live.submit(HoldInstance(1))
    assert refused(live.submit(HoldInstance(0))) == "slot.not_awaited"
    live.submit(GrantSlot())
    assert refused(live.submit(GrantSlot())) == "slot.not_awaited"
    assert refused(live.submit(HoldInstance(0))) == "slot.not_awaited"


def test_an_instance_may_be_paused_and_signalled_while_it_waits_for_its_slot():
    """It starts paused, and the signal is there when its wait opens."""
    live = Live(
        "timeout: 1h\nconcurrency: {key: input.repo}\n"
        "steps: [{name: w, wait: {event: e, timeout: 1m}}]"
    )
    live.start({"repo": "r1"})
    live.submit(PauseInstance("ann"))
    live.submit(Signal("e", payload(1), "ann"))
    live.submit(GrantSlot())
    assert live.status("w") == "ready"

    live.submit(UnpauseInstance("ann"))

    assert live.state == "completed"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("1 / input.zero", {"zero": 0}, "division by zero"),
        ("input.deep.map(i, [i])", {"deep": [[[]]]}, None),
        ("[[[[[[[[[[input.deep]]]]]]]]]]", {"deep": eval("[" * 60 + "]" * 60)}, "nested"),
        ("input.list.map(i, input.list)", {"list": ["x" * 100_000] * 100}, "the key is too large"),
    ],
)
def test_a_key_without_a_value_refuses_the_start(key, value, message):
    """It says why, and there is no instance."""
    live = Live(f"timeout: 1h\nconcurrency: {{key: '{key}'}}\nsteps: [{{name: a, sleep: 1s}}]")
    outcome = live.start(value)

    if message is None:
        assert live.state == "created"
    else:
        assert refused(outcome) == "concurrency.key"
        assert message in outcome.detail
        assert refused(live.tick(0)) == "instance.unknown"


@pytest.mark.parametrize(
    ("value", "label"),
    [
        ("r1", "r1"),
        (None, "null"),
        (1.5, "1.5"),
        ({"b": b"\x01", "a": ["ü", True]}, '{"a": ["ü", true], "b": "01"}'),
        ("x" * LABEL_MAX, "x" * LABEL_MAX),
        ("x" * 200, "x" * (LABEL_MAX - 1) + "…"),
    ],
)
def test_a_key_has_a_label_for_people(value, label):
    """The text itself, or its JSON, not too long."""
    assert label_of(value) == label


def test_a_key_sees_the_input_and_who_starts_it():
    """And nothing of steps: there are none yet."""
    live = Live(
        "timeout: 1h\nconcurrency: {key: '[instance.id, instance.started_by, input.n]'}\n"
        "steps: [{name: a, sleep: 1s}]"
    )

    ((key, _),) = sent(live.start({"n": 1}, by="ann"))

    assert key == slots_key("w", ["i-1", "ann", 1])
    newcomer = Newcomer(live.id, payload(None), "ann")
    assert (newcomer.result_of(0), newcomer.results(None)) == (None, {})


@pytest.mark.parametrize(
    "incoming",
    [
        AcquireSlot("w", "i", 1, ""),
        ReleaseSlot("w", "i"),
        AwaitEvent("w", "i", "s"),
        StopAwaiting("w", "i", "s"),
        Subscribe("w", b"d" * 32, None),
        EmitEvent(Payload(b"x" * 33, None), "ann", ""),
    ],
)
def test_an_instance_refuses_what_is_for_system_cells(incoming):
    """Nothing is decided by the wrong room."""
    live, _ = waiting(WAIT)

    assert refused(live.submit(incoming)) == "input.misplaced"
