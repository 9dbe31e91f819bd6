"""The watch: what is committed and acknowledged, read as it happens, for everybody who looks on.

It stands where the simulator of the engine has its monitors, and costs a tenth of them: what they
prove about the engine is proved there, and here the workflow is on trial.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pawlflow.definition.plan import plan_of
from pawlflow.engine.actions import Accepted
from pawlflow.engine.cells import take_in
from pawlflow.engine.fair import Offer
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import read_turn
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.intents import Intent
from pawlflow.model.journal import Disposition, Turn
from pawlflow.model.records import read
from pawlflow.store.memory import Memory
from pawlflow.store.port import Address, Batch, Entry, Head, Ref, ShardHead
from pawlflow.testing.sim.ledger import Ledger
from pawlflow.testing.sim.monitors import Committing, Monitors, transient
from pawlflow.testing.sim.setup import PROFILES
from pawlflow.testing.sim.world import World
from pawlflow.testing.usersim.lives import Life

Heard = Callable[[Life, Turn, list[Event]], None]
BROKEN: Final = ("cell.raised", "cell.quarantined")
SYSTEM: Final = "$"  # how the keys of system cells begin


class Watch(Monitors):
    """All instances, and who is told when one of them goes on."""

    def __init__(self, world: World, memory: Memory) -> None:
        super().__init__(world, memory, Ledger(), PROFILES["whole"])
        self.lives: dict[Address, Life] = {}
        self.heard: list[Heard] = []

    def claimed(self, core: str, heads: Sequence[ShardHead]) -> None:
        """Who owns what is not looked at here."""

    def published(self, intent: Intent) -> None:
        """Nor is what is sent out."""

    def before(
        self, batch: Batch, outcomes: Sequence[tuple[Offer, Accepted | Rejected]]
    ) -> Committing:
        """A batch, with what it claims to answer."""
        return Committing(batch, outcomes)

    def committed(self, core: str, made: Committing) -> None:
        """A batch is durable now."""
        heads = {head.ref: head for head in made.batch.heads}
        for written in made.batch.frames:
            for entry in written.entries:
                self.read(entry, heads)
        for offer, outcome in made.outcomes:
            if offer.token is not None:
                self.acked[core, offer.token] = outcome

    def read(self, entry: Entry, heads: dict[Ref, Head]) -> None:
        """One entry of the journal; those of system cells are passed over."""
        head = heads.get(entry.ref) or self.memory.cells.get(entry.ref)
        if entry.number == 0 or head is None:
            self.read_letter(entry)
            return
        if head.cell.key.startswith(SYSTEM):
            self.turns += 1
            return
        address = (head.cell.tenant, head.cell.key)
        life = self.lives.get(address)
        if life is None:
            plan = plan_of(self.memory.definitions[Digest(head.definition)])
            life = self.lives[address] = Life(head.cell, plan, self.bad)
        take_in(self.payloads, entry.beside, head.cell.tenant)
        turn = read_turn(entry.data, self.payloads)
        events = life.advance(turn, entry.data, entry.hash)
        self.turns += 1
        for heard in self.heard:
            heard(life, turn, events)

    def read_letter(self, entry: Entry) -> None:
        """An input that was put aside: what is refused may be, nothing may break a cell."""
        letter: Disposition = read(Disposition, entry.data, {})
        if letter.code in BROKEN:
            what = type(letter.input).__name__
            self.bad("raised", letter.cell, f"{what} was put aside: {letter.code}")

    def replied(self, core: str, token: int, outcome: Accepted | Rejected) -> None:
        """Nobody is told anything before it is durable."""
        if isinstance(outcome, Rejected) and transient(outcome):
            return
        if self.acked.pop((core, token), None) is None:
            self.bad("lost", None, f"{core} answers before the commit: {outcome}")

    # Looking

    def path_of(self, cell: CellId) -> tuple[str, str]:
        """The instance that a cell hangs below, and where, such as `ship/` or `each[2]/pack/`."""
        path, life = "", self.lives.get((cell.tenant, cell.key))
        while life is not None and life.state.parent is not None:
            parent = life.state.parent
            path = f"{parent.step}/{path}"
            above = self.lives.get((cell.tenant, parent.key))  # type: ignore[arg-type]
            if above is None:
                break
            life = above
        return (cell.key if life is None else life.cell.key), path
