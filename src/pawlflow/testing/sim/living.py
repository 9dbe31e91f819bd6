"""What must hold of a core while it lives: its memory is the journal's, and has its bounds."""

from collections.abc import Sequence
from typing import Final

from pawlflow.engine.shard import Shards
from pawlflow.kernel.snapshot import state_bytes
from pawlflow.kernel.state import Instance
from pawlflow.store.port import Address
from pawlflow.testing.sim.derived import derived
from pawlflow.testing.sim.monitors import Monitors
from pawlflow.testing.sim.setup import Setup

PAGES: Final = 3  # of mail: two wait at most when another is read


def check_alive(monitors: Monitors, core: Shards, addresses: Sequence[Address]) -> None:
    """9: what a core holds is what the journal tells, to the byte."""
    for address in addresses:
        live = core.hot.cells.get(address)
        shadow = monitors.shadows.addresses.get(address)
        if live is None or live.cell is None or shadow is None or shadow.quarantined:
            continue
        if address in core.unwritten():
            continue  # it was stepped ahead: what it holds is judged once that is durable
        if core.heads.get(live.shard) != monitors.memory.shards[live.shard]:
            continue  # another node went on: this one will learn it at its next commit
        ours, theirs = shadow.cell.state, live.cell.state
        if live.cell.head != shadow.cell.head or state_bytes(theirs) != state_bytes(ours):
            monitors.bad("9", shadow.id, f"live at turn {theirs.turn}, journal at {ours.turn}")
        if not isinstance(ours, Instance) or not isinstance(theirs, Instance):
            continue
        mine, other = derived(ours), derived(theirs)
        wrong = [name for name in mine if mine[name] != other[name]]
        if wrong:
            said = f"what follows from the facts differs: {', '.join(wrong)}"
            monitors.bad("9", shadow.id, said)


def check_bounds(monitors: Monitors, core: Shards) -> None:
    """20: the cache is within its bounds after every commit."""
    hot, ahead = core.hot, len(core.unwritten())
    if len(hot.cells) > max(1, hot.cells_max, ahead):
        monitors.bad("20", None, f"{len(hot.cells)} live cells, {hot.cells_max} allowed")
    if hot.bytes > hot.bytes_max and len(hot.cells) > max(1, ahead):
        monitors.bad("20", None, f"{hot.bytes} bytes of live cells, {hot.bytes_max} allowed")
    if hot.bytes != sum(live.size for live in hot.cells.values()):
        monitors.bad("20", None, "the bytes of live cells are counted wrongly")


def check_queue(monitors: Monitors, core: Shards, setup: Setup) -> None:
    """20: no more inputs wait than are allowed, beside those that mail and clocks bring."""
    inbox, knobs = core.inbox, setup.knobs
    starts_max = knobs["starts_waiting"] + PAGES * knobs["mail_page"] + knobs["turns"]
    if inbox.starts > starts_max:
        monitors.bad("20", None, f"{inbox.starts} starts wait, {starts_max} may")
    if inbox.count != sum(len(line) for line in inbox.waiting.values()):
        monitors.bad("20", None, "the inputs that wait are counted wrongly")


def check_timers(monitors: Monitors, core: Shards) -> None:
    """15: a core that is at rest has every deadline of its cells in sight, or will read on."""
    deadlines, memory = core.deadlines, monitors.memory
    if deadlines.reading or deadlines.must_read():
        return
    held = {entry[1] for entry in deadlines.heap}
    next_ = min((entry[:2] for entry in deadlines.heap), default=deadlines.horizon)
    for due, ref in memory.due.keys:
        head = memory.cells[ref]
        stands = memory.shards[head.shard]
        ours = core.heads.get(head.shard) == stands and not head.quarantined
        if ours and (due, ref) <= max(deadlines.horizon, next_) and ref not in held:
            monitors.bad("15", head.cell, f"its deadline {due} is in no heap: it will not fire")


def check_mail(monitors: Monitors, core: Shards) -> None:
    """2: a core that is at rest has dealt with all the mail that it has read."""
    memory = monitors.memory
    for number, mail in memory.mailbox.items():
        ours = core.heads.get(mail.shard) == memory.shards[mail.shard]
        if ours and number <= core.mail_after and not core.mail_reading and not core.unreadable:
            monitors.bad("2", mail.cell, f"mail {number} was read, and is forgotten")
