"""Small WfFormat files, made by hand, and what comes of them."""

import json
from pathlib import Path
from typing import Any

from pawlflow.definition.finding import Finding, RefusedError
from pawlflow.definition.load import load_text
from pawlflow.importing.documents import Documents, documents
from pawlflow.importing.trace import Trace, measure
from pawlflow.importing.wfformat import read_wfformat
from pawlflow.testing.scenario import Scenario, read_scenario

DATA = Path(__file__).parent.parent / "data" / "wfformat"


def divided(*tasks: Any, ran: Any = None, **more: Any) -> bytes:
    """A file of the layout since 1.5."""
    workflow = {"specification": {"tasks": list(tasks)}, "execution": {"tasks": ran or []}}
    return json.dumps({"schemaVersion": "1.5", "workflow": workflow, **more}).encode()


def flat(*tasks: Any, under: str = "tasks") -> bytes:
    """A file of an older layout."""
    return json.dumps({"schemaVersion": "1.3", "workflow": {under: list(tasks)}}).encode()


def read(data: bytes) -> Trace:
    """The trace of a file that is fine."""
    return read_wfformat(data, "t.json")


def refused(data: bytes) -> list[Finding]:
    """What is wrong with a file that is not."""
    try:
        found = read_wfformat(data, "t.json")
    except RefusedError as error:
        return error.findings
    raise AssertionError(f"it was read: {found}")


def imported(trace: Trace, name: str = "graph") -> Documents:
    """Both documents of a trace."""
    return documents(trace, measure(trace.tasks), name=name, source="t.json")


def scenario_of(made: Documents) -> Scenario:
    """The documents as `pawl test` reads them, without an error."""
    (document,) = load_text(made.scenario, made.scenario_file)
    scenario, findings = read_scenario(document.node, load_file=lambda _: made.workflow)
    assert findings == []
    assert scenario is not None
    return scenario
