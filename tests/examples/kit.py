"""The example on a stage: a database and a NATS server of its own, services as processes."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from examples.ores.ledger import changes_of, tables_of
from examples.ores.stage import ROOT, SERVICES, Stage
from tests.servers import Nats, Postgres

NUMBERS = count()
DATABASE = re.compile(r"/pawl$")
UNDOING = ("CompensationTaskAssigned", "WorkflowStepCompensated")


@contextmanager
def staged(postgres: Postgres, nats: Nats, logs: Path) -> Iterator[Stage]:
    """Services at work, on tables that nobody has used."""
    name = f"ores_{next(NUMBERS)}"
    postgres.execute(f"CREATE DATABASE {name}")
    database = DATABASE.sub(f"/{name}", postgres.url)
    # An hour of the grid takes an hour: whoever cannot wait moves the end of a batch.
    more = {"PAWL_NATS_UNSIGNED": "allow", "GRID_HOUR_S": "3600"}
    with Stage(database, nats.url, logs, **more) as stage:
        words = [sys.executable, "-m", "tests.examples.services", *SERVICES]
        pipe = subprocess.PIPE
        services = subprocess.Popen(
            words, cwd=ROOT, env=stage.environment, stdin=pipe, stdout=pipe, text=True
        )
        with services:
            ready = {services.stdout.readline().partition(":")[0] for _ in SERVICES}
            assert ready == set(SERVICES)
            yield stage
            services.stdin.close()


def actions(stage: Stage, instance: str) -> list[str]:
    """What the services did for an instance, in order."""
    return [each["action"] for each in changes_of(stage.database, instance)]


def shapes(stage: Stage, instance: str) -> list[str]:
    """The same without ids, which differ from run to run."""
    return [without_ids(each) for each in actions(stage, instance)]


def without_ids(action: str) -> str:
    """What was done, to whichever."""
    return re.sub(r"\d+", "N", action)


def everything(stage: Stage) -> Any:
    """All that the services have in their tables, and all that they ever did."""
    return tables_of(stage.database), changes_of(stage.database)


def completed(history: list[dict[str, Any]]) -> list[str]:
    """Steps that have an undo and were carried out, in the order in which they were done."""
    done = [each for each in history if each["eventType"] == "AgentTaskCompleted"]
    return [each["payload"]["step"] for each in done]


def undone(history: list[dict[str, Any]]) -> list[str]:
    """Undos, in order; each was done before the next was asked for, and each once."""
    told = [(each["eventType"], each["payload"].get("step")) for each in history]
    pairs = [each for each in told if each[0] in UNDOING]
    assert pairs == [(kind, step) for _, step in pairs[::2] for kind in UNDOING], pairs
    steps = [step for _, step in pairs[::2]]
    assert not [step for step, times in Counter(steps).items() if times > 1]
    return steps
