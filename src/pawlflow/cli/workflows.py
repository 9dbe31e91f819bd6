"""The workflow a verb is about: in a file, or published under a name."""

from pathlib import Path
from typing import Any, Final

import msgspec

from pawlflow.app import is_there
from pawlflow.children import published_plan, with_children
from pawlflow.cli.documents import load_path
from pawlflow.cli.output import NOT_FOUND, USAGE, find_files, is_yaml, note
from pawlflow.cli.session import Session, reading, refuse_findings, unknown_workflow
from pawlflow.definition.canonical import definition_bytes, definition_from_bytes
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Policy, Schedule, Workflow
from pawlflow.model.ids import Tenant
from pawlflow.store.port import Store

SUFFIXES: Final = (".yaml", ".yml", ".json")
FOLDER_MAX: Final = 200  # files looked through for a child: more are no folder of workflows


class Defined(msgspec.Struct, frozen=True):
    """What files define; of policies, lower versions first."""

    workflows: list[Workflow]
    schedules: list[Schedule]
    policies: list[Policy]


class Chosen(msgspec.Struct, frozen=True):
    """A workflow that is to be started, and those that must be published first."""

    workflow: Workflow
    plan: Plan
    unpublished: tuple[Workflow, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    steps: tuple[Any, ...] = ()  # functions that a flow brought along
    policies: tuple[Policy, ...] = ()


def is_file(given: str) -> bool:
    """Is this the path of a file, rather than a name?"""
    return given.endswith(SUFFIXES) or "/" in given or Path(given).is_file()


def definitions_in(here: Session, paths: list[str]) -> Defined:
    """All that files and folders define; ends with 3 if anything is not valid."""
    loaded = [
        load_path(path, as_json=here.as_json) for path in find_files(paths, as_json=here.as_json)
    ]
    errors = [found for file in loaded for found in file.findings if found.severity == "error"]
    if errors:
        refuse_findings(here, errors, {file.name: file.text for file in loaded})
    found = [workflow for file in loaded for workflow in file.workflows]
    schedules = [schedule for file in loaded for schedule in file.schedules]
    policies = [policy for file in loaded for policy in file.policies]
    if not found and not schedules and not policies:
        message = f"no document of kind: Workflow in {', '.join(paths)}"
        here.end("cli.nothing", message, NOT_FOUND)
    return Defined(found, schedules, sorted(policies, key=lambda each: each.version))


def in_file(here: Session, path: str) -> Chosen:
    """The first workflow of a file; the others, and children in its folder, go with it."""
    defined = definitions_in(here, [path])
    found = defined.workflows
    if not found:
        here.end("cli.nothing", f"no document of kind: Workflow in {path}", NOT_FOUND)
    first = first_of(here, path, found)
    found = [first, *(each for each in found if each is not first)]
    found += [] if Path(path).is_dir() else children_beside(here, Path(path), found)
    plans = [plan_of(definition_bytes(workflow)) for workflow in found]
    schedules, policies = tuple(defined.schedules), tuple(defined.policies)
    return Chosen(found[0], plans[0], tuple(found), schedules, policies=policies)


def first_of(here: Session, path: str, found: list[Workflow]) -> Workflow:
    """The one to start: of a file the first, of a folder the only one that is nobody's child."""
    if not Path(path).is_dir():
        return found[0]
    inner = {name for each in found for name in children_in(each)}
    tops = [each for each in found if each.name not in inner]
    if len(tops) != 1:
        names = ", ".join(sorted(each.name for each in tops)) or "none"
        message = f"{path} has several workflows that could be started: {names}; name a file"
        here.end("cli.usage", message, USAGE)
    return tops[0]


def children_in(workflow: Workflow) -> list[str]:
    """The names of the workflows that steps of this one start."""
    return [step.target for step in workflow.steps if step.kind == "workflow"]


def children_beside(here: Session, path: Path, found: list[Workflow]) -> list[Workflow]:
    """The children that a file leaves to others in its folder, and theirs."""
    known = {workflow.name for workflow in found}
    wanted = [name for each in found for name in children_in(each) if name not in known]
    if not wanted:
        return []
    files = sorted(each for each in path.absolute().parent.iterdir() if is_yaml(each))
    loaded = [load_path(each, as_json=here.as_json) for each in files[:FOLDER_MAX]]
    there = {str(each.name): each for file in loaded for each in file.workflows}
    made: dict[str, Workflow] = {}
    while wanted:
        name = wanted.pop()
        if name in there and name not in made:
            made[name] = there[name]
            wanted += [child for child in children_in(there[name]) if child not in known]
    return list(made.values())


def with_published(store: Store, tenant: Tenant, workflow: Workflow) -> tuple[Workflow, ...]:
    """A workflow and the children of it that were published."""
    plans = with_children(
        plan_of(definition_bytes(workflow)), lambda name: published_plan(store, tenant, name)
    )
    data = store.definitions([each.definition for each in plans[1:]])
    return (workflow, *map(definition_from_bytes, data.values()))


def note_unknown_children(here: Session, chosen: Chosen) -> None:
    """Say which children nobody knows yet: they may still be published before they are needed."""
    known = {str(each.name): plan_of(definition_bytes(each)) for each in chosen.unpublished}
    published: set[str] = set()
    if is_there(here.url):
        with reading(here) as store:
            published = {each.name for each in store.published(here.tenant)}
    every = with_children(chosen.plan, lambda name: known.get(name))  # noqa: PLW0108  # for mypy
    names = {s.target for each in every for s in each.steps if s.kind == "workflow"}
    missing = sorted(names - known.keys() - published)
    if missing:
        listed = ", ".join(missing)
        note(f"no workflow {listed} is published yet: `pawl apply -f FILE` before it is needed")


def by_name(here: Session, store: Store, name: str) -> Chosen:
    """The newest workflow of a name; ends with 4 if there is none."""
    found = [each for each in store.published(here.tenant) if each.name == name]
    if not found:
        unknown_workflow(here, store, name)
    newest = found[0].definition
    data = store.definitions([newest])[newest]
    return Chosen(definition_from_bytes(data), plan_of(data))
