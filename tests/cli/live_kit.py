"""A folder with a store in it, a first terminal that may own it, and a second one that acts."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from pawlflow.cli.main import main

PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]
DEADLINE_S = 40.0
RELEASE = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: release}
spec:
  input: {type: object, properties: {repo: {type: string}}}
  timeout: 4h
  failurePolicy: compensate
  steps:
    - name: build
      run: ci.build
      with: {repo: "${ input.repo }"}
      timeout: 30s
      undo: {run: ci.remove}
    - name: gate
      approval: {role: ReleaseManager, expires: 24h}
      show: {image: "${ steps.build.image }"}
      dependsOn: [build]
    - {name: health, wait: {event: health.reported, timeout: 1h}, dependsOn: [gate]}
    - {name: promote, run: deploy.promote, onFailure: escalate, dependsOn: [health], timeout: 30s}
  output: {image: "${ steps.build.image }", by: "${ steps.gate.by }"}
"""
STUBS = """\
build: [{ok: {image: i-1}}]
promote: [{fail: external, message: no route}, {ok: {}}]
"""
STEPS = """\
from pawlflow import Terminal, step


@step(name="card.charge")
async def charge(amount=1):
    if amount > 100:
        raise Terminal("the card was refused")
    return {"charge": "c-1"}


@step(name="parcel.send")
def send(ctx):
    return {"parcel": ctx.instance}
"""
ORDER = """\
apiVersion: pawl.dev/v1
kind: Workflow
metadata: {name: order}
spec:
  timeout: 1h
  steps:
    - {name: charge, run: card.charge, with: {amount: "${ input.amount }"}, timeout: 30s}
    - {name: ship, run: parcel.send, dependsOn: [charge], timeout: 30s}
  output: {parcel: "${ steps.ship.parcel }"}
"""


class Place:
    """A folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "pawl.db"
        for name, text in FILES.items():
            (folder / name).write_text(text)

    def pawl(self, *words: object, stdin: str | None = None) -> Result:
        """The command in this process, on the store that the environment names."""
        env = {"PAWL_DB": f"sqlite:///{self.db}"}
        return CliRunner().invoke(main, [*map(str, words)], input=stdin, env=env)

    def told(self, *words: object, exits: int = 0) -> Any:
        """What the command says with --json."""
        done = self.pawl(*words, "--json")
        assert done.exit_code == exits, done.output + repr(done.exception)
        return json.loads(done.stdout)

    def shown(self, key: str) -> Any:
        """The object of `show`."""
        return self.told("show", key)

    def terminal(self, *words: object) -> subprocess.CompletedProcess[str]:
        """The command as a process of its own, to its end."""
        return subprocess.run(
            self.command(*words),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def command(self, *words: object) -> list[str]:
        """The command line of a process."""
        return [*PAWL, "--db", f"sqlite:///{self.db}", *map(str, words)]

    @contextmanager
    def owner(self, *words: object) -> Iterator["subprocess.Popen[str]"]:
        """A process that goes on beside the test, and is gone after it."""
        process = subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
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

    def state_of(self, key: str) -> str:
        """The state of an instance; nothing if there is none yet."""
        done = self.pawl("show", key, "--json")
        return str(json.loads(done.stdout)["state"]) if done.exit_code == 0 else ""

    def waits_at(self, key: str, step: str) -> bool:
        """Does the instance wait at this step?"""
        done = self.pawl("show", key, "--json")
        shown = json.loads(done.stdout) if done.exit_code == 0 else {"waiting": []}
        return step in [each["step"] for each in shown["waiting"]]


FILES = {
    "release.yaml": RELEASE,
    "order.yaml": ORDER,
    "stubs.yaml": STUBS,
    "shop_steps.py": STEPS,
}


def until(holds: Callable[[], object], what: str = "it") -> None:
    """Wait until something holds; a deadline, for a test must end."""
    end = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < end, f"{what} did not come about"
        pause.wait(0.02)


def killed(process: "subprocess.Popen[str]") -> None:
    """End a process as a power cut does."""
    os.kill(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
