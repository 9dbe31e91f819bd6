"""The registry: names, versions, and which events start what."""

import pytest

from pawlflow.kernel.step import Stepped
from pawlflow.kernel.system.registry import trigger_of
from pawlflow.model.inputs import Tick
from pawlflow.model.system import PublishDefinition, Subscribe, Unsubscribe, registry_cell
from tests.kernel.support import TENANT, names, payload, refused, sent, workflow
from tests.kernel.system_kit import Alone


def digest(letter: str) -> bytes:
    return letter.encode() * 32


def publish(
    version: int, letter: str, event: str | None = None, condition: str | None = None
) -> PublishDefinition:
    return PublishDefinition(
        "w", version, digest(letter), payload(b"bytes"), event, condition, "ann"
    )


def after(*inputs: object) -> Alone:
    alone = Alone(registry_cell(TENANT))
    for each in inputs:
        assert isinstance(alone.submit(each), Stepped)
    return alone


@pytest.mark.req("R226")
def test_the_highest_version_leads_and_among_equals_the_last():
    """An older version that is published late changes nothing but the list of versions."""
    alone = after(publish(2, "a"))
    state = alone.cell.state
    assert state.latest("w") == (2, digest("a"))

    alone.submit(publish(1, "b"))
    assert state.latest("w") == (2, digest("a"))
    alone.submit(publish(2, "c"))
    assert state.latest("w") == (2, digest("c"))
    alone.submit(publish(10, "d"))
    assert state.latest("w") == (10, digest("d"))
    assert state.versions("w") == [(1, digest("b")), (2, digest("c")), (10, digest("d"))]
    assert state.latest("nobody") is None
    assert state.versions("nobody") == []
    alone.assert_replays()


ADD_A, ADD_B = Subscribe("w", digest("a"), None), Subscribe("w", digest("b"), None)
TABLE = [
    # before                      input                          sends
    ([], publish(1, "a"), []),
    ([], publish(1, "a", "e"), [("$topic/e", ADD_A)]),
    (
        [publish(1, "a")],
        publish(2, "b", "e", "event.n > 1"),
        [("$topic/e", Subscribe("w", digest("b"), "event.n > 1"))],
    ),
    ([publish(1, "a", "e")], publish(2, "b", "e"), [("$topic/e", ADD_B)]),
    (
        [publish(1, "a", "e")],
        publish(2, "b", "f"),
        [("$topic/e", Unsubscribe("w")), ("$topic/f", ADD_B)],
    ),
    ([publish(1, "a", "e")], publish(2, "b"), [("$topic/e", Unsubscribe("w"))]),
    ([publish(1, "a", "e")], publish(1, "b"), [("$topic/e", Unsubscribe("w"))]),
    ([publish(2, "a", "e")], publish(1, "b", "f"), []),
]


@pytest.mark.req("R67", "R226")
@pytest.mark.parametrize(("before", "incoming", "sends"), TABLE)
def test_topics_are_told_what_starts_the_latest_definition(before, incoming, sends):
    """New, changed or gone; a definition that does not lead starts by nothing."""
    alone = after(*before)

    outcome = alone.submit(incoming)

    assert names(outcome) == ["DefinitionPublished"]
    assert sent(outcome) == sends
    alone.assert_replays()


def test_the_same_definition_is_published_once():
    """Again it is refused, of any version; another one under the same version is not."""
    alone = after(publish(1, "a"), publish(2, "b"))

    assert refused(alone.submit(publish(2, "b"))) == "definition.same"
    assert refused(alone.submit(publish(1, "a"))) == "definition.same"
    assert refused(alone.submit(Tick())) == "input.misplaced"
    assert isinstance(alone.submit(publish(2, "a")), Stepped)


@pytest.mark.parametrize(
    ("trigger", "found"),
    [
        ("", (None, None)),
        ("trigger: {schedule: '0 6 * * 1'}", (None, None)),
        ("trigger: {event: e}", ("e", None)),
        ("trigger: {event: e, condition: event.n > 1}", ("e", "event.n > 1")),
    ],
)
def test_a_definition_says_what_starts_it(trigger, found):
    """For whoever publishes it; a schedule is no event."""
    assert trigger_of(workflow(f"{trigger}\nsteps: [{{name: a, sleep: 1s}}]")) == found
