"""Cells of a notebook, in a real kernel: with `await` at the top, and without."""

from queue import Empty

import pytest
from jupyter_client.manager import start_new_kernel

from tests.effects.kit import written

LIMIT_S = 50
FLOW = "  steps: [{name: a, run: a, with: {n: '${ input.n }'}}]\n  output: '${ steps.a }'\n"

AWAITED = [
    """
from pawlflow import Pawl
pawl = await Pawl("sqlite:///pawl.db").open()
pawl.load("adds.yaml")
@pawl.effect("a")
async def a(n):
    return n + 1
""",
    """
run = await pawl.start("adds", {"n": 41}, id="n-1")
print(await run.result(timeout="20s"))
""",
    """
async for event in run.events():
    last = event["eventType"]
print(last)
""",
    "await pawl.close()",
    """
async with Pawl("sqlite:///pawl.db") as pawl:
    print(pawl.run("n-1").show()["state"])
""",
]
BLOCKING = [
    """
from pawlflow import Pawl
pawl = Pawl.blocking("sqlite:///pawl.db").open()
pawl.load("adds.yaml")
@pawl.effect("a")
def a(n):
    return n + 1
""",
    """
run = pawl.start("adds", {"n": 41}, id="n-1")
print(run.result(timeout="20s"))
""",
    "print([event['eventType'] for event in run.events()][-1])",
    "pawl.close()",
    """
with Pawl.blocking("sqlite:///pawl.db") as pawl:
    print(pawl.run("n-1").show()["state"])
""",
]


@pytest.fixture
def kernel(tmp_path):
    """A kernel with its own loop, in the folder of the test."""
    manager, client = start_new_kernel(
        kernel_name="python3", startup_timeout=LIMIT_S, cwd=str(tmp_path)
    )
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def said_by(client, cell):
    """What a cell prints; an error in it is the test's."""
    asked = client.execute(cell)
    printed = ""
    while True:
        try:
            message = client.get_iopub_msg(timeout=LIMIT_S)
        except Empty:
            pytest.fail(f"the kernel said nothing more about: {cell}")
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                printed += content["text"]
            case "error":
                pytest.fail("\n".join(content["traceback"]))
            case "status" if content["execution_state"] == "idle":
                return printed


@pytest.mark.parametrize("cells", [AWAITED, BLOCKING], ids=["await", "blocking"])
def test_a_notebook_starts_and_reads_a_run(kernel, tmp_path, cells):
    """One cell opens the engine, others use it, the last one finds everything again."""
    written(tmp_path, "adds", FLOW)
    printed = [said_by(kernel, cell) for cell in cells]
    assert printed == ["", "42\n", "WorkflowInstanceCompleted\n", "", "completed\n"]


def test_a_function_that_was_typed_in_has_no_process(kernel, tmp_path):
    """No other process can import it, and that is said when it is registered."""
    cell = """
from pawlflow import Pawl, PawlError
def f(): ...
try:
    Pawl("memory:").effect("f", pool="process")(f)
except PawlError as error:
    print(error.code, "module" in str(error))
"""
    assert said_by(kernel, cell) == "step.pool True\n"
