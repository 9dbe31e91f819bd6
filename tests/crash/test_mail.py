"""The mailbox is the only door between processes: what goes through it arrives exactly once."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pawlflow import requests
from pawlflow.app import request
from pawlflow.engine.actions import Accepted
from pawlflow.engine.places import mail_of
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import InstanceId
from pawlflow.projections.history import history
from pawlflow.projections.reading import story_of
from pawlflow.store.sqlite import SqliteStore
from tests.crash.parent import TENANT, Trial
from tests.crash.points import LABELS

TICKS = 4  # an instance of `count` waits for so many
CUT = ["P0", "P1", "P2", "P3", "P4", "P5", "P6", "P8"]  # where mail can be caught on its way


def tick(n: int) -> Any:
    """A signal with a number."""
    return requests.signal("tick", {"n": n}, TENANT, "parent")


def post(path: Path, key: str, n: int) -> int:
    """Put a tick into the mailbox, and go away."""
    store = SqliteStore(path)
    try:
        [number] = store.post([mail_of(requests.instance_cell(TENANT, key), tick(n))])
    finally:
        store.close()
    return number


def heard(path: Path, key: str) -> list[int]:
    """The ticks an instance has had, in order."""
    store = SqliteStore(path)
    try:
        told = history(story_of(store, TENANT, InstanceId(key)))
    finally:
        store.close()
    return [each["payload"]["data"]["n"] for each in told if each["eventType"] == "SignalReceived"]


@pytest.mark.req("R225")
@pytest.mark.parametrize("driver", ["inline", "thread"])
@pytest.mark.parametrize("label", [each for each in LABELS if each[:2] in CUT])
def test_mail_is_taken_once(nursery, tmp_path, label, driver):
    """Posted while nobody lives; every life is cut short at the same point, a passage later."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver, turns=1, counting=1)
    trial.cycle(until="started count-0")  # until the instance is there
    assert "count-0" in trial.started
    numbers = [post(trial.path, "count-0", n) for n in range(2)]
    for passages in range(1, 4):
        trial.cycle(label, passages, "idle")
    numbers += [post(trial.path, "count-0", n) for n in range(2, TICKS)]
    for passages in range(1, 4):
        trial.cycle(label, passages, "idle")
    trial.finish()
    assert heard(trial.path, "count-0") == list(range(TICKS))
    store = SqliteStore(trial.path)
    answers = [store.answer(number) for number in numbers]
    store.close()
    assert all(answer is not None and answer.code == "" for answer in answers)


def ask(path: Path, key: str, n: int) -> Accepted | Rejected:
    """Hand in a tick as the command line does, whoever owns the file just now."""
    store = SqliteStore(path)
    try:
        return request(store, requests.instance_cell(TENANT, key), tick(n))
    finally:
        store.close()


@pytest.mark.req("R225")
@pytest.mark.parametrize("driver", ["inline", "thread"])
def test_requests_of_another_process_are_taken_once(nursery, tmp_path, driver):
    """While owners come and die, another process asks; what it is told is true."""
    trial = Trial(nursery, tmp_path / "pawl.db", driver, counting=3)
    trial.cycle(until="started count-2")
    chance = random.Random(7)
    asked = list(product([f"count-{n}" for n in range(3)], range(TICKS)))
    with ThreadPoolExecutor(1) as pool:
        answers = [pool.submit(ask, trial.path, key, n) for key, n in asked]
        while not all(answer.done() for answer in answers):
            label = chance.choice([each for each in LABELS if each[:2] in CUT])
            trial.cycle(label, chance.randint(1, 30), "idle")
    assert all(isinstance(answer.result(), Accepted) for answer in answers)
    trial.finish()
    for key in (f"count-{n}" for n in range(3)):
        assert heard(trial.path, key) == list(range(TICKS))
