"""`Pawl.blocking`: the same engine for programs without an event loop."""

import asyncio
import inspect
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pawlflow import BlockingPawl, BlockingRun, Conflict, Pawl, PawlError, Run, WorkflowFailed
from tests.effects.kit import written

GATE = """
  steps:
    - {name: make, run: make, with: {n: "${ input.n }"}}
    - {name: gate, approval: {role: Boss}, dependsOn: [make]}
    - {name: told, wait: {event: go}, dependsOn: [gate]}
  output: {made: "${ steps.make }", by: "${ steps.gate.by }", told: "${ steps.told }"}
"""


@pytest.fixture(params=["memory", "inline", "thread"])
def blocking(request, tmp_path):
    def make(**more):
        if request.param == "memory":
            return Pawl.blocking("memory:", **more)
        return Pawl.blocking(f"sqlite:///{tmp_path}/pawl.db", driver=request.param, **more)

    return make


def test_a_run_from_its_start_to_its_output(blocking, tmp_path):
    """Every call returns when it is done; events are a plain iterator."""
    path = written(tmp_path, "gated", GATE)
    with blocking() as pawl:
        pawl.load(path)

        @pawl.effect("make")
        def make(n):
            return threading.current_thread().name[:9], n

        run = pawl.start("gated", {"n": 7}, id="g-1", by="zoe")
        names = []
        for event in run.events():
            names.append(event["eventType"])
            if event["eventType"] == "ApprovalRequested":
                pawl.approve("g-1", "gate", by="ann", role="Boss")
                pawl.signal("g-1", "go", {"at": 1})
        assert run.result(timeout="20s") == {
            "made": ["pawl-step", 7],
            "by": "ann",
            "told": {"at": 1},
        }
        assert names[0] == "WorkflowInstanceCreated"
        assert names[-1] == "WorkflowInstanceCompleted"
        assert names == [each["eventType"] for each in run.history()]
        assert [each["id"] for each in pawl.list(state="completed")] == ["g-1"]
        assert pawl.run("g-1").show()["by"] == "zoe"
        assert pawl.run("g-1").why()["state"] == "completed"
        with pytest.raises(Conflict):
            pawl.start("gated", {"n": 8}, id="g-1")


def test_a_wait_ends_after_its_time_and_a_failure_is_raised(blocking, tmp_path):
    """As with `await`."""
    path = written(tmp_path, "waits", "  steps: [{name: w, wait: {event: go}}]\n")
    with blocking() as pawl:
        pawl.load(path)
        run = pawl.start("waits")
        with pytest.raises(TimeoutError, match="still waiting"):
            run.result(timeout=0.01)
        pawl.cancel(run.id, by="ann")
        with pytest.raises(WorkflowFailed):
            run.result(timeout="20s")


def test_many_threads_share_one_engine(blocking, tmp_path):
    """Each has its own runs, and none waits for another."""
    path = written(tmp_path, "adds", "  steps: [{name: a, run: add}]\n  output: '${ steps.a }'\n")
    with blocking() as pawl, ThreadPoolExecutor(8) as threads:
        pawl.load(path)
        pawl.effect("add")(lambda ctx: ctx.instance)

        def one(n):
            return pawl.start("adds", id=f"a-{n}").result(timeout="20s")

        found = list(threads.map(one, range(40)))
    assert found == [f"a-{n}" for n in range(40)]


def test_it_works_where_a_loop_is_running_already(blocking, tmp_path):
    """A notebook's cell runs on a loop; the blocking engine has one of its own."""
    path = written(tmp_path, "one", "  steps: [{name: a, run: a}]\n  output: '${ steps.a }'\n")

    async def cell():
        with blocking() as pawl:
            pawl.load(path)
            pawl.effect("a")(lambda: "done")
            return pawl.start("one").result(timeout="20s")

    assert asyncio.run(cell()) == "done"


@pytest.mark.req("R39")
def test_what_was_in_flight_goes_on_when_it_is_opened_again(tmp_path):
    """With open and close, as a notebook would; and it may be opened more than once."""
    path = written(tmp_path, "waits", "  steps: [{name: w, wait: {event: go}}]\n")
    pawl = Pawl.blocking(f"sqlite:///{tmp_path}/pawl.db")
    pawl.load(path)
    pawl.open()
    assert pawl.start("waits", id="w-1").show()["state"] == "waiting"
    pawl.close()
    pawl.close()

    again = pawl.open()
    again.signal("w-1", "go")
    assert again.run("w-1").result(timeout="20s") is None
    with pytest.raises(PawlError) as opened:
        pawl.open()
    pawl.close()
    with pytest.raises(PawlError) as closed:
        pawl.start("waits")
    assert (opened.value.code, closed.value.code) == ("engine.open", "engine.not_open")


def test_an_async_step_cannot_wait_for_its_own_loop(tmp_path):
    """It would wait for itself: that is said, and is the failure of the step."""
    path = written(tmp_path, "self", "  steps: [{name: a, run: a}]\n")
    with Pawl.blocking("memory:") as pawl:
        pawl.load(path)

        @pawl.effect("a")
        async def a():
            pawl.list()

        run = pawl.start("self")
        with pytest.raises(WorkflowFailed, match="write def"):
            run.result(timeout="20s")


def test_waiting_ends_when_the_engine_is_closed_by_another_thread(tmp_path):
    """Nobody waits for ever: the instance goes on, and whoever waited is told."""
    path = written(tmp_path, "waits", "  steps: [{name: w, wait: {event: go}}]\n")
    pawl = Pawl.blocking(f"sqlite:///{tmp_path}/pawl.db").open()
    pawl.load(path)
    run = pawl.start("waits")
    events = run.events()
    while next(events)["eventType"] != "WorkflowStepWaiting":
        pass
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(lambda: next(events))
        while not pawl._pawl.changing:  # it waits for the next event
            threading.Event().wait(0.001)
        pawl.close()
        with pytest.raises(PawlError) as ended:
            waiting.result(20)
    assert ended.value.code in ("engine.closed", "engine.not_open")


SCRIPT = """
import sys
from pawlflow import Pawl
with Pawl.blocking("sqlite:///pawl.db") as pawl:
    pawl.load("waits.yaml")
    run = pawl.start("waits", id="w-1")
    try:
        print("waiting", flush=True)
        run.result()
    except KeyboardInterrupt:
        print("interrupted", run.show()["state"], flush=True)
        raise
"""


def test_ctrl_c_ends_the_waiting_and_leaves_in_order(tmp_path):
    """The store is free afterwards, and the instance where it was."""
    written(tmp_path, "waits", "  steps: [{name: w, wait: {event: go}}]\n")
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=40)

    assert out == "interrupted waiting\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    with Pawl.blocking(f"sqlite:///{tmp_path}/pawl.db") as pawl:
        assert pawl.run("w-1").show()["state"] == "waiting"


def public(kind):
    """The methods of a class that users call, with their parameters."""
    return {
        name: [(p.name, p.kind, p.default) for p in inspect.signature(member).parameters.values()]
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize("twin, kind", [(BlockingPawl, Pawl), (BlockingRun, Run)])
def test_the_twin_has_what_its_model_has(twin, kind):
    """Everything public of the async engine, with the same parameters."""
    mine, theirs = public(twin), public(kind)
    unknown = set(mine) - set(theirs)
    assert unknown == set()
    assert {name: theirs[name] for name in mine} == mine
    documented = {name for name in theirs if name in ACTS}
    assert documented <= set(mine)


ACTS = {
    *("load", "add", "effect", "agent", "register", "start", "start_many", "starting", "run"),
    *("signal", "emit", "approve", "reject", "claim", "cancel", "pause", "unpause"),
    *("pause_schedule", "unpause_schedule", "remove_schedule", "backfill", "resume"),
    "retire_policy",
    *("reassign", "retry", "settle", "list", "batch", "alerts", "open", "close"),
    *("result", "show", "why", "history", "events", "checkpoints"),
}
