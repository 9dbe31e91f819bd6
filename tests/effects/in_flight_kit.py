"""Processes that start instances and die, and come back with other modules."""

import signal
import subprocess
import sys
from contextlib import contextmanager

from tests.cli.live_kit import Place, killed

PROGRAM = """
import asyncio, importlib, sys
from pawlflow import Pawl

async def main(module, *words):
    found = importlib.import_module(module)
    pawl = Pawl("sqlite:///pawl.db")
    pawl.register(found)
    if hasattr(found, "setup"):
        found.setup(pawl)
    async with pawl:
        if words:
            name, key = words
            await pawl.start(getattr(found, name, name), {"n": 1}, id=key)
        print("open", flush=True)
        loop = asyncio.get_running_loop()
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).split():
            if line[0] == "register":
                print(pawl.register(importlib.import_module(line[1])), flush=True)
            if line[0] == "reload":
                print(pawl.register(importlib.reload(sys.modules[line[1]])), flush=True)
            if line[0] == "result":
                print(await pawl.run(line[1]).result(timeout="40s"), flush=True)
            if line[0] == "alerts":
                print(len(pawl.alerts()), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""
FIRST = """
import asyncio
from pawlflow import flow, step

@step
async def save_party(party, note):
    print("called", flush=True)
    await asyncio.Event().wait()

@step
async def finish(saved, mail=None):
    return {"saved": saved}

@flow
def provision(request):
    return finish(save_party(request.n, "hello"))
"""


class Programs(Place):
    """A folder with modules in it, and processes that run them."""

    def module(self, name, text):
        (self.folder / f"{name}.py").write_text(text)

    @contextmanager
    def program(self, *words):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()

    def begun_and_killed(self, *words):
        """A process that starts an instance and dies in the middle of its first step."""
        with self.program(*words) as first:
            assert {first.stdout.readline(), first.stdout.readline()} == {"open\n", "called\n"}
            killed(first)


def asked(process, line):
    """What a program answers."""
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def ended(place, module, key="p-1"):
    """The result of an instance in a process that has this module."""
    with place.program(module) as process:
        assert process.stdout.readline() == "open\n"
        return asked(process, f"result {key}")


YAML = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order, version: VERSION}
spec:
  timeout: 1h
  failurePolicy: compensate
  steps: [STEPS]
  output: {a: "${ steps.a }", b: "${ steps.b }"}
"""
STEPS = (
    "{name: a, run: hold, timeout: 1m, undo: {run: undo}}",
    "{name: b, run: fast, timeout: 1m, mutates: false}",
)
YAML_STEPS = """
import asyncio
from pawlflow import step

def setup(pawl):
    import pathlib
    if pathlib.Path("order.yaml").exists():
        pawl.load("order.yaml")

@step
async def hold():
    print("called", flush=True)
    await asyncio.Event().wait()

@step
async def fast(): return 1

@step
async def undo(): return None
"""
