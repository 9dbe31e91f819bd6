"""Steps that compute: plain functions in processes of their own."""

import asyncio
import os
from contextlib import suppress

import pytest

from pawlflow import Pawl, PawlError, WorkflowFailed, step
from tests.effects import process_steps
from tests.effects.kit import run, written


def flow(folder, name, step_text):
    return written(folder, name, f"  steps:\n    - {{name: s, {step_text}}}\n")


async def played(engine, path, given=None, **more):
    """One run of a workflow whose steps are the functions of the module."""
    async with engine(**more) as pawl:
        pawl.load(path)
        pawl.register(process_steps)
        started = await pawl.start(path.stem, given or {})
        with suppress(WorkflowFailed):
            await started.result(timeout="50s")
        return started.show()["steps"]["s"]


@pytest.mark.req("R147")
def test_a_function_runs_in_another_process_and_the_next_one_finds_it_warm(engine, tmp_path):
    """Its result comes back; workers are kept, and no more are made than may run at a time."""
    path = written(
        tmp_path,
        "counts",
        "  steps:\n"
        "    - {name: s, run: count, forEach: '${ input.all }', with: {n: '${ item }'}}\n",
    )
    shown = run(played(engine, path, {"all": [10, 100, 1000]}, processes=1))

    assert [each["sum"] for each in shown["result"]] == [45, 4950, 499500]
    pids = {each["pid"] for each in shown["result"]}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_no_more_processes_run_than_may(engine, tmp_path):
    """The others wait in line."""
    path = written(
        tmp_path,
        "many",
        "  steps:\n"
        "    - {name: s, run: two, forEach: '${ input.all }', with: {folder: '${ item }'}}\n",
    )
    (tmp_path / "here").mkdir()
    shown = run(played(engine, path, {"all": [str(tmp_path / "here")] * 6}, processes=2))

    assert len(shown["result"]) == 6
    assert max(shown["result"]) <= 2


def test_the_context_is_there_as_plain_data_and_what_it_says_arrives(engine, tmp_path):
    """Attempt, key, tenant and feedback; lines and costs are kept with the attempt."""
    shown = run(played(engine, flow(tmp_path, "tells", "run: tell, with: {word: hello}")))

    attempt, key, tenant, feedback, name, item = shown["result"]
    assert (attempt, tenant, feedback, name, item) == (1, "default", [], "s", None)
    assert len(key) == 36
    assert shown["log"] == ["attempt 1 says hello"]
    assert shown["ladder"][0]["cost"] == {"usd": 0.25}


@pytest.mark.req("R102")
def test_a_worker_that_is_killed_is_a_transient_failure_and_is_replaced(engine, tmp_path):
    """The next attempt has another process; what was said before the end is kept."""
    path = flow(
        tmp_path,
        "dies",
        "run: die, with: {folder: '${ input.folder }'},"
        " retryPolicy: {maxRetries: 1, backoff: constant, initialDelay: 1ms}",
    )
    shown = run(played(engine, path, {"folder": str(tmp_path)}))

    assert shown["state"] == "succeeded"
    first, second = shown["ladder"]
    assert (first["class"], first["code"]) == ("transient", "effect.worker_lost")
    assert "-9" in first["message"]
    assert first["log"] == second["log"] == ["before"]
    assert sorted(each.name for each in tmp_path.glob("tried-*")) == ["tried-1", "tried-2"]


@pytest.mark.parametrize(
    "how, failure",
    [
        ("terminal", ("terminal", "effect.terminal", "no use")),
        ("correctable", ("validation", "effect.correctable", "too long")),
        ("exit", ("agent", "effect.raised", "SystemExit: 3 (process_steps.py:")),
        ("key", ("agent", "effect.raised", "KeyError: 'key' (process_steps.py:")),
        ("unsendable", ("terminal", "effect.terminal", "what it gave cannot be sent back")),
    ],
)
def test_what_is_raised_over_there_chooses_the_class_here(tmp_path, how, failure):
    """As in a thread, with the line that raised."""
    path = flow(tmp_path, "wrongs", f"run: wrong, with: {{how: {how}}}")
    shown = run(played(lambda: Pawl("memory:"), path))

    kind, code, message = failure
    assert (shown["error"]["class"], shown["error"]["code"]) == (kind, code)
    assert shown["error"]["message"].startswith(message)


async def gone(pid):
    """Until a process is no more; the test's own limit ends it otherwise."""
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        await asyncio.sleep(0.01)


async def spinning(folder):
    """Until a worker has begun; gives its process."""
    while not (found := list(folder.iterdir())):  # noqa: ASYNC110  # another process makes it
        await asyncio.sleep(0.01)
    return int(found[0].name)


@pytest.mark.req("R90", "R106")
@pytest.mark.parametrize("why", ["cancel", "timeout", "leave"])
def test_one_that_is_no_longer_wanted_is_killed(engine, tmp_path, why):
    """After a cancel, at its timeout, and when the engine leaves: nothing computes for nobody."""
    limit = ", timeout: 2s" if why == "timeout" else ""
    path = flow(tmp_path, "spins", f"run: spin, with: {{folder: '${{ input.folder }}'}}{limit}")
    folder = tmp_path / "pids"
    folder.mkdir()

    async def main():
        async with engine() as pawl:
            pawl.load(path)
            pawl.register(process_steps)
            started = await pawl.start("spins", {"folder": str(folder)})
            pid = await spinning(folder)
            if why == "leave":
                return pid, None
            if why == "cancel":
                await pawl.cancel(started.id, by="ann")
            with pytest.raises(WorkflowFailed) as ended:
                await started.result(timeout="50s")
            await gone(pid)
            return pid, ended.value

    pid, ended = run(main())
    run(gone(pid))
    if why != "leave":
        kind = {"cancel": ("cancelled", None), "timeout": ("failed", "timeout")}[why]
        assert (ended.state, ended.failure_class) == kind


async def on_the_loop():
    """An async function at the top level."""


def test_what_no_other_process_can_import_is_refused_when_it_is_registered():
    """With the reason and the way out, before anything starts."""
    pawl = Pawl("memory:")

    def inner():
        pass

    cases = [(inner, "top level"), (lambda: None, "top level"), (on_the_loop, "write def")]
    for fn, reason in cases:
        with pytest.raises(PawlError, match=reason) as refused:
            pawl.effect("x", pool="process")(fn)
        assert refused.value.code == "step.pool"
    with pytest.raises(PawlError, match="top level"):
        pawl.register(step(pool="process")(inner))
    with pytest.raises(PawlError, match='"thread" or "process"'):
        pawl.effect("x", pool="rocket")(inner)
