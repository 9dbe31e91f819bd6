"""Files into workflows, schedules and policies, for whoever has a path rather than bytes."""

from pathlib import Path

from pawlflow.definition.finding import Finding
from pawlflow.definition.load import Definitions
from pawlflow.definition.read import BYTES_MAX
from pawlflow.policing import load_checked
from pawlflow.trouble import DefinitionError

SUFFIXES = (".yaml", ".yml", ".json")


def load_path(path: Path) -> list[Definitions]:
    """What a file, or every YAML file of a folder, defines. Raises DefinitionError."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES)
        return [load_file(each) for each in files]
    return [load_file(path)]


def load_file(path: Path) -> Definitions:
    """What one file defines; warnings are for `pawl check`."""
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise DefinitionError("file.unreadable", message, []) from error
    loaded = load_checked(data, str(path))
    errors: list[Finding] = [found for found in loaded.findings if found.severity == "error"]
    if errors:
        first = errors[0]
        place = f"{first.file}:{first.line}:{first.column}"
        hint = f"; {first.hint}" if first.hint else ""
        message = f"{place}: {first.message}{hint} ({len(errors)} in all)"
        raise DefinitionError(first.code, message, errors)
    return loaded
