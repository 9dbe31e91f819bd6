"""A sweep: many seeds, one after the other, and what was met on the way."""

from collections import Counter
from hashlib import blake2b
from time import perf_counter
from typing import Any

from pawlflow.testing.usersim.run import Outcome
from pawlflow.testing.usersim.workload import Workload


class Tally:
    """What many runs met."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.seeds = 0
        self.faults: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.simulated_ms = 0
        self.turns = 0
        self.traces = blake2b(digest_size=16)
        self.began = perf_counter()
        self.shrinking_s = 0.0  # time that went into shrinking, and not into seeds

    def add(self, outcome: Outcome) -> None:
        """One more run."""
        self.seeds += 1
        self.faults += outcome.faults
        self.outcomes += outcome.outcomes
        self.ends += outcome.ends
        self.waits += outcome.waits
        self.simulated_ms += outcome.simulated_ms
        self.turns += outcome.turns
        self.traces.update(outcome.trace.encode())

    @property
    def trace(self) -> str:
        """A hash of everything that happened in all of them."""
        return self.traces.hexdigest()

    @property
    def seconds(self) -> float:
        """How long the seeds took."""
        return max(1e-9, perf_counter() - self.began - self.shrinking_s)

    @property
    def rate(self) -> float:
        """Seeds per second."""
        return self.seeds / self.seconds

    def unmet(self) -> list[str]:
        """Kinds of fault that might have struck, and never did."""
        people = self.work.people
        wanted = (k for k in sorted(self.work.faults) if people or not k.startswith("people."))
        return [kind for kind in wanted if kind not in self.faults]

    def as_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "faults": dict(sorted(self.faults.items())),
            "faults_unmet": self.unmet(),
            "attempts": dict(sorted(self.outcomes.items())),
            "instances": dict(sorted(self.ends.items())),
            "waiting": dict(sorted(self.waits.items())),
        }
