"""Asking: an input that somebody wants to see accepted, however often that takes.

Receipts are brought like this by the bus until somebody acknowledges them, requests by clients
until they have an answer.
"""

from collections.abc import Callable
from typing import Final

from pawlflow.engine.actions import Accepted
from pawlflow.kernel.draft import Rejected
from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input
from pawlflow.store.port import Taken
from pawlflow.testing.sim.cluster import Cluster, Posted
from pawlflow.testing.sim.monitors import transient

PATIENCE_MS: Final = 6_000
HASTY_MS: Final = 15
POLL_MS: Final = 400
UNKNOWN_YET: Final = ("definition.unknown", "workflow.unknown")  # it may still be published

Done = Callable[[Accepted | Rejected], None]


class Asking:
    """One input on its way in."""

    def __init__(self, cluster: Cluster, cell: CellId, incoming: Input, name: str) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.cell = cell
        self.input = incoming
        self.name = name
        self.tries = 0
        self.tries_max: int | None = None
        self.mail_is_enough = False  # the bus: what is in the mailbox is safe
        self.done: Done | None = None
        self.over = False

    def ask(self) -> None:
        """Knock at some node, and again if there is no answer in time."""
        if self.over:
            return
        self.tries += 1
        number, world = self.tries, self.world
        node = world.dice.pick(f"door:{self.name}", self.cluster.nodes)
        hasty = not self.mail_is_enough and world.faults.fires("client.hasty", self.name)
        key = f"{self.name}#{number}"
        self.cluster.enter(node, self.cell, self.input, key, lambda o: self.hear(number, o))
        if self.tries_max is None or self.tries < self.tries_max:
            world.after(HASTY_MS if hasty else PATIENCE_MS, lambda: self.again(number))

    def again(self, number: int) -> None:
        """No answer in time: ask once more, under the same name."""
        if number == self.tries:
            self.ask()

    def hear(self, number: int, outcome: Accepted | Rejected | Posted) -> None:
        """An answer, perhaps to a question that was asked long ago."""
        if self.over:
            return
        if isinstance(outcome, Posted):
            if self.mail_is_enough:
                self.finish(Accepted(self.cell.key, 0))
            else:
                self.world.after(POLL_MS, lambda: self.poll(outcome.mail))
            return
        if isinstance(outcome, Rejected) and (transient(outcome) or outcome.code in UNKNOWN_YET):
            return  # the timer asks again
        self.finish(outcome)

    def poll(self, mail: int) -> None:
        """Ask the store what became of mail."""
        if self.over:
            return
        taken: Taken | None = self.cluster.bench.store.real.answer(mail)
        if taken is None:
            self.world.after(POLL_MS * 5, lambda: self.poll(mail))
            return
        refused = Rejected(taken.code, taken.detail)
        self.hear(0, refused if taken.code else Accepted(self.cell.key, 0))

    def finish(self, outcome: Accepted | Rejected) -> None:
        """That was it."""
        self.over = True
        if self.done is not None:
            self.done(outcome)
