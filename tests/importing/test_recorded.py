"""Recorded executions of others, where PAWL_TEST_DATA names a folder with some in `wfformat`."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from pawlflow.cli.main import main

DATA = os.environ.get("PAWL_TEST_DATA")
FILES = sorted(Path(DATA, "wfformat").glob("*.json")) if DATA else []


def longest_path(data: dict) -> int:
    """The critical path in milliseconds, computed here once more from the file alone."""
    workflow = data["workflow"]
    took = {
        task["id"]: round(task["runtimeInSeconds"] * 1_000)
        for task in workflow["execution"]["tasks"]
    }
    tasks = {task["id"]: task for task in workflow["specification"]["tasks"]}
    ends: dict[str, int] = {}
    rest = list(tasks)
    while rest:
        task = rest.pop()
        missing = [each for each in tasks[task]["parents"] if each not in ends]
        if missing:
            rest += [task, *missing]
        elif task not in ends:
            begins = max((ends[each] for each in tasks[task]["parents"]), default=0)
            ends[task] = begins + took[task]
    return max(ends.values())


@pytest.mark.req("R221")
@pytest.mark.skipif(not FILES, reason="PAWL_TEST_DATA names no folder with wfformat/*.json")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recorded_graph_takes_as_long_as_its_critical_path(file, tmp_path):
    """Imported, checked, and run in virtual time."""
    run = CliRunner()
    made = run.invoke(main, ["import", "wfformat", str(file), "-o", str(tmp_path)])
    assert made.exit_code == 0, made.output
    assert run.invoke(main, ["check", str(tmp_path)]).exit_code == 0
    tested = run.invoke(main, ["test", str(tmp_path), "--json"])
    assert tested.exit_code == 0, tested.output
    [scenario] = json.loads(tested.output)["scenarios"]
    assert scenario["actual"]["state"] == "completed"
    assert scenario["actual"]["elapsed_ms"] == longest_path(json.loads(file.read_text()))
