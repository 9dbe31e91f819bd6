"""Families for tests: scenarios with children, played on a SQLite file that stays open."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pawlflow.definition.load import load_text
from pawlflow.projections.kin import Kin
from pawlflow.projections.reading import story_of
from pawlflow.projections.story import Story
from pawlflow.store.port import Filter, Store
from pawlflow.testing.runner import TENANT, Play, on_file, plan_started
from pawlflow.testing.scenario import Scenario, read_scenario
from tests import scenarios


class Family:
    """A parent that was played, and the store with its children."""

    def __init__(self, store: Store, key: str) -> None:
        self.store = store
        self.kin = Kin(store, TENANT)
        self.key = key

    @property
    def story(self) -> Story:
        """The parent's."""
        return self.of(self.key)

    def of(self, key: str) -> Story:
        """The story of any of them."""
        return story_of(self.store, TENANT, key)

    def ids(self, workflow: str) -> list[str]:
        """The instances of a workflow, oldest first."""
        found = self.store.instances(Filter(tenant=TENANT, workflow=workflow))
        return [head.cell.key for head in reversed(found)]


@contextmanager
def played(folder: Path, scenario: Scenario) -> Iterator[Family]:
    """Let a scenario happen, and look at what is left."""
    host = on_file(folder / "family.db")
    play = Play(scenario, plan_started(scenario), None, host)
    try:
        play.run()
        yield Family(play.host.store, play.host.id.key)
    finally:
        play.host.close()


def example(name: str) -> Scenario:
    """A scenario of the examples."""
    return scenarios.scenario_named(name)


def written(text: str) -> Scenario:
    """A scenario written in a test."""
    (document,) = load_text(text.encode(), "family.yaml")
    scenario, findings = read_scenario(document.node, load_file=lambda _: b"")
    assert scenario is not None, findings
    return scenario
