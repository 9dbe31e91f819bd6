"""IOA documents run unchanged: success, and failure at every step."""

import os
from pathlib import Path

import pytest

from pawlflow.definition.finding import Place
from pawlflow.definition.load import load_workflows
from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.runner import run_scenario
from pawlflow.testing.scenario import Answer, Scenario

FOLDER = Path(os.environ.get("PAWL_TEST_DATA", "no such folder")) / "ioa"
DOCUMENTS = sorted(FOLDER.glob("*.yaml"))


def scenario(path: Path, **stubs: tuple[Answer, ...]) -> Scenario:
    """The document, played with these answers."""
    workflows, _ = load_workflows(path.read_bytes(), str(path))
    return Scenario(
        name=path.stem,
        file=str(path),
        place=Place(str(path), 1, 1),
        workflows=tuple(workflows),
        stubs=stubs,
    )


@pytest.mark.req("R62", "R196", "R200")
@pytest.mark.skipif(not DOCUMENTS, reason="PAWL_TEST_DATA names no folder with ioa documents")
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_an_ioa_document_runs_and_fails_as_it_says(path):
    """All answers good: completed. One step failing for good: as its onFailure says."""
    good = scenario(path)
    assert run_scenario(good).actual["state"] == "completed"
    for step in good.workflows[0].steps:
        bad = scenario(path, **{step.name: (Answer(fail="terminal"),)})
        result = crash_everywhere(bad, run_scenario(bad))
        expected = {
            "skip": ("completed", "none"),
            "abort": ("failed", "none"),
            "compensate": ("failed", "full"),
        }
        assert (result.actual["state"], result.actual["rollback"]) == expected[step.on_failure]
        assert result.passed, result.failures
