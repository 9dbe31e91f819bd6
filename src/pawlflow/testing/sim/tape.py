"""Tapes: a failing run as a file. The setup, the faults that strike, and the story in words."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from pawlflow.testing.sim.faults import Fired
from pawlflow.testing.sim.planted import planted
from pawlflow.testing.sim.run import Outcome, Violation, run
from pawlflow.testing.sim.setup import Setup

TAIL: Final = 30  # lines of the story before the end


class Tape(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to see it again, and what there is to see."""

    bug: str | None  # planted, or None: it was found in the engine itself
    violation: Violation
    setup: Setup
    faults: tuple[str, ...]  # exactly these strike
    story: tuple[str, ...] = ()


def tape_of(outcome: Outcome, bug: str | None) -> Tape:
    """The tape of a run that failed."""
    assert outcome.violation is not None
    faults = tuple(fired.id for fired in outcome.fired)
    return Tape(bug=bug, violation=outcome.violation, setup=outcome.setup, faults=faults)


def play(tape: Tape, *, story: bool = False) -> Outcome:
    """Run a tape."""
    with planted(tape.bug):
        return run(tape.setup, frozenset(tape.faults), story=story)


def told(tape: Tape) -> Tape:
    """The tape with its story: the faults in words, and how it ended."""
    outcome = play(tape, story=True)
    assert outcome.violation is not None
    lines = [*in_words(outcome.fired), "", *outcome.story[-TAIL:], "", end_of(outcome.violation)]
    return msgspec.structs.replace(tape, violation=outcome.violation, story=tuple(lines))


def in_words(fired: Sequence[Fired]) -> list[str]:
    """The faults, one line each."""
    if not fired:
        return ["no fault at all"]
    return [f"{each.at / 1000:10.3f}  FAULT {each.id}  {each.words}".rstrip() for each in fired]


def end_of(violation: Violation) -> str:
    """The violation as one line."""
    at = violation.at / 1000
    return f"{at:10.3f}  MONITOR {violation.monitor} {violation.cell}: {violation.why}"


def save(tape: Tape, path: Path) -> None:
    """Write a tape, readable and diffable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(tape), indent=1) + b"\n")


def load(path: Path) -> Tape:
    """Read a tape."""
    return msgspec.json.decode(path.read_bytes(), type=Tape)
