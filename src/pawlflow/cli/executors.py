"""Who carries out the steps of a run: the functions of a module, or stubs."""

import asyncio
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol
from uuid import UUID

from pawlflow.cli.output import USAGE, file_limits, read_file
from pawlflow.cli.session import Session, refuse_findings
from pawlflow.definition.finding import Finding
from pawlflow.definition.read import Node, read_yaml
from pawlflow.definition.report import EnoughError, Report
from pawlflow.definition.shape import Workflow
from pawlflow.effects.context import Context, Terminal
from pawlflow.effects.registry import Executor, Registry, executor_of
from pawlflow.effects.secrets import Secrets
from pawlflow.model.failure import failure_of
from pawlflow.model.ids import NO_ITEM, CellId, InstanceId, StepKey, Tenant, WorkflowName
from pawlflow.model.inputs import Receipt
from pawlflow.model.intents import Call
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.secrets import ChainSecrets, EnvironmentSecrets, FileSecrets, SecretsError
from pawlflow.testing.runner import spellings
from pawlflow.testing.scenario import Answer, read_stubs

Stubs = Mapping[str, tuple[Answer, ...]]
Deliver = Callable[[CellId, Receipt, int], None]


class CallsBefore(Protocol):
    """How often a step or item of an instance was called in earlier runs of it."""

    def __call__(self, key: str, unit: str, *, undo: bool) -> int:
        """All of them together."""
        ...


class Executors(Registry):
    """Functions by name; with stubs, one instance asks those first and lacks nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.stubs: Stubs | None = None
        self.stubbed: tuple[Tenant, InstanceId] | None = None
        self.secrets: Secrets = EnvironmentSecrets()
        self.deliver: Deliver = lambda *_: None
        self.parent_of: Callable[[CellId], Parent | None] = lambda _: None
        self.calls_before: CallsBefore = lambda key, unit, *, undo: 0
        self.paths: dict[InstanceId, str | None] = {}  # of instances, below the stubbed one
        self.stub = executor_of("stub", self.answer_as_told)

    def use_stubs(self, stubs: Stubs, tenant: Tenant, key: InstanceId) -> None:
        """Let stubs answer for one instance. Others in the same store must not be made up."""
        self.stubs, self.stubbed = stubs, (tenant, key)

    def find(self, call: Call) -> Executor | None:
        """A stub that is listed, a function, or the stub that succeeds at once."""
        found = super().find(call)
        if call.direction == "ask":  # by the policies in force, whatever the stubs say
            return found
        path = None if self.stubs is None else self.path_of(call.cell)
        if path is None:
            return found
        item = None if call.item == NO_ITEM else call.item
        answers = self.answers_for(path, call.step, item, undo=call.direction == "undo")
        return self.stub if answers or found is None else found

    def path_of(self, cell: CellId) -> str | None:
        """Where an instance hangs below the stubbed one, such as `a/b[2]/`; None: elsewhere."""
        if (cell.tenant, cell.key) == self.stubbed:
            return ""
        if cell.key not in self.paths:
            self.paths[cell.key] = self.path_below(cell.tenant, self.parent_of(cell))
        return self.paths[cell.key]

    def path_below(self, tenant: Tenant, parent: Parent | None) -> str | None:
        """Where the child of a step hangs."""
        if parent is None:
            return None
        cell = CellId(tenant, WorkflowName(parent.workflow), InstanceId(parent.key))
        above = self.path_of(cell)
        return None if above is None else f"{above}{parent.step}/"

    def answers_for(
        self, path: str, step: str, item: int | None, *, undo: bool
    ) -> tuple[Answer, ...]:
        """The answers that are listed for a step or item; nothing if it is not."""
        name = f"{path}{step}" + ("" if item is None else f"[{item}]")
        found = map((self.stubs or {}).get, spellings("undo/" if undo else "", name))
        return next(filter(None, found), ())

    def knows(self, target: str, *, by_agent: bool) -> bool:
        """Is there an executor for this?"""
        return self.stubs is not None or super().knows(target, by_agent=by_agent)

    async def answer_as_told(self, /, ctx: Context, **_: Any) -> Any:
        """What the stub of this attempt says, after the time it says."""
        path = self.path_of(cell_of(ctx)) or ""
        answers = self.answers_for(path, ctx.step, ctx.item, undo=ctx.undo)
        if not answers:
            return {}
        unit = ctx.step if ctx.item is None else f"{ctx.step}[{ctx.item}]"
        asked = ctx.attempt + self.calls_before(ctx.instance, unit, undo=ctx.undo)
        answer = answers[min(asked, len(answers)) - 1]
        await asyncio.sleep(answer.after_ms / 1000)
        if answer.hang:
            await asyncio.Event().wait()
        if answer.fail is not None:
            # An exception can choose three classes; a receipt can have any. What is raised then
            # comes after it, for the same attempt, and changes nothing.
            receipt = receipt_of(answer, ctx)
            self.deliver(cell_of(ctx), receipt, 0)
            raise Terminal(answer.message or f"a stub: {answer.fail}")
        for unit, amount in (answer.usage or {}).items():
            ctx.spent(**{unit: amount})
        if answer.twice or answer.warnings:
            self.deliver(cell_of(ctx), receipt_of(answer, ctx), 0)
        return answer.ok


def cell_of(ctx: Context) -> CellId:
    """The instance of an attempt."""
    return CellId(ctx.tenant, ctx.workflow, ctx.instance)


def receipt_of(answer: Answer, ctx: Context) -> Receipt:
    """The answer of a stub as the receipt of an attempt."""
    key = StepKey(UUID(ctx.key).bytes)
    usage = Payload.of(answer.usage, ctx.tenant) if answer.usage else None
    if answer.fail is None:
        payload = Payload.of(answer.ok, ctx.tenant)
        warned = len(answer.warnings)
        return Receipt(key, ctx.attempt, "ok", payload, warnings=warned, usage=usage)
    message = answer.message or f"a stub: {answer.fail}"
    failure = failure_of(
        answer.fail,
        "effect.failed",
        message,
        tenant=ctx.tenant,
        findings=list(answer.findings),
    )
    return Receipt(key, ctx.attempt, "failed", failure=failure, usage=usage)


def secrets_in(here: Session, given: Path | None) -> Secrets:
    """Where secrets come from: a file or folder, if one is named, and the environment."""
    if given is None:
        return EnvironmentSecrets()
    try:
        return ChainSecrets(FileSecrets(given), EnvironmentSecrets())
    except SecretsError as error:
        here.end(error.code, f"--secrets: {error}", USAGE)


def stubs_in(here: Session, given: Path, workflows: tuple[Workflow, ...]) -> Stubs:
    """The stubs of a file: a Scenario's `stubs` by themselves, or the whole Scenario."""
    data = read_file(given, as_json=here.as_json)
    report = Report()
    nodes: list[Node] = []
    with suppress(EnoughError):
        found = read_yaml(data, str(given), report, limits=file_limits())
        nodes = [each for each in found if each.value is not None]
    stubs: Stubs = {}
    findings: list[Finding] = report.sorted()
    if nodes and not report.errors:
        stubs, findings = read_stubs(stubs_node(nodes[0]), workflows)
    errors = [found for found in findings if found.severity == "error"]
    if errors:
        refuse_findings(here, errors, {str(given): data.decode("utf-8", "replace")})
    return stubs


def stubs_node(node: Node) -> Node:
    """Where the mapping stands."""
    place = node
    for key in ("spec", "stubs") if "apiVersion" in (node.value or ()) else ():
        inner = place.value.get(key) if isinstance(place.value, dict) else None
        place = place if inner is None else inner
    return place


def load_worker(here: Session, given: str, option: str = "--worker") -> ModuleType:
    """Import a module, by its name or by the path of its file. The current folder is looked in."""
    path = Path(given)
    by_path = given.endswith(".py") or path.is_file()
    folder = path.absolute().parent if by_path else Path.cwd()
    if by_path and not path.is_file():
        here.end("cli.worker", f"{option}: no such file: {given}", USAGE)
    sys.path.insert(0, str(folder))
    try:
        return load_file(path) if by_path else importlib.import_module(given)
    except ModuleNotFoundError as error:
        missing = error.name or given
        where = f"; looked in {folder} and where Python looks" if given.startswith(missing) else ""
        here.end("cli.worker", f"{option} {given}: no module {missing!r}{where}", USAGE)
    except Exception as error:  # noqa: BLE001  # whatever a user's module does when it is imported
        last = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__}: {error}"
        message = f"{option} {given} cannot be imported: {last.filename}:{last.lineno}: {said}"
        here.end("cli.worker", message, USAGE)


def load_file(path: Path) -> ModuleType:
    """Import one file, under a name that hides no other module."""
    spec = importlib.util.spec_from_file_location(f"worker_{path.stem}", path.absolute())
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def executors_of(here: Session, worker: str | None) -> Executors:
    """The functions of a module, if one is named; ends with 2 if it has none."""
    executors = Executors()
    if worker is not None and not executors.add_module(load_worker(here, worker)):
        here.end("cli.worker", f"--worker {worker} has no function marked with @step", USAGE)
    return executors
