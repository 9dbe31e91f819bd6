"""Slots: first come, first served, and never more than the limit."""

import pytest

from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import slots
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import GrantSlot, HoldInstance, Tick
from pawlflow.model.system import SLOTS, AcquireSlot, Continue, ReleaseSlot, slots_key
from tests.kernel.support import TENANT, names, refused, sent
from tests.kernel.system_kit import Alone

CELL = CellId(TENANT, SLOTS, slots_key("w", "k"))


def ask(key: str, limit: int = 1) -> AcquireSlot:
    return AcquireSlot("w", key, limit, "k")


def give(key: str) -> ReleaseSlot:
    return ReleaseSlot("w", key)


def after(*inputs: object) -> Alone:
    alone = Alone(CELL)
    for each in inputs:
        assert isinstance(alone.submit(each), Stepped)
    return alone


GRANT, NEXT = GrantSlot(), Continue()
TABLE = [
    # before, input, events, sends
    ([], ask("a"), ["SlotLimited", "SlotTaken"], [("a", GRANT)]),
    ([ask("a", 2)], ask("b", 2), ["SlotTaken"], [("b", GRANT)]),
    ([ask("a")], ask("b"), ["SlotQueued"], [("b", HoldInstance(0))]),
    ([ask("a"), ask("b")], ask("c"), ["SlotQueued"], [("c", HoldInstance(1))]),
    ([ask("a")], give("a"), ["SlotReleased"], []),
    ([ask("a"), ask("b")], give("a"), ["SlotReleased", "SlotTaken"], [("b", GRANT)]),
    ([ask("a"), ask("b")], give("b"), ["SlotReleased"], []),
    # A limit that rises serves those who waited first; the one who brought it comes last.
    (
        [ask("a"), ask("b"), ask("c")],
        ask("d", 4),
        ["SlotLimited", "SlotTaken", "SlotTaken", "SlotTaken"],
        [("b", GRANT), ("c", GRANT), ("d", GRANT)],
    ),
    (
        [ask("a"), ask("b"), ask("c")],
        ask("d", 2),
        ["SlotLimited", "SlotTaken", "SlotQueued"],
        [("b", GRANT), ("d", HoldInstance(1))],
    ),
    # A limit that falls takes nothing away, but gives nothing either until it is kept.
    (
        [ask("a", 2), ask("b", 2)],
        ask("c", 1),
        ["SlotLimited", "SlotQueued"],
        [("c", HoldInstance(0))],
    ),
    ([ask("a", 2), ask("b", 2), ask("c", 1)], give("a"), ["SlotReleased"], []),
]


@pytest.mark.req("R86", "R214", "R226")
@pytest.mark.parametrize(("before", "incoming", "events", "sends"), TABLE)
def test_slots_are_given_in_order_and_within_the_limit(before, incoming, events, sends):
    """What is free goes to who waited longest, and each is told once."""
    alone = after(*before)

    outcome = alone.submit(incoming)

    assert names(outcome) == events
    assert sent(outcome) == sends
    alone.assert_replays()


@pytest.mark.req("R214")
def test_higher_priorities_go_first_and_first_come_first_served_within_one():
    """Whoever waits is told how many are before it; the order outlives a reading."""
    alone = after(ask("a"), ask("b"))

    low = alone.submit(AcquireSlot("w", "low", 1, "k", -1))
    high = alone.submit(AcquireSlot("w", "high", 1, "k", 2))
    next_ = alone.submit(ask("c"))
    assert sent(low) == [("low", HoldInstance(1))]
    assert sent(high) == [("high", HoldInstance(0))]
    assert sent(next_) == [("c", HoldInstance(2))]
    alone.reread()
    order = ["a"]
    while len(order) < 5:
        order += [key for key, _ in sent(alone.submit(give(order[-1])))]

    assert order == ["a", "high", "b", "c", "low"]
    alone.assert_replays()


@pytest.mark.req("R86")
@pytest.mark.parametrize(
    ("before", "incoming", "code"),
    [
        ([ask("a")], ask("a"), "slot.asked"),
        ([ask("a"), ask("b")], ask("b", 5), "slot.asked"),
        ([], give("a"), "slot.not_held"),
        ([ask("a"), give("a")], give("a"), "slot.not_held"),
        ([ask("a")], Continue(), "continue.nothing"),
        ([ask("a")], Tick(), "input.misplaced"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_trace(before, incoming, code):
    """A second asking, a slot that was not held, an input for another kind of cell."""
    alone = after(*before)
    was = slots.facts_of(alone.cell.state), alone.cell.head

    assert refused(alone.submit(incoming)) == code
    assert (slots.facts_of(alone.cell.state), alone.cell.head) == was


@pytest.mark.req("R214")
def test_a_limit_that_rises_far_is_served_in_several_turns(monkeypatch):
    """No turn is without bound, and nobody overtakes in between."""
    monkeypatch.setattr(slots, "GRANTS_MAX", 2)
    alone = after(*(ask(key) for key in "abcdef"))

    first = alone.submit(ask("g", 10))
    again = alone.submit(Continue())
    last = alone.submit(Continue())

    assert sent(first) == [
        ("b", GRANT),
        ("c", GRANT),
        (CELL.key, NEXT),
        ("g", HoldInstance(3)),
    ]
    assert sent(again) == [("d", GRANT), ("e", GRANT), (CELL.key, NEXT)]
    assert sent(last) == [("f", GRANT), ("g", GRANT)]
    alone.assert_replays()


def test_a_key_has_slots_of_its_own():
    """By the canonical bytes of its value, whatever that is; null is a key like any other."""
    keys = [slots_key("w", value) for value in (None, 1, "1", True, {"a": 1}, [1])]

    assert len(set(keys)) == len(keys)
    assert slots_key("w", {"b": 1, "a": 2}) == slots_key("w", {"a": 2, "b": 1})
    assert slots_key("w", 1) != slots_key("v", 1)
    assert slots_key("w", "k").startswith("$slots/w/")
    assert len(slots_key("w", "k")) == len("$slots/w/") + 32
