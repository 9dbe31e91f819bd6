"""A turn held against all that is outside of its cell: the world, other instances, system cells."""

from collections.abc import Sequence
from typing import Final

from pawlflow.model.ids import CellId
from pawlflow.model.inputs import Input, Receipt, StartInstance
from pawlflow.model.journal import Disposition, Turn
from pawlflow.store.memory import Memory
from pawlflow.store.port import Address
from pawlflow.testing.sim.audit import Audit, Report
from pawlflow.testing.sim.audit_cells import Between
from pawlflow.testing.sim.ledger import Ledger
from pawlflow.testing.sim.setup import Profile
from pawlflow.testing.sim.shadows import Shadow

ASKED: Final = ("approval", "escalation", "budget")


class Outside:
    """What must be true beyond one cell."""

    def __init__(self, ledger: Ledger, profile: Profile, report: Report) -> None:
        self.ledger = ledger
        self.profile = profile
        self.bad = report
        self.between = Between(report)
        self.running: dict[tuple[str, str], dict[str, None]] = {}

    def read(self, shadow: Shadow, turn: Turn, known: dict[Address, Shadow]) -> None:
        """One more turn of any cell."""
        if shadow.audit is None:
            self.between.read(shadow.id, turn)
            return
        self.check_usage(shadow.id, turn.input)
        self.check_effects(shadow.audit)
        self.check_slots(shadow.audit)
        self.between.read_instance(shadow.audit, turn, known)

    def check_reviews(self, memory: Memory, shadows: Sequence[Shadow]) -> None:
        """16: people are asked what instances ask, and nothing else."""
        for shadow in {each.ref: each for each in shadows if each.audit}.values():
            rows = [row for row in memory.reviews.values() if row.ref == shadow.ref]
            found = {row.step: row.kind for row in rows if row.kind in ASKED}
            wanted = {} if shadow.audit is None else shadow.audit.reviews()
            if found != wanted:
                self.bad("16", shadow.id, f"the reviews are {found}, and should be {wanted}")

    def check_letter(self, letter: Disposition) -> None:
        """A start that was refused is put aside only if nobody was told: a parent is."""
        asked = letter.input
        child = isinstance(asked, StartInstance) and asked.parent is not None
        if child and letter.kind == "dead" and letter.code != "cell.raised":
            self.bad("child", letter.cell, f"refused by {letter.code}, told, and put aside too")

    def check_usage(self, cell: CellId, incoming: Input) -> None:
        """13: what an executor said about its costs is what the journal says that it said."""
        if not isinstance(incoming, Receipt):
            return
        told = self.ledger.reported.get((incoming.key, incoming.attempt), {})
        kept = {} if incoming.usage is None else incoming.usage.value
        if kept != told:
            self.bad("13", cell, f"an attempt cost {told}, and {kept} is on the record")

    def check_effects(self, audit: Audit) -> None:
        """4: what succeeded has happened, exactly once."""
        for key in audit.succeeded:
            count = self.ledger.count(key)
            if count == 0 or (count > 1 and self.profile.dedupe):
                self.bad("4", audit.cell, f"a step succeeded whose effect happened {count} times")
        audit.succeeded.clear()

    def check_slots(self, audit: Audit) -> None:
        """12: no more instances run under a concurrency key than it allows."""
        if not audit.slot or not audit.started:
            return
        holders = self.running.setdefault((audit.cell.tenant, audit.slot), {})
        if audit.closed:
            holders.pop(audit.cell.key, None)
            return
        holders[audit.cell.key] = None
        slot = audit.plan.slot
        if slot is not None and len(holders) > slot.limit:
            self.bad("12", audit.cell, f"{list(holders)} run, {slot.limit} may")
