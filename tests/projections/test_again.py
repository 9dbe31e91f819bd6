"""What is said of work done again, of approvals that are void, of rungs that are climbed."""

import pytest

from pawlflow.projections.facts import sentence
from pawlflow.projections.story import walk
from tests.projections.kit import story_of


def texts(name: str) -> list[str]:
    """Every sentence about an example."""
    return [sentence(state, event) for _, event, state in walk(story_of(name))]


@pytest.mark.req("R134", "R209")
def test_what_is_sent_back_and_what_follows_it():
    """Who asked for it, what goes back, what is done again, and that the gate is among it."""
    said = texts("changes-run-what-lies-between-again")

    at = said.index('ann (Editor) rejected gate, saying "too dull"')
    assert said[at + 1 : at + 5] == [
        "draft was sent back",
        "render is done again",
        "rest is done again",
        "gate is done again",
    ]


@pytest.mark.req("R204", "R209")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "an-edited-retry-voids-the-approval",
            "promote would not do what gate had approved, so that is void and it asks again",
        ),
        (
            "a-guarded-fan-is-approved-item-by-item",
            "promote[1] would not do what gate had approved, so that is void and it asks again",
        ),
        (
            "what-changed-while-somebody-looked-is-asked-again",
            "what gate asks about had changed, so the votes are void and it asks again",
        ),
    ],
)
def test_why_an_approval_is_void(name, why):
    """The step, or the item, that would do something else; or that a vote came too late."""
    assert why in texts(name)


@pytest.mark.req("R204")
def test_a_step_that_waits_for_its_gate_says_so():
    """It is ready, and nothing else holds it."""
    assert "promote waits for its gate to agree" in texts("an-edited-retry-voids-the-approval")


@pytest.mark.req("R135", "R209")
def test_each_rung_is_said():
    """Who is asked after whom."""
    said = texts("the-last-rung-stays")

    assert [text for text in said if text.startswith("nobody decided")] == [
        "nobody decided about sync in time: Lead is asked",
        "nobody decided about sync in time: Head is asked",
    ]
