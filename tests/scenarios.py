"""The example scenarios, read once."""

from functools import cache
from pathlib import Path

from pawlflow.definition.load import load_text
from pawlflow.testing.scenario import Scenario, read_scenario

FOLDER = Path(__file__).parent.parent / "examples" / "scenarios"
PATHS = sorted(FOLDER.rglob("*.yaml"))


@cache
def read(path: Path) -> Scenario:
    """The one scenario of a file."""
    (document,) = load_text(path.read_bytes(), str(path))
    scenario, findings = read_scenario(
        document.node, load_file=lambda given: (path.parent / given).read_bytes()
    )
    assert scenario is not None, findings
    return scenario


def scenario_named(name: str) -> Scenario:
    """A scenario by its rule."""
    (path,) = (path for path in PATHS if path.stem == name)
    return read(path)
