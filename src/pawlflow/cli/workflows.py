"""The workflow a verb is about: in a file, or published under a name."""

from pathlib import Path
from typing import Final

import msgspec

from pawlflow.cli.documents import load_path
from pawlflow.cli.output import NOT_FOUND, find_files
from pawlflow.cli.session import Session, refuse_findings, unknown_workflow
from pawlflow.definition.canonical import definition_bytes, definition_from_bytes
from pawlflow.definition.shape import Workflow
from pawlflow.kernel.plan import Plan, plan_of
from pawlflow.store.port import Store

SUFFIXES: Final = (".yaml", ".yml", ".json")


class Chosen(msgspec.Struct, frozen=True):
    """A workflow that is to be started, and those that must be published first."""

    workflow: Workflow
    plan: Plan
    unpublished: tuple[Workflow, ...] = ()


def is_file(given: str) -> bool:
    """Is this the path of a file, rather than a name?"""
    return given.endswith(SUFFIXES) or "/" in given or Path(given).is_file()


def workflows_in(here: Session, paths: list[str]) -> list[Workflow]:
    """Every workflow of these files and folders; ends with 3 if one is not valid."""
    loaded = [
        load_path(path, as_json=here.as_json) for path in find_files(paths, as_json=here.as_json)
    ]
    errors = [found for file in loaded for found in file.findings if found.severity == "error"]
    if errors:
        refuse_findings(here, errors, {file.name: file.text for file in loaded})
    found = [workflow for file in loaded for workflow in file.workflows]
    if not found:
        message = f"no document of kind: Workflow in {', '.join(paths)}"
        here.end("cli.nothing", message, NOT_FOUND)
    return found


def in_file(here: Session, path: str) -> Chosen:
    """The first workflow of a file; the others are published with it."""
    found = workflows_in(here, [path])
    plans = [plan_of(definition_bytes(workflow)) for workflow in found]
    return Chosen(found[0], plans[0], tuple(found))


def by_name(here: Session, store: Store, name: str) -> Chosen:
    """The newest workflow of a name; ends with 4 if there is none."""
    found = [each for each in store.published(here.tenant) if each.name == name]
    if not found:
        unknown_workflow(here, store, name)
    newest = found[0].definition
    data = store.definitions([newest])[newest]
    return Chosen(definition_from_bytes(data), plan_of(data))
