"""Flows that run: on memory and on files, over restarts, with plans that are built at the start."""

import asyncio
import sqlite3
from dataclasses import dataclass
from enum import Enum
from types import ModuleType

import pytest

from pawlflow import (
    Conflict,
    FlowError,
    NoExecutor,
    Pawl,
    Terminal,
    WorkflowFailed,
    approval,
    child,
    each,
    flow,
    step,
    text,
    wait_for,
)
from pawlflow.definition.canonical import definition_hash
from pawlflow.definition.load import load_workflows
from pawlflow.projections.proof import verify_store
from tests.effects.kit import run
from tests.flows.pairs import PROVISION, link, provision_parties, save_account

done: list[str] = []


@step(undo="unmake")
async def make(part: str) -> dict[str, str]:
    done.append(f"make {part}")
    return {"part": part}


@step
def unmake(part: str, result: dict[str, str]) -> None:
    assert result == {"part": part}
    done.append(f"unmake {part}")


@step
async def assemble(parts: list[dict[str, str]], label: str) -> str:
    if label.startswith("bad"):
        raise Terminal("it does not fit")
    return f"{label}: " + "+".join(each["part"] for each in parts)


@flow
def polish(request):
    return make(request.thing)


@flow(failure_policy="compensate")
def machine(parts, label="plain"):
    """Parts in parallel, then together, then polished; then somebody fetches it."""
    made = each(parts, make, limit=2)
    whole = assemble(made, text("{} machine", label))
    shine = child(polish, {"thing": whole})
    fetched = wait_for("fetched", match=lambda event: event.label == label, after=shine)
    return {"whole": whole, "shine": shine.part, "by": fetched.by}


async def reached(started, kind):
    """Until a run has published an event of this kind."""
    async for event in started.events():
        if event["eventType"] == kind:
            return


@pytest.fixture(autouse=True)
def nothing_done():
    done.clear()


@pytest.mark.req("R229", "R92")
def test_a_flow_runs_with_its_functions_and_children(engine):
    """Nothing is registered by hand: starting a flow brings all that it needs."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(machine, {"parts": ["a", "b", "c"]})
            await pawl.signal(started.id, "fetched", {"label": "plain", "by": "ann"})
            result = await started.result(timeout="30s")
            shown = started.show()
            report = verify_store(pawl.reader)
        return result, shown, report

    result, shown, report = run(main())
    whole = "plain machine: a+b+c"
    assert result == {"whole": whole, "shine": whole, "by": "ann"}
    assert sorted(done[:3]) == ["make a", "make b", "make c"]
    assert shown["workflow"] == "machine"
    assert shown["definition_hash"] == machine.plan_hash
    assert report.differences == []


def test_a_flow_that_fails_is_undone_by_the_function_beside_it(engine):
    """The undo is named by a text; its arguments are those of the call, and its result."""

    async def main():
        async with engine() as pawl:
            started = await pawl.start(machine, {"parts": ["a", "b"], "label": "bad"})
            with pytest.raises(WorkflowFailed) as failed:
                await started.result(timeout="30s")
        return failed.value

    failed = run(main())
    assert (failed.step, failed.failure_class, failed.rollback) == ("assemble", "terminal", "full")
    assert sorted(done) == ["make a", "make b", "unmake a", "unmake b"]


def test_yaml_and_python_are_one_workflow(engine):
    """An instance of the file runs on with the functions, and the other way round."""

    async def main():
        (workflow,), _ = load_workflows(PROVISION, "provision.yaml")
        assert definition_hash(workflow).hex() == provision_parties.plan_hash
        async with engine() as pawl:
            first = await pawl.start(provision_parties, {"party": {"id": "p"}, "login": "l"})
            second = await pawl.start(workflow, {"party": {"id": "p"}, "login": "l", "link": False})
            for each_ in (first, second):
                await reached(each_, "ApprovalRequested")
                await pawl.approve(each_.id, "release", by="ann", role="ReleaseManager")
            outputs = [await each_.result(timeout="30s") for each_ in (first, second)]
            states = [each_.show()["steps"]["link"]["state"] for each_ in (first, second)]
        return outputs, states

    outputs, states = run(main())
    assert outputs == [{"party": "p", "account": "p/l"}] * 2
    assert states == ["succeeded", "skipped"]


def test_everything_in_flight_goes_on_in_another_process(tmp_path):
    """The journal has the definition; the functions come back with the flow."""
    url = f"sqlite:///{tmp_path}/pawl.db"

    async def begin():
        async with Pawl(url) as pawl:
            started = await pawl.start(machine, {"parts": ["a"]}, id="m-1")
            await reached(started, "WorkflowStepWaiting")

    async def end():
        async with Pawl(url) as pawl:
            pawl.add(machine)
            await pawl.signal("m-1", "fetched", {"label": "plain", "by": "bob"})
            return await pawl.run("m-1").result(timeout="30s")

    run(begin())
    assert run(end())["by"] == "bob"
    assert done == ["make a", "make plain machine: a"]


def test_a_module_is_registered_whole(engine):
    """Its steps under their effects, its flows under their names."""
    module = ModuleType("shop")
    module.make, module.polish, module.unmake = make, polish, unmake

    async def main():
        async with engine() as pawl:
            names = pawl.register(module)
            started = await pawl.start("polish", {"thing": "t"})
            return names, await started.result(timeout="30s")

    assert run(main()) == (["make", "unmake", "polish"], {"part": "t"})


def test_without_its_functions_a_flows_definition_is_refused(engine):
    """By name and before anything starts, as for a file."""

    async def main():
        async with engine() as pawl:
            with pytest.raises(NoExecutor, match="delete_party, link, save_account, save_party"):
                await pawl.start(provision_parties.workflow, {})
            pawl.register(link, save_account)
            with pytest.raises(NoExecutor, match="delete_party, save_party"):
                await pawl.start(provision_parties.workflow, {})

    run(main())


# Plans that are built from the input


@flow(build=True, failure_policy="compensate", version=2)
def bundle(request):
    """As many steps as there are datasets: known only when it starts."""
    published = []
    for name in request["datasets"]:
        after = published[-1:] if request.get("ordered") else []
        published.append(make(name, name=f"publish-{name}", after=after))
    if request.get("gate"):
        approval("gate", role="Editor", after=published)
    return [each_.part for each_ in published]


@pytest.mark.req("R194")
def test_a_plan_is_built_from_its_input_once(engine):
    """Two starts of different inputs have different plans; each instance keeps its own."""

    async def main():
        async with engine() as pawl:
            one = await pawl.start(bundle, {"datasets": ["a", "b"], "ordered": True}, id="one")
            two = await pawl.start(bundle, {"datasets": ["c"]}, id="two")
            again = await pawl.start(bundle, {"datasets": ["c"]}, id="two")
            with pytest.raises(Conflict):
                await pawl.start(bundle, {"datasets": ["d"]}, id="two")
            results = [await each_.result(timeout="30s") for each_ in (one, two, again)]
            shown = [each_.show() for each_ in (one, two)]
            report = verify_store(pawl.reader)
        return results, shown, report

    results, shown, report = run(main())
    assert results == [["a", "b"], ["c"], ["c"]]
    assert [list(each_["steps"]) for each_ in shown] == [["publish-a", "publish-b"], ["publish-c"]]
    assert shown[0]["definition_hash"] != shown[1]["definition_hash"]
    assert {each_["version"] for each_ in shown} == {2}
    assert done == ["make a", "make b", "make c"]
    assert report.differences == []


@pytest.mark.req("R194")
def test_many_plans_of_one_flow_are_built_at_the_same_time(engine):
    """Starts that overlap do not take each other's plans."""

    async def main():
        async with engine() as pawl:
            starts = (pawl.start(bundle, {"datasets": [f"d{n}"]}) for n in range(40))
            runs = await asyncio.gather(*starts)
            return [await each_.result(timeout="30s") for each_ in runs]

    assert run(main()) == [[f"d{n}"] for n in range(40)]


def test_a_built_plan_is_in_the_journal_and_never_built_again(tmp_path):
    """After a restart the function may be gone: what was built goes on."""
    url = f"sqlite:///{tmp_path}/pawl.db"
    input_ = {"datasets": ["a", "b"], "ordered": True, "gate": True}

    async def begin():
        async with Pawl(url) as pawl:
            started = await pawl.start(bundle, input_, id="b-1")
            await reached(started, "ApprovalRequested")
            return started.show()["definition_hash"]

    async def end():
        async with Pawl(url) as pawl:
            pawl.register(make, unmake)
            await pawl.approve("b-1", "gate", by="ed", role="Editor")
            started = pawl.run("b-1")
            return await started.result(timeout="30s"), started.show()["definition_hash"]

    before = run(begin())
    assert run(end()) == (["a", "b"], before)
    with sqlite3.connect(tmp_path / "pawl.db") as db:
        (known,) = db.execute(
            "SELECT count(*) FROM definition WHERE hash = ?", (bytes.fromhex(before),)
        ).fetchone()
    assert known == 1


def test_a_built_flow_says_what_is_wrong_with_its_plan(engine):
    """Nothing is started, nothing is published."""

    async def main():
        async with engine() as pawl:
            with pytest.raises(FlowError, match="no steps"):
                await pawl.start(bundle, {"datasets": []})
            with pytest.raises(FlowError, match="publish-a"):
                await pawl.start(bundle, {"datasets": ["a", "a"]})
            assert pawl.list() == []

    run(main())
    with pytest.raises(FlowError, match="built from its input"):
        _ = bundle.workflow
    assert [each_.name for each_ in bundle.built({"datasets": ["z"]}).workflow.steps] == [
        "publish-z"
    ]


# Arguments of users' own types


class Size(Enum):
    """How large a box is."""

    SMALL = "small"
    LARGE = "large"


@dataclass
class Box:
    """What is packed."""

    size: Size
    weight: float


@step
def pack(boxes: list[Box], note: str | None = None) -> Box:
    assert all(isinstance(box, Box) for box in boxes)
    return Box(Size.LARGE, sum(box.weight for box in boxes))


@step
def weigh(box: Box) -> float:
    assert box.size is Size.LARGE
    return box.weight


@flow
def packing(request):
    return weigh(pack(request.boxes))


def test_functions_get_the_types_they_ask_for(engine):
    """The journal has plain values; a dataclass is made of them at the call."""
    boxes = [{"size": "small", "weight": 1.5}, {"size": "large", "weight": 2}]

    async def main():
        async with engine() as pawl:
            good = await pawl.start(packing, {"boxes": boxes})
            bad = await pawl.start(packing, {"boxes": [{"size": "huge", "weight": 1}]})
            with pytest.raises(WorkflowFailed) as failed:
                await bad.result(timeout="30s")
            return await good.result(timeout="30s"), failed.value

    result, failed = run(main())
    assert result == 3.5
    assert (failed.code, failed.failure_class) == ("effect.arguments", "terminal")
    assert "pack cannot take boxes: Invalid enum value 'huge'" in str(failed)
