"""Files into workflows, for whoever has a path rather than bytes."""

from pathlib import Path

from pawlflow.definition.finding import Finding
from pawlflow.definition.load import load_workflows
from pawlflow.definition.read import BYTES_MAX
from pawlflow.definition.shape import Workflow
from pawlflow.trouble import DefinitionError

SUFFIXES = (".yaml", ".yml", ".json")


def load_path(path: Path) -> list[Workflow]:
    """The workflows of a file, or of every YAML file in a folder. Raises DefinitionError."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
        return [workflow for each in files for workflow in load_file(each)]
    return load_file(path)


def load_file(path: Path) -> list[Workflow]:
    """The workflows of one file; warnings are for `pawl check`."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise DefinitionError("file.unreadable", message, []) from error
    workflows, findings = load_workflows(data, str(path))
    errors: list[Finding] = [found for found in findings if found.severity == "error"]
    if errors:
        first = errors[0]
        place = f"{first.file}:{first.line}:{first.column}"
        hint = f"; {first.hint}" if first.hint else ""
        message = f"{place}: {first.message}{hint} ({len(errors)} in all)"
        raise DefinitionError(first.code, message, errors)
    return workflows
