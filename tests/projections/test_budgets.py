"""What is told of budgets: in figures as they are now, and in sentences as it went."""

import pytest

from pawlflow.projections.facts import facts_of
from pawlflow.projections.show import show
from pawlflow.projections.why import why
from tests.projections.kit import erased, story_of


def texts(name):
    """Every sentence of a story."""
    return [fact.text for fact in facts_of(story_of(name), keep=lambda *_: True)]


@pytest.mark.req("R205", "R209")
def test_every_turn_of_a_budget_has_its_sentence():
    """Held, raised, spent in vain, passed softly, and let go again."""
    assert texts("a-failure-costs-what-it-says")[2:8] == [
        "attempt 1 of draft (writer) began",
        "attempt 1 of draft cost usd 0.4 all the same",
        "attempt 1 of draft failed (agent, effect.failed: stubbed agent failure); "
        "retry 1 of 2 is due at 1970-01-01T00:01:00.000Z",
        "attempt 2 of draft (writer) began",
        "attempt 2 of draft cost usd 0.4 all the same",
        "attempt 2 of draft failed (agent, effect.failed: stubbed agent failure); "
        "retry 2 of 2 is due at 1970-01-01T00:02:00.000Z",
    ]
    told = texts("a-failure-costs-what-it-says")
    held = "draft was held by the budget: it would take usd to 1.2, and the hard limit is 1"
    assert held in told
    assert "ann raised the hard limit to usd 1.2 for draft" in told
    soft = "usd passed its soft limit of 0.5: 0.8 are spent or reserved"
    assert soft in texts("a-soft-limit-only-warns")
    assert "pictures fits into the budget now" in texts("a-success-settles-what-it-truly-cost")
    rejected = texts("a-rejected-budget-fails-the-step")
    assert any(
        text.startswith("draft failed (governance, budget.exceeded: ann") for text in rejected
    )


@pytest.mark.req("R205", "R187")
def test_the_figures_are_those_of_the_turn_that_is_asked_about():
    """Before, while and after it was held."""
    story = story_of("a-raised-limit-lets-the-step-begin")
    before, after, end = show(story, 1), show(story, 2), show(story)
    assert before["budget"] == {"usd": {"soft": None, "hard": 1, "spent": 0, "reserved": 0.8}}
    assert before["steps"]["pictures"]["held"]
    assert after["budget"] == {"usd": {"soft": None, "hard": 2, "spent": 0, "reserved": 1.2}}
    assert not after["steps"]["pictures"]["held"]
    assert end["budget"] == {"usd": {"soft": None, "hard": 2, "spent": 1.2, "reserved": 0}}
    assert show(story_of("abort-is-the-default"))["budget"] == {}


@pytest.mark.req("R205", "R227")
def test_a_budget_is_told_after_every_value_was_erased():
    """Amounts are in the events themselves; only what was shown to people is gone."""
    story = erased(story_of("a-step-beyond-the-hard-limit-stays-ready"))
    [waiting] = [each for each in show(story)["waiting"] if each["kind"] == "budget"]
    assert (waiting["unit"], waiting["limit"], waiting["needed"]) == ("usd", 1, 1.2)
    assert "pictures is ready, but held by the budget" in why(story)["now"]
    spent = erased(story_of("a-success-settles-what-it-truly-cost"))
    assert show(spent)["budget"]["usd"]["spent"] == 0.6


@pytest.mark.req("R205")
def test_an_item_that_is_held_is_told_by_its_name():
    """And the command to raise its limit quotes it for the shell."""
    shown = show(story_of("an-item-that-is-held-is-asked-about-by-its-name"))
    [waiting] = [each for each in shown["waiting"] if each["kind"] == "budget"]
    assert waiting["step"] == "caption[2]"
    assert shown["steps"]["caption[2]"]["held"]
    assert waiting["hint"] == (
        "pawl review approve "
        "'an-item-that-is-held-is-asked-about-by-its-name/caption[2]' "
        """--by NAME --limits '{"usd": 1.6}'"""
    )
