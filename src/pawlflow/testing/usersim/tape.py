"""Tapes of a user's workflow: a failing run as a file, made as small as it goes, with its story."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pawlflow.testing.sim.shrink import fewest
from pawlflow.testing.usersim.clockwork import Line
from pawlflow.testing.usersim.invariants import Invariant
from pawlflow.testing.usersim.run import Outcome, Violation, simulate
from pawlflow.testing.usersim.telling import lines_of
from pawlflow.testing.usersim.workload import Setup, Workload, numbers_of

FORMAT: Final = 1
RUNS_MAX: Final = 1_000
SMALL: Final = 1  # faults of a tape that need not be made smaller
PAIRS_MAX: Final = 24
OTHERS: Final = 4  # seeds that break the same, tried for a smaller tape
OTHERS_LOOKED_AT: Final = 150
Progress = Callable[[int, int], None]  # runs made, faults left


class BadTapeError(Exception):
    """A file that is no tape of this version."""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line said, so that a tape needs nothing but its workflow."""

    invariants: tuple[str, ...] = ()
    inputs: tuple[Any, ...] = ()
    instances: int = 1
    people: bool = True
    idempotent: tuple[str, ...] = ()
    signals: dict[str, Any] = {}
    stubs: str | None = None
    worker: str | None = None
    faults: tuple[str, ...] = ()


class Tape(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to see it again, and what there is to see."""

    pawl_sim: int = FORMAT
    workflow: str
    definition: str  # its hash: a tape of another definition may show something else
    given: Given
    violation: Violation
    setup: Setup
    faults: tuple[str, ...]  # exactly these strike
    found: tuple[int, int] = (0, 0)  # faults and instances before it was shrunk
    first: int = 0  # the first seed that broke it
    story: tuple[str, ...] = ()


class Player:
    """Plays setups of one workload under its invariants."""

    def __init__(self, work: Workload, invariants: Sequence[Invariant]) -> None:
        self.work = work
        self.invariants = invariants

    def play(
        self, setup: Setup, faults: Sequence[str] | None = None, *, story: bool = False
    ) -> Outcome:
        """One run."""
        allowed = None if faults is None else frozenset(faults)
        return simulate(self.work, setup, self.invariants, allowed, story=story)

    def tape_of(self, outcome: Outcome, given: Given) -> Tape:
        """The tape of a run that failed, as it was."""
        assert outcome.violation is not None
        plan = self.work.plan
        return Tape(
            workflow=plan.workflow,
            definition=plan.definition.hex(),
            given=given,
            violation=outcome.violation,
            setup=outcome.setup,
            faults=tuple(fired.id for fired in outcome.fired),
            found=(len(outcome.fired), outcome.setup.instances),
            first=outcome.setup.seed,
        )

    def told(self, tape: Tape) -> tuple[Tape, list[Line]]:
        """The tape with its story."""
        outcome = self.play(tape.setup, tape.faults, story=True)
        assert outcome.violation is not None
        story = tuple(lines_of(outcome.story))
        return replace(tape, violation=outcome.violation, story=story), outcome.story


class Shrinker:
    """Tries smaller tapes, within a budget of runs."""

    def __init__(self, player: Player, tape: Tape, tell: Progress) -> None:
        self.player = player
        self.best = tape
        self.tell = tell
        self.runs = 0

    def fails(self, tape: Tape) -> bool:
        """Does this tape break the same invariant? If so, it is the best so far."""
        if self.runs >= RUNS_MAX:
            return False
        self.runs += 1
        self.tell(self.runs, len(self.best.faults))
        outcome = self.player.play(tape.setup, tape.faults)
        found = outcome.violation
        if found is None or found.invariant != tape.violation.invariant:
            return False
        struck = {fired.id for fired in outcome.fired}
        kept = tuple(fault for fault in tape.faults if fault in struck)
        self.best = replace(tape, violation=found, faults=kept)
        return True

    def shrink(self) -> Tape:
        """The smallest tape that was found."""
        if not self.few(0) and not self.few(1):
            self.drop_kinds()
            self.drop_faults()
            if 2 < len(self.best.faults) <= PAIRS_MAX:
                self.few(2)
        self.drop_instances()
        self.change(nodes=1)
        self.change(slow_ms=1)
        self.change(turns=500)
        self.change(hot_cells=4_096)
        self.drop_faults()
        return self.best

    def few(self, count: int) -> bool:
        """Are so few faults enough? What is dropped step by step may never come to them."""
        several = combinations(self.best.faults, count)
        return any(self.fails(replace(self.best, faults=chosen)) for chosen in several)

    def drop_kinds(self) -> None:
        """Whole kinds of fault first: most have nothing to do with it."""
        for kind in dict.fromkeys(fault.partition(":")[0] for fault in self.best.faults):
            left = [each for each in self.best.faults if each.partition(":")[0] != kind]
            self.fails(replace(self.best, faults=tuple(left)))

    def drop_faults(self) -> None:
        """Then one by one, in shrinking handfuls."""
        fewest(self.best.faults, lambda left: self.fails(replace(self.best, faults=tuple(left))))

    def drop_instances(self) -> None:
        """Then the instances."""

        def without(left: Sequence[int]) -> bool:
            setup = replace(self.best.setup, only=tuple(left))
            return bool(left) and self.fails(replace(self.best, setup=setup))

        fewest(numbers_of(self.best.setup), without)

    def change(self, **what: int) -> None:
        """Then what is unusual about the machines."""
        setup = replace(self.best.setup, **what)
        if setup != self.best.setup:
            self.fails(replace(self.best, setup=setup))


def smallest(player: Player, tape: Tape, tell: Progress, *, others: bool) -> Iterator[Tape]:
    """Smaller and smaller tapes: of the seed that was found; with `others`, of more that fail so.

    Some seeds break something by one fault, others only by a chain of them: the first that comes
    along need not be the one to read.
    """
    best = Shrinker(player, tape, tell).shrink()
    yield best
    found, first = 0, tape.setup.seed + 1
    for seed in range(first, first + OTHERS_LOOKED_AT):
        if not others or len(best.faults) <= SMALL or found == OTHERS:
            return
        outcome = player.play(player.work.setup(seed))
        broken = outcome.violation
        if broken is None or broken.invariant != tape.violation.invariant:
            continue
        found += 1
        other = Shrinker(player, player.tape_of(outcome, tape.given), tell).shrink()
        if len(other.faults) < len(best.faults):
            best = replace(other, first=tape.first)
            yield best


def save(tape: Tape, path: Path) -> None:
    """Write a tape, readable and diffable. Raises OSError."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(tape), indent=1) + b"\n")


def load(data: bytes, name: str) -> Tape:
    """Read a tape. Raises BadTapeError."""
    try:
        tape = msgspec.json.decode(data, type=Tape)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadTapeError(f"{name} is no tape of `pawl sim`: {error}") from error
    if tape.pawl_sim != FORMAT:
        raise BadTapeError(f"{name} is a tape of format {tape.pawl_sim}; {FORMAT} is known")
    return tape
