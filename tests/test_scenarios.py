"""The examples are the specification of specs 003 and 000, and all of them hold."""

import re

import pytest

from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import run_scenario
from tests.scenarios import FOLDER, PATHS, read

GROUPS = {
    "budget",
    "cancel-and-pause",
    "children",
    "corrections",
    "escalation",
    "expressions",
    "failure",
    "for-each",
    "gates",
    "late-and-duplicate",
    "lenses",
    "order",
    "policies",
    "retry",
    "timeouts",
    "undo",
    "waits",
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.req("R79", "R80", "R81", "R82", "R84", "R85", "R87", "R90", "R91", "R97", "R98")
@pytest.mark.req("R99", "R100", "R101", "R102", "R103", "R104", "R106", "R107", "R112", "R113")
@pytest.mark.req("R114", "R115", "R116", "R117", "R118", "R119", "R120", "R121", "R123", "R124")
@pytest.mark.req("R127", "R128", "R130", "R132", "R133", "R136", "R139", "R144", "R95", "R200")
def test_a_scenario_holds_with_a_crash_everywhere(path):
    """As written, and again with a crash before and after the commit of every turn."""
    scenario = read(path)

    result = crash_everywhere(scenario, run_scenario(scenario))

    assert not result.failures, [found.message for found in result.failures]
    assert result.crashes == 2 * result.turns


def test_every_scenario_is_named_by_its_rule():
    """The file, the scenario and the comment on its first line say the same thing."""
    assert len(PATHS) >= 40
    for path in PATHS:
        assert read(path).name == path.stem
        assert path.read_text().startswith("# ")
        assert path.parent.name in GROUPS
        assert path.parent.parent == FOLDER


ROW = re.compile(r"^\| \[([\w-]+)\]\(scenarios/([\w/-]+)\.yaml\) \| (.*) \|$", re.MULTILINE)


def test_the_page_of_examples_says_every_rule():
    """One row for each scenario, in the words of its first line, and in order within its group."""
    text = (FOLDER.parent / "README.md").read_text()
    rows = {place: rule for name, place, rule in ROW.findall(text) if place.endswith(f"/{name}")}

    rules = {
        f"{path.parent.name}/{path.stem}": path.read_text().partition("\n")[0].removeprefix("# ")
        for path in PATHS
    }
    assert rows == rules
    for group in GROUPS:
        names = [place for place in rows if place.startswith(f"{group}/")]
        assert names == sorted(names)
