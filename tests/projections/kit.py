"""Real stories for tests: scenarios that ran, read back from the bytes of their journals."""

from functools import cache
from typing import Any

from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.shape import Workflow
from pawlflow.projections.journal_file import read_journal
from pawlflow.projections.story import Story
from pawlflow.testing.runner import run_scenario
from tests import scenarios
from tests.kernel.support import Live

NAMES = [path.stem for path in scenarios.PATHS]


@cache
def ran(name: str) -> tuple[Story, dict[str, Any]]:
    """The story of an example scenario, and what its run says of it."""
    result = run_scenario(scenarios.scenario_named(name))
    return story_in(result.journal), result.actual


def story_of(name: str) -> Story:
    """The story of an example scenario."""
    return ran(name)[0]


def story_in(data: bytes) -> Story:
    """The one story of a journal file."""
    journal = read_journal(data)
    ((cell, turns),) = journal.turns.items()
    (definition,) = journal.definitions
    return Story(cell, definition, turns, journal.payloads)


def erased(story: Story) -> Story:
    """The same story after all its values were erased."""
    return Story(story.cell, story.definition, story.turns, {})


def told_live(live: Live, shape: Workflow) -> Story:
    """The story of an instance that a test drives by hand."""
    return Story(live.id, definition_bytes(shape), live.journal(), live.payloads)


def up_to(story: Story, turn: int) -> Story:
    """The story as it could be told after a turn."""
    return Story(story.cell, story.definition, story.turns[:turn], story.payloads)
