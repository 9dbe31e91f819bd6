"""The processes: six services and an engine, each started, stopped and killed by its id."""

import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAWL = [sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"]
SERVICES = ("refdata", "iam", "ore", "reporting", "grid", "publishing")
READY_S = 60.0


class Stage(AbstractContextManager["Stage"]):
    """What runs beside whoever asks for it. Everything is told by two URLs."""

    def __init__(self, database: str, nats: str, logs: Path, **more: str) -> None:
        self.database = database
        self.nats = nats
        self.logs = logs
        self.environment: dict[str, str] = {
            **os.environ,
            "ORES_DB": database,
            "PAWL_DB": database,
            "PAWL_NATS": nats,
            "IAM_SECRET_FIRST_PASSWORD": "correct horse battery staple",
            "PYTHONUNBUFFERED": "1",
            **more,
        }
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def make_key(self) -> None:
        """A key for the services to sign with; the engine's store knows the public half.

        In earnest each service has one of its own.
        """
        words = [*PAWL, "keys", "create", "--executor", "--comment", "the services", "--json"]
        made = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False, cwd=ROOT
        )
        if made.returncode:
            raise RuntimeError(f"no key was made: {made.stderr}")
        key = json.loads(made.stdout)
        self.environment["PAWL_EXECUTOR_KEY"] = f"{key['id']}:{key['key']}"

    def start(self, *names: str) -> None:
        """Start processes, and wait until all of them say that they are ready."""
        began = {name: self.begin(name) for name in names}
        until = time.monotonic() + READY_S
        for name, log in began.items():
            word = b"ready" if name == "engine" else f"{name}: {name}.v1.".encode()
            while word not in log.read_bytes():
                if self.running[name].poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{name} did not start:\n{log.read_text()[-2_000:]}")
                time.sleep(0.02)

    def begin(self, name: str) -> Path:
        """Start one process; gives where it writes."""
        log = self.logs / f"{name}.log"
        with log.open("wb") as out:
            self.running[name] = subprocess.Popen(
                command_of(name), env=self.environment, cwd=ROOT, stdout=out, stderr=out
            )
        return log

    def kill(self, name: str) -> None:
        """As a crash does it: at once, with no chance to tidy up."""
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> int:
        """In order; gives the exit code."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(READY_S)

    def __exit__(self, *_: object) -> None:
        """End what is still running, by its id."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.running = {}


def command_of(name: str) -> list[str]:
    """What is run under a name."""
    if name == "engine":
        built = "examples.ores.flows.bundle_publish"
        return [*PAWL, "serve", "examples/ores/flows", "--worker", built]
    if name == "grid":  # it has work of its own beside its commands
        return [sys.executable, "-m", "examples.ores.services.grid"]
    return [*PAWL, "worker", f"examples.ores.services.{name}"]
