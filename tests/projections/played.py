"""Scenarios written in a test, played by the real shard on a SQLite file, and read back."""

from functools import partial
from pathlib import Path
from textwrap import indent

from pawlflow.definition.load import load_text
from pawlflow.definition.plan import compile_plan
from pawlflow.engine.admission import admit_start
from pawlflow.model.ids import CellId, InstanceId, Tenant, WorkflowName
from pawlflow.model.inputs import CancelInstance, Receipt
from pawlflow.projections.story import Story
from pawlflow.testing.host import THEN_SCRIPT
from pawlflow.testing.journals import journal_of
from pawlflow.testing.runner import TENANT, on_file, run_scenario
from pawlflow.testing.scenario import read_scenario
from tests.kernel.support import Live, payload, workflow
from tests.projections.kit import story_in, told_live

FRAME = """\
apiVersion: pawl.dev/v1
kind: Scenario
metadata: {name: played}
spec:
  definition:
    apiVersion: pawl.dev/v1
    kind: Workflow
    metadata: {name: w}
    spec:
"""


def play(folder: Path, spec: str, rest: str = "") -> Story:
    """Run a workflow with stubs and a script; the story is read back from the file's journal."""
    text = FRAME + indent(spec.strip("\n"), "      ") + "\n" + indent(rest.strip("\n"), "  ") + "\n"
    [document] = load_text(text.encode(), "played.yaml")
    scenario, findings = read_scenario(document.node, load_file=lambda _: b"")
    assert scenario is not None, findings
    result = run_scenario(scenario, host=on_file(folder / "played.db"))
    assert result.passed and not result.refused, (result.failures, result.refused)
    return story_in(result.journal)


def queue(folder: Path) -> Story:
    """The story of an instance that waits for its slot until the one before it is cancelled."""
    shape = workflow(
        "concurrency: {key: input.k, limit: 1}\ntimeout: 1h\nsteps:\n"
        "  - {name: hold, when: input.first, wait: {event: never}}\n"
        "  - {name: work, run: x.y, timeout: 1m, dependsOn: [hold]}"
    )
    plan = compile_plan(shape)
    first, second = (CellId(TENANT, WorkflowName("w"), InstanceId(key)) for key in ("i-1", "i-2"))
    host = on_file(folder / "queue.db")(second, plan, lambda _: None, None)
    host.know(shape)
    start = partial(admit_start, plan, tenant=Tenant(TENANT), by="zoe")
    assert host.submit(start({"k": 1, "first": True}), first) is None
    assert host.submit(start({"k": 1, "first": False})) is None
    host.schedule(60_000, THEN_SCRIPT, lambda: host.post(first, CancelInstance("ann")))
    host.run()
    host.finish()
    data = journal_of(host, shape)
    host.close()
    return story_in(data)


def warned(_: Path) -> Story:
    """The story of a step whose executor reported a warning."""
    shape = workflow("steps: [{name: work, run: x.y}]")
    live = Live(shape)
    live.start()
    live.submit(Receipt(live.call("work").key, 1, "ok", payload({"rows": 9}), warnings=1))
    return told_live(live, shape)


SCRIPTED = {"queue": queue, "warned": warned}
