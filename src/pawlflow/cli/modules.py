"""Workflows in Python modules: `pawl run shop.py:order`, `pawl check shop.py`."""

import re
import sysconfig
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from pawlflow.cli.documents import Loaded
from pawlflow.cli.executors import Executors, load_worker
from pawlflow.cli.output import NOT_FOUND, USAGE
from pawlflow.cli.session import Session, refuse_findings
from pawlflow.cli.workflows import Chosen
from pawlflow.definition.canonical import definition_bytes
from pawlflow.definition.finding import Finding, Place
from pawlflow.definition.plan import plan_of
from pawlflow.definition.report import listing, suggest
from pawlflow.definition.shape import Workflow
from pawlflow.effects.refs import FlowError
from pawlflow.flows.flow import Brought, Flow
from pawlflow.library import Runnable, is_built, is_runnable

PACKAGE: Final = (str(Path(__file__).parent.parent), sysconfig.get_paths()["stdlib"])
NAMED: Final = re.compile(r"(?P<module>[\w./~-]+):(?P<flow>[A-Za-z_][\w-]*)")


def is_module(given: str) -> bool:
    """Is this a flow in a module, rather than a YAML file or a name?"""
    return given.endswith(".py") or (NAMED.fullmatch(given) is not None)


def module_of(given: str) -> str:
    """The module that a flow is in."""
    found = NAMED.fullmatch(given)
    return found["module"] if found else given


def in_module(here: Session, given: str, value: Any) -> Chosen:
    """The flow that is named, or the only one of its file, with its children and functions."""
    found = NAMED.fullmatch(given)
    name = found["flow"] if found else None
    flow = chosen_flow(here, load_worker(here, module_of(given), "the module"), given, name)
    try:
        if is_built(flow):
            traced = flow.built(value)
            workflow, brought = traced.workflow, traced.brought
        else:
            workflow, brought = flow.workflow, flow.brought()
        children, steps = brought_along(brought)
    except Exception as error:  # noqa: BLE001  # a flow is users' code: it may raise anything
        refuse_findings(here, [finding_of(error)], {})
    plan = plan_of(definition_bytes(workflow))
    return Chosen(workflow, plan, (workflow, *children), (), tuple(steps))


def chosen_flow(here: Session, module: ModuleType, given: str, name: str | None) -> Runnable:
    """One flow of a module, by the name of its function or of its workflow."""
    flows = flows_of(module)
    names = [each.name for each in flows]
    if name is None and len(flows) == 1:
        return flows[0]
    for each in flows:
        if name in (each.name, getattr(each, "__name__", None)):
            return each
    return no_such_flow(here, given, name, names)


def no_such_flow(here: Session, given: str, name: str | None, names: list[str]) -> NoReturn:
    """None of this name, none at all, or too many to choose from."""
    if name is None and names:
        said = f"{given} has several flows: {listing(names)}; name one as {given}:{names[0]}"
        here.end("cli.usage", said, USAGE)
    if name is None:
        here.end("cli.nothing", f"{given} has no function marked with @flow", NOT_FOUND)
    known = f"; it has: {listing(names)}. {suggest(name, names)}" if names else ""
    here.end("cli.nothing", f"no flow {name!r} in {module_of(given)}{known}".strip(), NOT_FOUND)


def flows_of(module: ModuleType) -> list[Runnable]:
    """Every flow of a module, built ones too, each once."""
    found = {id(each): each for each in vars(module).values() if is_runnable(each)}
    return list(found.values())


def brought_along(brought: Brought) -> tuple[list[Workflow], list[Any]]:
    """The children of a flow and theirs, and the functions of all."""
    children: dict[str, Workflow] = {}
    steps = dict(brought.functions)
    waiting = list(brought.children.values())
    while waiting:
        child = waiting.pop()
        if child.name not in children:
            children[child.name] = child.workflow
            steps |= child.brought().functions
            waiting += child.brought().children.values()
    return list(children.values()), list(steps.values())


def with_steps(executors: Executors, chosen: Chosen) -> Executors:
    """The functions that a flow brought carry out its steps."""
    for step in chosen.steps:
        if not executors.knows(step.name, by_agent=False):
            executors.add(step.name, step, traced=True)
    return executors


def load_module(here: Session, given: str) -> Loaded:
    """The flows of a module, as what a file holds; built ones are seen when they start."""
    found = NAMED.fullmatch(given)
    module = load_worker(here, module_of(given), "the module")
    flows = [chosen_flow(here, module, given, found["flow"])] if found else flows_of(module)
    plain = [each for each in flows if not is_built(each)]
    findings = {each.name: findings_of(each) for each in plain}
    bad = {name for name, said in findings.items() if any(e.severity == "error" for e in said)}
    sound = [each.workflow for each in plain if each.name not in bad]
    told = [each for said in findings.values() for each in said]
    path = Path(module.__file__ or given)
    text = path.read_text(errors="replace") if path.is_file() else ""
    return Loaded(str(path), text, sound, [], [], told, frozenset())


def findings_of(flow: Runnable) -> list[Finding]:
    """Errors and warnings of one flow, at the lines of its code."""
    try:
        return flow.traced.findings if isinstance(flow, Flow) else []
    except Exception as error:  # noqa: BLE001  # a flow is users' code: it may raise anything
        return [finding_of(error)]


def finding_of(error: Exception) -> Finding:
    """A flow that cannot be traced, as a finding; what its own code raised, at its own line."""
    if isinstance(error, FlowError):
        place, code, said = error.place, error.code, error.said
    else:
        frames = traceback.extract_tb(error.__traceback__)
        users = [each for each in frames if not each.filename.startswith(PACKAGE)] or frames
        last = users[-1]
        place = Place(last.filename, last.lineno or 1, (last.colno or 0) + 1)
        code = "flow.raised"
        said = f"the function raised {type(error).__name__}: {error}"
    return Finding(
        file=place.file,
        line=place.line,
        column=place.column,
        severity="error",
        code=code,
        message=said,
    )
