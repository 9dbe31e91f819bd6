"""Flows that are built from their input, in a process after the one that started them."""

import subprocess
import sys

import pytest

from pawlflow import Pawl, PawlError, flow, step, wait_for
from tests.effects.kit import run

PROGRAM = """
import asyncio, os, signal, sys
from pawlflow import Pawl, flow, step

HOW = sys.argv[1]

@step
async def put(part):
    print("put", part, flush=True)
    if HOW == "crash" and part == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return part

@flow(build=True)
def bundle(request):
    if HOW == "broken":
        raise KeyError("parts")
    if HOW == "other":
        return
    for number, part in enumerate(request["parts"]):
        put(part, name=f"put-{number}", after=[f"put-{number - 1}"] if number else [])

async def main():
    async with Pawl("sqlite:///built.db") as pawl:
        if HOW == "add":
            pawl.add(bundle)
            print(await pawl.run("b-1").result(timeout="20s"), flush=True)
            return
        started = await pawl.start(bundle, {"parts": ["a", "b", "c"]}, id="b-1")
        await started.result(timeout="20s")
        print(started.show()["state"], flush=True)

asyncio.run(main())
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "built.py").write_text(PROGRAM)

    def ran(how):
        done = subprocess.run(
            [sys.executable, "built.py", how],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout.splitlines(), done.stderr

    return ran


@pytest.mark.req("R69", "R229")
def test_it_can_be_started_again_in_a_new_process(program):
    """The same id and input: the same run, whose functions are found."""
    assert program("go")[0] == ["put a", "put b", "put c", "completed"]
    assert program("go")[0] == ["completed"]


@pytest.mark.req("R69", "R229")
@pytest.mark.parametrize("how", ["go", "broken", "other"])
def test_it_goes_on_after_a_crash_whatever_became_of_its_function(program, how):
    """The instance has its plan. That the flow cannot be built any more is nothing to it."""
    assert program("crash")[0] == ["put a", "put b"]
    assert program(how)[0] == ["put b", "put c", "completed"]


@pytest.mark.req("R69", "R229")
def test_adding_it_registers_the_steps_that_it_sees(program):
    """Nothing is published: its plan is known only with its input."""
    assert program("crash")[0] == ["put a", "put b"]
    assert program("add")[0] == ["put b", "put c", "None"]


@step
async def make(part):
    return part


@flow(build=True)
def several(request):
    for part in request["parts"]:
        make(part, name=f"make-{part}")


def test_adding_and_registering_it_are_the_same():
    """Also where the step is a name of a function around it."""

    def made():
        @step
        def inner(part):
            return part

        @flow(build=True)
        def inside(request):
            inner(request["part"])

        return inside

    for way in (lambda pawl, each: pawl.add(each), lambda pawl, each: pawl.register(each)):
        pawl = Pawl("memory:")
        way(pawl, several)
        way(pawl, made())
        assert {"make", "inner"} <= pawl.registry.effects.keys()
        assert pawl.workflows == {}


@pytest.mark.req("R152")
def test_an_input_that_it_cannot_be_built_of_is_refused_alone(engine):
    """The others start; each answer says what became of its own."""

    async def main():
        async with engine() as pawl:
            inputs = [{"parts": ["a"]}, {"other": 1}, ("x-1", 7), {"parts": ["b"]}]
            answers = await pawl.start_many(several, inputs)
            for each in (answers[0], answers[3]):
                await each.run.result(timeout="20s")
            with pytest.raises(PawlError) as refused:
                await pawl.start(several, {"other": 1})
            return answers, refused.value

    answers, refused = run(main())
    assert [each.error.code if each.error else None for each in answers] == [
        None,
        "flow.raised",
        "flow.raised",
        None,
    ]
    assert answers[2].id == "x-1"
    assert "KeyError: 'parts'" in str(answers[1].error)
    assert refused.code == "flow.raised"


def once_with(effect):
    """A flow that calls one step, under a name that a later program may not have."""

    @step(name=effect)
    async def work():
        return "done"

    @flow(build=True)
    def once(_request):
        return work(after=[wait_for("go")])

    return once


@pytest.mark.req("R69")
def test_a_step_that_is_gone_is_waited_for_and_not_refused(tmp_path):
    """An instance that runs is not started once more: it waits as any other does."""

    async def main():
        url = f"sqlite:///{tmp_path}/gone.db"
        async with Pawl(url) as pawl:
            await pawl.start(once_with("one"), {}, id="o-1")
        async with Pawl(url) as pawl:
            again = await pawl.start(once_with("two"), {}, id="o-1")
            await pawl.signal("o-1", "go", {})
            assert again.id == "o-1"
        async with Pawl(url) as pawl:
            return await (await pawl.start(once_with("one"), {}, id="o-1")).result(timeout="20s")

    assert run(main()) == "done"
