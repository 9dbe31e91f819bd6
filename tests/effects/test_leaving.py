"""Functions that leave with sys.exit and the like fail their step; a signal ends the program."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from pawlflow import Pawl, WorkflowFailed, flow, loop, secret, step
from tests.effects.kit import run

PROGRAM = """
import asyncio, signal, sys, time
from pawlflow import Pawl, flow, step

@step
async def busy():
    print("busy", flush=True)
    told = False
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if MAIN[0].cancelling() and not told:
            told = True
            print("asked", flush=True)

@flow
def work():
    busy()

MAIN = []

async def main():
    MAIN.append(asyncio.current_task())
    async with Pawl("memory:") as pawl:
        await (await pawl.start(work)).result()

if sys.argv[1] == "exit":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
if sys.argv[1] == "plain":
    asyncio.new_event_loop().run_until_complete(main())
else:
    asyncio.run(main())
"""


def leave(how, words):
    """Raise it."""
    if how is SystemExit:
        sys.exit(words)
    raise how(words)


def threaded(how):
    @step
    def leaving(token):
        leave(how, f"it is {token}")

    return leaving


def awaited(how):
    @step
    async def leaving(token):
        await asyncio.sleep(0)
        leave(how, f"it is {token}")

    return leaving


def looping(how):
    @loop
    async def leaving(ctx, token):
        await ctx.do("one", lambda: leave(how, f"it is {token}"))

    return leaving


def together(how):
    async def part(token):
        leave(how, f"it is {token}")

    @loop
    async def leaving(ctx, token):
        await ctx.all({"one": lambda: 1, "two": ctx.do("two", part, token)})

    return leaving


def gathered(how):
    async def part(token):
        leave(how, f"it is {token}")

    @loop
    async def leaving(ctx, token):
        await asyncio.gather(ctx.do("one", part, token))

    return leaving


@pytest.mark.req("R90")
@pytest.mark.parametrize("how", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("made", [threaded, awaited, looping, together, gathered])
def test_a_function_that_leaves_fails_its_step_and_the_engine_goes_on(made, how):
    """Class agent, `effect.raised`, and no secret in its words."""
    leaving = made(how)

    @flow
    def work():
        return leaving(secret("token"))

    @step
    def fine():
        return "fine"

    @flow
    def other():
        return fine()

    async def main():
        async with Pawl("memory:", secrets={"token": "tok-5f1e77"}) as pawl:
            with pytest.raises(WorkflowFailed) as failed:
                await (await pawl.start(work)).result(timeout="20s")
            return failed.value, await (await pawl.start(other)).result(timeout="20s")

    failed, result = run(main())
    assert (failed.failure_class, failed.code) == ("agent", "effect.raised")
    assert f"{how.__name__}: it is [secret token]" in str(failed)
    assert "5f1e77" not in str(failed)
    assert result == "fine"


ENDS = [
    ("asyncio", signal.SIGINT, 2, (-signal.SIGINT, 130)),  # the first asks, the second insists
    ("plain", signal.SIGINT, 1, (-signal.SIGINT, 130)),
    ("exit", signal.SIGTERM, 1, (7,)),
]


@pytest.mark.req("R90")
@pytest.mark.parametrize(("how", "number", "times", "codes"), ENDS)
def test_a_signal_ends_the_program_also_while_a_function_runs(how, number, times, codes, tmp_path):
    """Ctrl-C, and a handler that calls sys.exit, are for the program and not for the step."""
    (tmp_path / "busy.py").write_text(PROGRAM)
    with subprocess.Popen(
        [sys.executable, "busy.py", how],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout.readline() == "busy\n"
        process.send_signal(number)
        if times > 1:
            assert process.stdout.readline() == "asked\n"
            process.send_signal(number)
        said = process.communicate(timeout=20)[1]
    assert process.returncode in codes, said
    assert "effect.raised" not in said
