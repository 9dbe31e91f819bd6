"""Shrinking: the fewest faults, instances and nodes that still break the same promise.

Delta debugging over the faults that fired. Since no chance depends on another, taking a fault away
leaves the others where they were, as far as the history allows.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from pawlflow.testing.sim.setup import KNOBS
from pawlflow.testing.sim.tape import Tape, play, told

Item = TypeVar("Item")
RUNS_MAX: Final = 1_500


class Shrinker:
    """Tries smaller tapes, within a budget of runs."""

    def __init__(self, tape: Tape, runs_max: int = RUNS_MAX) -> None:
        self.best = tape
        self.runs = 0
        self.runs_max = runs_max

    def fails(self, tape: Tape) -> bool:
        """Does this tape break the same promise? If so, it is the best so far."""
        if self.runs >= self.runs_max:
            return False
        self.runs += 1
        outcome = play(tape)
        if outcome.violation is None or outcome.violation.monitor != tape.violation.monitor:
            return False
        struck = {fired.id for fired in outcome.fired}
        kept = tuple(fault for fault in tape.faults if fault in struck)
        self.best = replace(tape, violation=outcome.violation, faults=kept)
        return True

    def drop_kinds(self) -> None:
        """Whole kinds of fault first: most have nothing to do with it."""
        for kind in dict.fromkeys(fault.partition(":")[0] for fault in self.best.faults):
            left = [f for f in self.best.faults if f.partition(":")[0] != kind]
            self.fails(replace(self.best, faults=tuple(left)))

    def drop_faults(self) -> None:
        """Then one by one, in shrinking handfuls."""
        fewest(self.best.faults, lambda left: self.fails(replace(self.best, faults=tuple(left))))

    def drop_instances(self) -> None:
        """Then the instances."""
        setup = self.best.setup
        numbers = list(setup.only if setup.only is not None else range(setup.instances))

        def without(left: Sequence[int]) -> bool:
            return self.fails(replace(self.best, setup=replace(setup, only=tuple(left))))

        fewest(numbers, without)

    def drop_rooms(self) -> None:
        """Then the parts of the language that have nothing to do with it."""
        for room in self.best.setup.rooms:
            setup = self.best.setup
            left = tuple(each for each in setup.rooms if each != room)
            self.fails(replace(self.best, setup=replace(setup, rooms=left)))

    def drop_knobs(self) -> None:
        """Then what is unusual about the limits."""
        for name, choices in KNOBS.items():
            setup = self.best.setup
            plain = replace(setup, knobs={**setup.knobs, name: choices[-1]})
            if setup.knobs.get(name) != choices[-1]:
                self.fails(replace(self.best, setup=plain))

    def drop_nodes(self) -> None:
        """Then the nodes."""
        for nodes in range(1, self.best.setup.nodes):
            if self.fails(replace(self.best, setup=replace(self.best.setup, nodes=nodes))):
                return


def shrink(tape: Tape, runs_max: int = RUNS_MAX) -> Tape:
    """The smallest tape found, with its story."""
    work = Shrinker(tape, runs_max)
    if work.fails(replace(tape, faults=())):
        work.best = replace(work.best, faults=())
    else:
        work.drop_kinds()
        work.drop_faults()
    work.drop_instances()
    work.drop_rooms()
    work.drop_nodes()
    work.drop_knobs()
    work.drop_faults()
    return told(work.best)


def fewest(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """What is left when no item can be taken away without losing the failure.

    Delta debugging in its greedy form: halves, quarters and so on down to single items, and single
    items again for as long as one of them can go.
    """
    left, size = list(items), max(1, len(items) // 2)
    while left:
        before, start = len(left), 0
        while start < len(left):
            rest = left[:start] + left[start + size :]
            if fails(rest):
                left = rest
            else:
                start += size
        if size == 1 and len(left) == before:
            break
        size = max(1, size // 2)
    return left
