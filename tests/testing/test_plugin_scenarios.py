"""Scenario files as tests, as a project meets them: whole runs of pytest in a folder."""

import pytest

from tests.testing.plugin_kit import ORDER, SCENARIO, run
from tests.testing.plugin_kit import project as project

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.req("R198")


def test_scenarios_are_tests(project):
    """One for each document, told as `pawl test` tells it, and found by name."""
    text = SCENARIO % ("it-ships", "completed") + "---\n" + SCENARIO % ("it-fails", "failed")
    project.makefile(".scenario.yaml", order=text)
    done = run(project)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "*scenario: it-fails*",
            "FAIL it-fails (4 turns)",
            "  order.scenario.yaml",
            "  state: expected failed, got completed",
        ]
    )
    run(project, "order.scenario.yaml::it-ships").assert_outcomes(passed=1)
    run(project, "-k", "it-fails").assert_outcomes(failed=1, deselected=1)


def test_scenarios_are_crashed_as_well(project):
    """As `pawl test --crash-everywhere` does."""
    project.makefile(".scenario.yaml", order=SCENARIO % ("it-ships", "completed"))
    done = run(project, "--pawl-crash-everywhere")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["1 test was run again with 8 crashes"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCENARIO % ("x", "finished"), "order.scenario.yaml:6:19: error: state: *finished*"),
        (
            SCENARIO.replace("./order", "./lost") % ("x", "failed"),
            "order.scenario.yaml:5:13: error: *",
        ),
        ("kind: [", "order.scenario.yaml:*: error: *"),
        (ORDER, "order.scenario.yaml:1:1: error: there is no document of kind: Scenario"),
    ],
    ids=["value", "file", "yaml", "nothing"],
)
def test_a_broken_file_is_a_collection_error(project, text, said):
    """With the file, the line and the column; nothing of it is run."""
    project.makefile(".scenario.yaml", order=text)
    done = run(project)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*ERROR collecting order.scenario.yaml*", said])


def test_a_scenario_that_asks_for_the_impossible_fails_with_its_place(project):
    """What is found only by running it."""
    text = SCENARIO % ("late", "completed")
    text += "  script: [{at: 30d, cancel: {by: zoe}, refused: true}]\n"
    project.makefile(".scenario.yaml", order=text)
    done = run(project)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["order.scenario.yaml:7:*: error: *closed before it*"])


def test_a_project_may_say_that_scenarios_are_no_tests(project):
    """By the configuration; a file that is named on the command line is no exception."""
    project.makefile(".scenario.yaml", order=SCENARIO % ("it-ships", "completed"))
    project.makeini("[pytest]\npawl_scenarios = false\n")
    run(project).assert_outcomes()
