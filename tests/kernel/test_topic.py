"""Topics: an event finds those it is for, in order, and nobody else."""

from typing import Any

import pytest

from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system import topic
from pawlflow.kernel.system.listeners import Wait
from pawlflow.model.inputs import DeliverEvent, StartInstance, Tick
from pawlflow.model.system import (
    AwaitEvent,
    Continue,
    EmitEvent,
    StopAwaiting,
    Subscribe,
    Unsubscribe,
    topic_cell,
)
from tests.kernel.support import TENANT, names, payload, refused, sent
from tests.kernel.system_kit import Alone

CELL = topic_cell(TENANT, "e")
DIGEST = b"d" * 32


def wait(key: str, path: str = "", value: Any = None, step: str = "s") -> AwaitEvent:
    return AwaitEvent("w", key, step, path, payload(value) if path else None)


def leave(key: str, step: str = "s") -> StopAwaiting:
    return StopAwaiting("w", key, step)


def trigger(workflow: str, condition: str | None = None, definition: bytes = DIGEST) -> Subscribe:
    return Subscribe(workflow, definition, condition)


def emit(value: Any, origin: str = "") -> EmitEvent:
    return EmitEvent(payload(value), "ann", origin)


def after(*inputs: object) -> Alone:
    alone = Alone(CELL)
    for each in inputs:
        assert isinstance(alone.submit(each), Stepped)
    return alone


def told(outcome: object) -> list[str]:
    """Who was told, by the first part of their keys; `...` where more are to come."""
    kinds = {StartInstance: "start ", DeliverEvent: "", Continue: "..."}
    return [
        "..." if type(sent_) is Continue else kinds[type(sent_)] + key.partition("-")[0]
        for key, sent_ in sent(outcome)
    ]


TABLE = [
    # listeners                                            event                  told
    ([], emit({"n": 1}), []),
    ([wait("a"), wait("b")], emit({}), ["a", "b"]),
    ([wait("a", "n", 1), wait("b", "n", 2)], emit({"n": 1}), ["a"]),
    ([wait("a", "n", 1), wait("b", "n", 2)], emit({"n": 2.0}), ["b"]),
    ([wait("a", "n", 1), wait("b", "n", True)], emit({"n": True}), ["b"]),
    ([wait("a", "n", 0.5), wait("b", "n", "0.5")], emit({"n": 0.5}), ["a"]),
    ([wait("a", "n", "x")], emit({"n": ["x"]}), []),
    ([wait("a", "n", "x")], emit({}), []),
    ([wait("a", "n", "x")], emit("x"), []),
    ([wait("a", "o.id", 7), wait("b", "id", 7)], emit({"o": {"id": 7}, "id": 8}), ["a"]),
    ([wait("a", "o.id", 7)], emit({"o": [7]}), []),
    # In the order in which they came, whatever they are.
    (
        [wait("a", "n", 1), trigger("t"), wait("b"), trigger("u"), wait("c", "n", 1)],
        emit({"n": 1}),
        ["a", "start t", "b", "start u", "c"],
    ),
    # A step that waits anew comes last; a trigger that is changed keeps its place.
    ([wait("a"), wait("b"), wait("a")], emit({}), ["b", "a"]),
    ([trigger("t"), trigger("u"), trigger("t", "true")], emit({}), ["start t", "start u"]),
    ([trigger("t"), trigger("u"), Unsubscribe("t")], emit({}), ["start u"]),
    ([wait("a", "n", 1), leave("a")], emit({"n": 1}), []),
    ([wait("a"), leave("a")], emit({"n": 1}), []),
    # Never the instance that emits; an instance is told once.
    ([wait("a"), wait("b", "n", 1)], emit({"n": 1}, origin="a"), ["b"]),
    ([wait("a"), wait("a", step="r"), wait("a", "n", 1, step="q")], emit({"n": 1}), ["a"]),
    # Conditions: true, and nothing else, starts it.
    ([trigger("t", "event.n > 1")], emit({"n": 2}), ["start t"]),
    ([trigger("t", "payload.n > 1")], emit({"n": 1}), []),
    ([trigger("t", "n > 1")], emit({"n": 2}), ["start t"]),
    ([trigger("t", "event.n")], emit({"n": "yes"}), []),
    ([trigger("t", "event.n / 0 > 1")], emit({"n": 1}), []),
    ([trigger("t", "event.missing")], emit({}), []),
    ([trigger("t", "true")], emit({}), ["start t"]),
    ([trigger("t", "this is no expression")], emit({}), []),
]  # fmt: skip


@pytest.mark.req("R45", "R67", "R226")
@pytest.mark.parametrize(("before", "incoming", "expected"), TABLE)
def test_an_event_reaches_those_it_is_for_in_order(before, incoming, expected):
    """One turn: the event on the record, heard or not, and a send for each who hears it."""
    alone = after(*before)

    outcome = alone.submit(incoming)

    assert told(outcome) == expected
    assert names(outcome) == ["EventEmitted", "EventRelayed"]
    assert outcome.turn.events[1].count == len(expected)
    alone.assert_replays()


@pytest.mark.req("R67")
def test_an_event_starts_the_definition_with_its_data():
    """Under an id that every replay gives again, and no other event does."""
    alone = after(trigger("t"), trigger("u"))

    (one, start), (two, _) = sent(alone.submit(emit({"n": 1})))
    (other, _), _ = sent(alone.submit(emit({"n": 1})))

    assert start == StartInstance(DIGEST, payload({"n": 1}), "event:e")
    assert len({one, two, other}) == 3
    assert one.startswith("t-")
    assert len(one) == len("t-") + 16


@pytest.mark.parametrize(
    ("before", "incoming", "code"),
    [
        ([], leave("a"), "wait.unknown"),
        ([wait("a")], leave("a", "other"), "wait.unknown"),
        ([wait("a"), leave("a")], leave("a"), "wait.unknown"),
        ([], Unsubscribe("t"), "trigger.unknown"),
        ([wait("a")], Continue(), "continue.nothing"),
        ([], Tick(), "input.misplaced"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_trace(before, incoming, code):
    """A wait or trigger that is not there, nothing to go on with, an input for another cell."""
    alone = after(*before)
    was = topic.facts_of(alone.cell.state), alone.cell.head

    assert refused(alone.submit(incoming)) == code
    assert (topic.facts_of(alone.cell.state), alone.cell.head) == was


class Counted(dict[int, Wait]):
    """A dict that counts how often it is asked."""

    looks = 0

    def get(self, *args: Any) -> Any:
        self.looks += 1
        return super().get(*args)

    def __getitem__(self, place: int) -> Wait:
        self.looks += 1
        return super().__getitem__(place)


@pytest.mark.req("R45", "R211")
def test_an_event_costs_what_it_matches():
    """Ten thousand wait for other values; three are touched."""
    alone = Alone(CELL)
    for n in range(10_000):
        alone.submit(wait(f"i{n}", "order.id", n // 2 if n < 9_997 else "here"))
    state: Any = alone.cell.state
    state.waits = Counted(state.waits)

    outcome = alone.submit(emit({"order": {"id": "here"}}))

    assert told(outcome) == ["i9997", "i9998", "i9999"]
    assert state.waits.looks == 3


@pytest.mark.req("R45", "R225")
@pytest.mark.parametrize("reread", [False, True])
def test_a_large_audience_is_told_page_by_page(monkeypatch, reread):
    """Those who listened when it was emitted, and no one else; a crash changes nothing."""
    monkeypatch.setattr(topic, "PAGE_MAX", 2)
    alone = after(wait("a"), wait("b"), trigger("t"), wait("c"), wait("a", step="r"), wait("d"))

    pages = [alone.submit(emit({"n": 1}))]
    alone.submit(wait("late"))
    alone.submit(leave("c"))
    while told(pages[-1])[-1:] == ["..."]:
        if reread:
            alone.reread()
        pages.append(alone.submit(Continue()))

    assert [told(page) for page in pages] == [["a", "b", "..."], ["start t", "d"]]
    assert [page.turn.events[-1].after for page in pages] == [2, 0]
    alone.assert_replays()


@pytest.mark.req("R45")
def test_events_reach_everybody_in_the_order_they_came(monkeypatch):
    """The second waits until the first has reached all, and has an audience of its own."""
    monkeypatch.setattr(topic, "PAGE_MAX", 2)
    alone = after(wait("a"), wait("b"), wait("c"))

    first = alone.submit(emit(1))
    second = alone.submit(emit(2))
    alone.submit(wait("d"))
    rest = [alone.submit(Continue()) for _ in range(3)]

    assert [told(page) for page in (first, second, *rest)] == [
        ["a", "b", "..."],
        [],
        ["c", "..."],
        ["a", "b", "..."],
        ["c"],
    ]
    assert names(second) == ["EventEmitted"]
    heard = [(key, sent_.data.value) for page in rest for key, sent_ in sent(page)[:-1]]
    assert heard == [("c", 1), ("a", 2), ("b", 2)]
    assert refused(alone.submit(Continue())) == "continue.nothing"
    alone.assert_replays()


def test_a_page_that_is_just_full_is_the_last(monkeypatch):
    """Nothing more is to come, and nothing more is promised."""
    monkeypatch.setattr(topic, "PAGE_MAX", 2)

    assert told(after(wait("a"), wait("b")).submit(emit(1))) == ["a", "b"]


def test_an_instance_with_waits_on_two_pages_hears_once(monkeypatch):
    """Its first wait was on the page before; one that does not match says nothing about that."""
    monkeypatch.setattr(topic, "PAGE_MAX", 2)
    alone = after(
        wait("b", "n", 2, step="other"),  # does not match
        wait("a", "n", 1),
        wait("z"),
        wait("a", step="r"),
        wait("b"),
        wait("z", "n", 1, step="r"),
    )

    first = alone.submit(emit({"n": 1}))

    assert told(first) == ["a", "z", "..."]
    assert told(alone.submit(Continue())) == ["b"]


def test_those_who_left_take_no_room():
    """However many come and go, a topic holds what listens now."""
    alone = Alone(CELL)
    for n in range(300):
        alone.submit(wait(f"i{n}", "n", n % 3))
        alone.submit(wait(f"i{n}", step="any"))
        if n >= 5:
            alone.submit(leave(f"i{n - 5}"))
            alone.submit(leave(f"i{n - 5}", "any"))
    state: Any = alone.cell.state

    assert (len(state.waits), len(state.listed)) == (10, 5)
    assert len(state.any.places) <= 10
    assert all(len(line.places) <= 4 for line in state.by_value["n"].values())
    alone.assert_replays()
    for n in range(295, 300):
        alone.submit(leave(f"i{n}"))
    assert state.by_value == {}
