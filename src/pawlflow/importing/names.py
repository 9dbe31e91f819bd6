"""Names for steps and effects, made from what a trace calls its tasks; always the same ones."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from pawlflow.definition.readers import RESERVED_STEP_NAMES
from pawlflow.importing.trace import Task

STEP_MAX: Final = 63
EFFECT_MAX: Final = 127
HEAD_KEPT: Final = 20  # of a long name: where it comes from; what tells it apart stands at its end
STEP_PREFIX: Final = "task-"  # for what begins with no letter
WORKFLOW_PREFIX: Final = "wf-"
LOWER: Final = re.compile(r"[a-z]")
NOT_STEP: Final = re.compile(r"[^a-z0-9_-]+")
NOT_EFFECT: Final = re.compile(r"[^A-Za-z0-9._/-]+")
# `blastall_ID000004`, `mProject_00000017`: the number of a task behind the name of what it does.
SERIAL: Final = re.compile(r"[ ._#:-]*(?:ID)?[0-9]+\Z")


def step_names(tasks: Sequence[Task]) -> list[str]:
    """A step name for each task: its own where it has it alone, else with its id or a number."""
    shared = {name for name, count in Counter(task.name for task in tasks).items() if count > 1}
    taken: set[str] = set()
    tried: dict[str, int] = {}
    names = []
    for task in tasks:
        base = name = step_name(full_name(task) if task.name in shared else task.name)
        while name in taken:
            tried[base] = number = tried.get(base, 1) + 1
            end = f"-{number}"
            name = base[: STEP_MAX - len(end)] + end
        taken.add(name)
        names.append(name)
    return names


def full_name(task: Task) -> str:
    """Name and id of a task that shares its name with others."""
    if not task.id:
        return task.name
    return task.id if task.name in task.id else f"{task.name}_{task.id}"


def step_name(text: str) -> str:
    """The nearest name that a step may have."""
    name = cleaned(text.lower(), NOT_STEP, STEP_PREFIX, STEP_MAX)
    return STEP_PREFIX + name if name in RESERVED_STEP_NAMES else name


def workflow_name(text: str) -> str:
    """The nearest name that a workflow may have."""
    return cleaned(text.lower(), NOT_STEP, WORKFLOW_PREFIX, STEP_MAX)


def effect_name(task: Task) -> str:
    """What a task runs, as the name of an effect: of a program without its folders."""
    if task.kind:
        text = re.split(r"[/\\]", task.kind.rstrip("/\\"))[-1]
    else:
        text = SERIAL.sub("", task.name) or task.name
    if not LOWER.match(text):
        text = text.lower()
    return cleaned(text, NOT_EFFECT, STEP_PREFIX, EFFECT_MAX)


def cleaned(text: str, unwanted: re.Pattern[str], prefix: str, most: int) -> str:
    """The text without what a name may not hold, and without the middle of what is too long."""
    text = unwanted.sub("-", text).strip("-")
    if not LOWER.match(text):
        text = (prefix + text.lstrip("-._/")).rstrip("-")
    if len(text) > most:
        tail = text[len(text) - (most - HEAD_KEPT - 2) :]
        text = f"{text[:HEAD_KEPT]}--{tail}"
    return text
