"""What `pawl sim` is about: a workflow file, a scenario or a flow; its answers and invariants."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import click
import msgspec

from pawlflow.cli.documents import load_path
from pawlflow.cli.executors import executors_of, load_worker, stubs_in
from pawlflow.cli.output import INVALID, USAGE, note, print_findings, print_json, read_file
from pawlflow.cli.session import Session, refuse_findings
from pawlflow.cli.values import json_of
from pawlflow.cli.workflows import in_file, is_file
from pawlflow.definition.report import suggest
from pawlflow.definition.shape import Policy, Workflow
from pawlflow.model.trouble import PawlError
from pawlflow.testing.scenario import Action, Answer, Scenario
from pawlflow.testing.scenario_policies import first_of_each
from pawlflow.testing.usersim.invariants import (
    BadInvariantError,
    Invariant,
    Stated,
    Where,
    Written,
    functions_of,
    is_function,
    lines_of,
    names_in,
)
from pawlflow.testing.usersim.kinds import BadFaultsError, chosen
from pawlflow.testing.usersim.tape import Given
from pawlflow.testing.usersim.workload import STARTER, Workload


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow, and what a scenario says beside it."""

    workflows: tuple[Workflow, ...]
    stubs: Mapping[str, tuple[Answer, ...]] = {}
    script: tuple[Action, ...] = ()
    by: str = STARTER
    policies: tuple[Policy, ...] = ()
    inputs: tuple[Any, ...] = ()


def source_of(here: Session, given: str) -> Source:
    """The workflow that is meant; ends with 2, 3 or 4."""
    if given.endswith(".py") or not is_file(given):
        return of_module(here, given)
    loaded = None if Path(given).is_dir() else load_path(Path(given), as_json=here.as_json)
    if loaded is None or "Scenario" not in loaded.kinds:
        chosen = in_file(here, given)
        return Source(workflows=chosen.unpublished, policies=chosen.policies)
    errors = [found for found in loaded.findings if found.severity == "error"]
    if errors:
        refuse_findings(here, errors, {loaded.name: loaded.text})
    first, *others = loaded.scenarios
    if others:
        note(f"{given} has {len(others) + 1} scenarios: the first, {first.name!r}, is taken")
    return of_scenario(first)


def of_scenario(scenario: Scenario) -> Source:
    """Its workflow, stubs, input and script; what it expects holds only in good weather."""
    return Source(
        workflows=scenario.workflows,
        stubs=scenario.stubs,
        script=scenario.script,
        by=scenario.by,
        policies=first_of_each(scenario.policies),
        inputs=(scenario.input,),
    )


def of_module(here: Session, given: str) -> Source:
    """A flow of a module: MODULE:flow, or the only one there is."""
    named, colon, name = given.rpartition(":")
    module = load_worker(here, named if colon else given, "sim")
    flows = {key: each for key, each in vars(module).items() if hasattr(type(each), "workflow")}
    if colon and name not in flows:
        hint = suggest(name, flows) or f"flows are: {', '.join(flows) or 'none'}"
        here.end("cli.usage", f"{named} has no flow {name!r}: {hint}", USAGE)
    if not colon and len(flows) != 1:
        known = ", ".join(flows) or "none"
        here.end("cli.usage", f"name one flow, as in {given}:FLOW; flows are: {known}", USAGE)
    first = flows[name] if colon else next(iter(flows.values()))
    others = {id(each): each for each in flows.values() if each is not first}
    try:
        workflows = [first.workflow]
        for each in [*children_of(first), *others.values()]:
            if all(each.workflow.name != there.name for there in workflows):
                workflows.append(each.workflow)
    except PawlError as error:
        here.end(error.code, str(error), INVALID)
    return Source(workflows=tuple(workflows))


def children_of(flow: Any) -> list[Any]:
    """Flows that a flow starts, and theirs; they may live in other modules."""
    found: dict[str, Any] = {}
    rest = [flow]
    while rest:
        brought = getattr(rest.pop(), "brought", None)
        for name, child in (brought().children if brought is not None else {}).items():
            if name not in found:
                found[name] = child
                rest.append(child)
    return list(found.values())


def workload_of(here: Session, source: Source, given: Given) -> Workload:
    """The workload: what the source says, and the options on top of it."""
    stubs = dict(source.stubs)
    if given.stubs is not None:
        stubs |= stubs_in(here, Path(given.stubs), source.workflows)
    known = names_in(source.workflows)
    unknown = [step for step in given.idempotent if step != "*" and step not in known]
    if unknown:
        hint = suggest(unknown[0], known) or f"steps are: {', '.join(known)}"
        here.end("cli.usage", f"--idempotent: no step {unknown[0]!r}: {hint}", USAGE)
    try:
        faults = chosen(given.faults)
    except BadFaultsError as error:
        here.end("cli.usage", f"--faults: {error}", USAGE)
    return Workload(
        workflows=source.workflows,
        stubs=stubs,
        script=tuple(each for each in source.script if each.verb not in ("publish", "retire")),
        by=source.by,
        policies=source.policies,
        inputs=given.inputs or source.inputs,
        people=given.people,
        idempotent=frozenset(step.rpartition("/")[2] for step in given.idempotent),
        signals=given.signals,
        registry=None if given.worker is None else executors_of(here, given.worker),
        instances=given.instances,
        faults=faults,
    )


# Invariants


def invariants_of(
    here: Session, texts: tuple[str, ...], workflows: tuple[Workflow, ...]
) -> list[Invariant]:
    """Every invariant as it was given; ends with 2 at the first that cannot be used."""
    known = names_in(workflows)
    return [invariant_of(here, text, known, Where("--invariant")) for text in texts]


def invariant_of(here: Session, text: str, known: Mapping[str, None], where: Where) -> Invariant:
    """An expression, or MODULE:function."""
    if is_function(text):
        named, _, name = text.rpartition(":")
        module = load_worker(here, named, "--invariant")
        return Written(text, function_in(here, module, name, text))
    try:
        return Stated(text, known, where)
    except BadInvariantError as error:
        refuse_invariant(here, error, text)


def function_in(here: Session, module: ModuleType, name: str, text: str) -> Any:
    """The function of a module that is meant."""
    found = getattr(module, name, None)
    if not callable(found):
        known = [invariant.text.rpartition(":")[2] for invariant in functions_of(module, "")]
        hint = suggest(name, known) or f"functions are: {', '.join(known) or 'none'}"
        here.end("cli.usage", f"--invariant {text}: no function {name!r}: {hint}", USAGE)
    return found


def invariants_in(
    here: Session, path: Path, workflows: tuple[Workflow, ...]
) -> list[tuple[str, Invariant]]:
    """Those of a file: the functions of a .py, or an expression on each line of another."""
    if path.suffix == ".py":
        written = functions_of(load_worker(here, str(path), "--invariants"), str(path))
        if not written:
            here.end("cli.usage", f"--invariants {path}: it defines no function", USAGE)
        return [(each.text, each) for each in written]
    source = read_file(path, as_json=here.as_json).decode("utf-8", "replace")
    known, found = names_in(workflows), list[tuple[str, Invariant]]()
    for line, column, text in lines_of(source):
        where = Where(str(path), line, column)
        try:
            stated = invariant_of(here, text, known, where) if is_function(text) else None
            found.append((text, stated or Stated(text, known, where)))
        except BadInvariantError as error:
            refuse_invariant(here, error, source)
    if not found:
        here.end("cli.usage", f"--invariants {path}: there is none in it", USAGE)
    return found


def refuse_invariant(here: Session, error: BadInvariantError, source: str) -> NoReturn:
    """Say what is wrong with it, and where; exit 2."""
    found = error.finding
    if here.as_json:
        place = f"{found.file}:{found.line}:{found.column}"
        print_json(
            {
                "error": {
                    "code": found.code,
                    "message": f"{place}: {found.message}",
                    "findings": [found],
                }
            }
        )
    else:
        print_findings([found], {found.file: source})
    raise click.exceptions.Exit(USAGE)


def signals_of(here: Session, given: tuple[str, ...]) -> dict[str, Any]:
    """EVENT=JSON, by event."""
    found: dict[str, Any] = {}
    for text in given:
        event, equals, data = text.partition("=")
        value = json_of(here, data, "--signal") if equals else None
        if not event or not isinstance(value, dict):
            message = f"--signal: {text!r} is not EVENT=JSON, where JSON is an object"
            here.end("cli.usage", message, USAGE)
        found[event] = value
    return found
