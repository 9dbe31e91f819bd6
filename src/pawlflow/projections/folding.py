"""Folding: one instance as its turns come, and the rows that changed since they were last taken.

A turn touches few steps; their rows alone are made again. What it costs to follow an instance is
what happens in it, however wide its plan and however many its items.
"""

from collections.abc import Callable
from typing import Final

from pawlflow.definition.plan import Plan
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.units import FANNED, RUNNING, SKIPPED, SUCCEEDED, WAITING, Unit
from pawlflow.model import events as ev
from pawlflow.model.codec import CodecError
from pawlflow.model.ids import NO_ITEM, CellId
from pawlflow.model.journal import instance_genesis, turn_hash
from pawlflow.model.payload import Payload, PayloadError
from pawlflow.model.reviews import GateVoided, StepReopened
from pawlflow.projections.reading import damaged, take_in
from pawlflow.projections.rows import Place, Times, instance_row, step_row, undo_row
from pawlflow.projections.story import unit_of
from pawlflow.projections.veil import Veil
from pawlflow.store.port import Entry
from pawlflow.store.views import Rows, StepRow

Large = Callable[[CellId, bytes], bytes | None]  # the bytes of a payload that is kept by itself
OVERHEAD: Final = 4_096  # what a small instance takes in memory beside its bytes
OPEN: Final = (RUNNING, WAITING, FANNED)
DONE: Final = (SUCCEEDED, SKIPPED)
UNDOING: Final = (ev.UndoStarted, ev.UndoBackedOff, ev.UndoDone, ev.UndoFailed)


class Folding:
    """An instance as far as its turns were read."""

    def __init__(self, cell: CellId, plan: Plan, uuid: str, large: Large) -> None:
        self.state = Instance(cell, plan)
        self.uuid = uuid
        self.large = large
        self.hash = instance_genesis(cell)
        self.payloads: dict[bytes, bytes] = {}
        self.size = OVERHEAD
        self.times: dict[int, Times] = {}  # by place
        self.touched: dict[int, None] = {}  # places whose rows are to be made again
        self.runs: dict[int, int] = {}  # by step: earlier runs that were put aside
        self.done: dict[int, None] = {}  # steps that succeeded or were skipped
        self.made_veil: Veil | None = None

    @property
    def turn(self) -> int:
        """The last turn that was read."""
        return self.state.turn

    def take(self, entry: Entry) -> None:
        """Let the next turn have happened. Raises StoreError if it was changed."""
        cell, number = self.state.cell, self.turn + 1
        try:
            take_in(self.payloads, entry, cell.tenant)
            turn = read_turn(entry.data, self.payloads)
        except (CodecError, PayloadError) as error:
            raise damaged(cell.key, number, str(error)) from error
        self.hash = turn_hash(self.hash, entry.data)
        if (entry.number, entry.hash) != (number, self.hash):
            raise damaged(cell.key, number, "its hash is not that of what was written")
        self.size += len(entry.data) + len(entry.beside)
        for event in apply_turn(self.state, turn):
            self.see(event)

    # What an event changes in rows

    def see(self, event: ev.Event) -> None:
        """Note what the rows of steps show of an event."""
        if isinstance(event, StepReopened | GateVoided):
            self.put_aside(event.step)
        elif isinstance(event, ev.CompensationStarted):
            self.touched |= dict.fromkeys(self.state.undo_list)  # each has a row of its own now
        unit = unit_of(self.state, event)
        if unit is None:
            return
        self.note(unit, event)
        self.touched[unit.place] = None
        if unit.item != NO_ITEM:
            self.touched[unit.step] = None  # it counts the attempts of its items
        elif self.state.unit(unit.step).status in DONE:
            self.done[unit.step] = None
        else:
            self.done.pop(unit.step, None)

    def put_aside(self, step: int) -> None:
        """A step runs again: what it did before has rows of its own from now on."""
        state, before = self.state, self.times.pop(step, None)
        earlier = state.earlier.get((step, NO_ITEM), [])
        if len(earlier) > self.runs.get(step, 0):
            self.runs[step] = len(earlier)
            self.times[earlier[-1]] = before or Times()
            self.touched[earlier[-1]] = None
        fan = state.fans.get(step)
        if fan is not None:
            self.touched |= dict.fromkeys(range(fan.base, fan.base + fan.cursor))

    def note(self, unit: Unit, event: ev.Event) -> None:
        """The times of a step or item that its unit does not keep."""
        now = self.state.now
        times = self.times.setdefault(unit.place, Times())
        if isinstance(event, UNDOING):
            self.note_undo(times, event)
            return
        times.last = now
        sent = isinstance(event, ev.StepStarted)
        sent = sent or (isinstance(event, ev.StepWaiting) and event.kind == "child")
        said = self.state.plan.steps[unit.step].kind == "emit" and unit.status == SUCCEEDED
        if sent or said:
            times.published, times.round = now, unit.round
        if times.opened is None and (unit.status in OPEN or said):
            times.opened = now

    def note_undo(self, times: Times, event: ev.Event) -> None:
        """The same of its undo."""
        times.undo_last = now = self.state.now
        if isinstance(event, ev.UndoStarted):
            times.undo_published = now
            times.undo_opened = times.undo_opened or now
        elif isinstance(event, ev.UndoDone | ev.UndoFailed):
            times.undo_ended = now

    # Rows

    def rows(self, place: Place) -> Rows:
        """The row of the instance, and those of all that was touched."""
        instance = instance_row(self.state, place, self.veil, uuid=self.uuid, done=len(self.done))
        return instance, [
            row for each in sorted(self.touched) for row in self.unit_rows(each, place)
        ]

    def unit_rows(self, where: int, place: Place) -> list[StepRow]:
        """A step or item, and its undo if there is one."""
        state, veil, times = self.state, self.veil, self.times.get(where) or Times()
        unit = state.unit(where)
        undo = undo_row(state, unit, place, veil, times)
        found = step_row(state, unit, place, veil, times)
        return [found] if undo is None else [found, undo]

    @property
    def veil(self) -> Veil:
        """What is hidden. It follows from the input, which the first turn brings."""
        if self.made_veil is None:
            given, cell = self.state.input, self.state.cell
            if given.data is None:
                given = Payload(given.addr, self.large(cell, given.addr))
            self.made_veil = Veil(given, self.state.plan.input_schema)
        return self.made_veil
