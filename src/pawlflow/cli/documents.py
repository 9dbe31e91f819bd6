"""Files into workflows and scenarios, with everything found on the way."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from pawlflow.cli.output import file_limits, read_file
from pawlflow.definition.finding import Finding
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.policing import load_checked
from pawlflow.testing.scenario import Scenario, read_scenario


class Loaded(msgspec.Struct, frozen=True):
    """One file and what is in it."""

    name: str
    text: str
    workflows: list[Workflow]
    schedules: list[Schedule]
    scenarios: list[Scenario]
    findings: list[Finding]
    kinds: frozenset[str]
    policies: list[Policy] = []


def load_path(path: Path, *, as_json: bool) -> Loaded:
    """Read one file whole."""
    data = read_file(path, as_json=as_json)
    name = str(path)
    limits = file_limits()
    found = load_checked(data, name, limits=limits)
    findings = found.findings
    scenarios: list[Scenario] = []
    kinds: list[str] = []
    for document in found.documents:
        kinds.append(document.kind)
        if document.kind == "Scenario":
            scenario, more = read_scenario(document.node, load_file=beside(path), limits=limits)
            findings += more
            scenarios += [] if scenario is None else [scenario]
    text = data.decode("utf-8", errors="replace")
    defined = (found.workflows, found.schedules, scenarios)
    policies = [each.policy for each in found.policies]
    return Loaded(name, text, *defined, findings, frozenset(kinds), policies)


def beside(path: Path) -> Callable[[str], bytes]:
    """Reads paths as the file at `path` writes them: relative to itself."""

    def load(given: str) -> bytes:
        with (path.parent / given).open("rb") as file:
            return file.read(file_limits().bytes_max + 1)

    return load
