"""Scenario files as tests: one for each Scenario document, told as `pawl test` tells it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest._code.code import ExceptionInfo, TerminalRepr

from pawlflow.definition.finding import Finding
from pawlflow.definition.load import load_definitions
from pawlflow.definition.read import BYTES_MAX
from pawlflow.testing.crashes import crash_everywhere
from pawlflow.testing.plugin_keys import CRASHES, crashes_wanted
from pawlflow.testing.runner import InvalidScenarioError, run_scenario
from pawlflow.testing.scenario import Scenario, read_scenario
from pawlflow.testing.telling_results import told


class ScenarioFile(pytest.File):
    """A file with scenarios."""

    def collect(self) -> Iterator["ScenarioItem"]:
        """Every scenario; a file with an error is refused as a whole, with the place."""
        scenarios, findings = read_file(self.path, self.name_here())
        errors = [each for each in findings if each.severity == "error"]
        if errors:
            raise self.CollectError("\n".join(map(finding_told, errors)))
        if not scenarios:
            message = f"{self.name_here()}:1:1: error: there is no document of kind: Scenario"
            raise self.CollectError(message)
        for scenario in scenarios:
            yield ScenarioItem.from_parent(self, name=scenario.name, scenario=scenario)

    def name_here(self) -> str:
        """The file as messages name it."""
        root = self.config.rootpath
        inside = self.path.is_relative_to(root)
        return str(self.path.relative_to(root) if inside else self.path)


class ScenarioFailed(Exception):  # noqa: N818  # told in its own words, never as a traceback
    """A scenario that did not hold."""


class ScenarioItem(pytest.Item):
    """One scenario."""

    def __init__(self, *, scenario: Scenario, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.scenario = scenario

    def runtest(self) -> None:
        """Run it, and with crashes if they are wanted."""
        try:
            result = run_scenario(self.scenario)
            if result.passed and crashes_wanted(self.config):
                everything = bool(self.config.getoption("pawl_crash_all"))
                result = crash_everywhere(self.scenario, result, everything=everything)
                sampled = "a seeded sample; --pawl-crash-all crashes all"
                notes = [sampled] if result.sampled else []
                about = {"crashes": result.crashes, "notes": notes}
                self.user_properties.append((CRASHES, about))
        except InvalidScenarioError as error:
            raise ScenarioFailed(finding_told(error.finding)) from error
        if not result.passed:
            raise ScenarioFailed("\n".join(told(result)))

    def repr_failure(
        self, excinfo: ExceptionInfo[BaseException], style: Any = None
    ) -> str | TerminalRepr:
        """In the words of `pawl test`; a defect of ours as a traceback."""
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the document begins."""
        return self.path, self.scenario.place.line - 1, f"scenario: {self.name}"


def read_file(path: Path, name: str) -> tuple[list[Scenario], list[Finding]]:
    """The scenarios of a file, and all that was found in it."""
    with path.open("rb") as file:
        found = load_definitions(file.read(BYTES_MAX + 1), name)
    findings = list(found.findings)
    scenarios: list[Scenario] = []
    for document in found.documents:
        if document.kind == "Scenario":
            scenario, more = read_scenario(document.node, load_file=beside(path))
            findings += more
            scenarios += [] if scenario is None else [scenario]
    return scenarios, findings


def beside(path: Path) -> Callable[[str], bytes]:
    """Reads paths as the file at `path` writes them: relative to itself."""

    def load(given: str) -> bytes:
        with (path.parent / given).open("rb") as file:
            return file.read(BYTES_MAX + 1)

    return load


def finding_told(found: Finding) -> str:
    """A finding as a compiler prints it."""
    place = f"{found.file}:{found.line}:{found.column}"
    hint = f"\n  hint: {found.hint}" if found.hint else ""
    return f"{place}: {found.severity}: {found.message} [{found.code}]{hint}"
