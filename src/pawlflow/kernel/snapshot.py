"""Snapshots: the bytes of a state. A cache with a format number; the journal can always replace it.

Only facts are written. Counters, queues, heap and look-ups are rebuilt, so that equal facts give
equal bytes, whatever way led there.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from pawlflow.definition.plan import Plan
from pawlflow.kernel import units as status
from pawlflow.kernel.counters import listen, release, reserve, stand
from pawlflow.kernel.draft import is_asking
from pawlflow.kernel.evolve_again import know_keys
from pawlflow.kernel.evolve_steps import on_left
from pawlflow.kernel.state import (
    RANK_INSTANCE,
    RANK_STEP,
    RANK_UNDO,
    Instance,
    State,
    arm,
    key_of,
)
from pawlflow.kernel.system import System
from pawlflow.kernel.system.kinds import KINDS
from pawlflow.kernel.units import Closing, Done, Fan, Kept, Unit, is_open
from pawlflow.model.budgets import Amount
from pawlflow.model.codec import decode, hash_of
from pawlflow.model.events import AttemptLeft, Rollback
from pawlflow.model.ids import NO_ITEM, CellId, Digest, TimeMs
from pawlflow.model.journal import payloads_of
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, read, write

SNAPSHOT_FORMAT: Final = 3  # 2: who looks after a review; 3: items, parents
SEAL_BYTES: Final = 32
STATE_BYTES_MAX: Final = 2**28  # of a state that is kept; a longer one is read from its turns


class Snapshot(Record, frozen=True):
    """The facts of an instance, in order."""

    format: int
    definition: Digest
    turn: int
    now: TimeMs
    rules: int
    nonce: bytes
    by: str
    input: Payload
    created: TimeMs
    queued: bool
    started: TimeMs | None
    closed: TimeMs | None
    paused: bool
    closing: Closing | None
    compensating: bool
    outcome: str | None
    rollback: Rollback
    output: Payload | None
    units: tuple[Unit, ...]
    undo_list: tuple[int, ...]
    signals: tuple[Kept, ...]
    signals_seen: int
    order: int
    slot: str
    parent: Parent | None
    fans: tuple[Fan, ...]
    done: tuple[Done, ...]
    spent: tuple[Amount, ...]
    limits: tuple[Amount, ...]
    warned: tuple[str, ...]
    rate: str = ""
    granted: bool = False
    start_at: TimeMs | None = None
    search: Payload | None = None
    places: int = 0
    left: tuple[AttemptLeft, ...] = ()


class SnapshotError(Exception):
    """Bytes that are no state of this plan: rebuild from the turns instead."""


LISTS: Final = ("fans", "done", "spent", "limits", "warned", "left")
FACTS: Final = tuple(
    name
    for name in Snapshot.__struct_fields__
    if name not in ("format", "definition", "units", "undo_list", "signals", *LISTS)
)


def state_bytes(state: State) -> bytes:
    """The canonical bytes of a state that exists."""
    return write(facts_of(state))


def sealed_state(state: State, head: Digest, beside: bytes) -> bytes:
    """The bytes of a state to be kept, led by a seal over them, their turn and what lies beside."""
    data = state_bytes(state)
    return seal(state.cell, head, data, beside) + data


def opened_state(cell: CellId, head: Digest, kept: bytes, beside: bytes) -> bytes | None:
    """The bytes under a seal; None if they were changed, or are of another format."""
    found, data = kept[:SEAL_BYTES], kept[SEAL_BYTES:]
    return data if found == seal(cell, head, data, beside) else None


def seal(cell: CellId, head: Digest, data: bytes, beside: bytes) -> bytes:
    """What no other state, turn, cell or format has."""
    kind = KINDS.get(cell.workflow)
    number = SNAPSHOT_FORMAT if kind is None else kind.format
    parts = ("pawl.snapshot.1", number, cell.tenant, cell.workflow, cell.key, head, data, beside)
    return hash_of(*parts)


def facts_of(state: State) -> Record:
    """All that a state is rebuilt from, as one record."""
    if isinstance(state, System):
        made: Record = KINDS[state.cell.workflow].facts_of(state)
        return made
    facts = {name: getattr(state, name) for name in FACTS}
    return Snapshot(
        format=SNAPSHOT_FORMAT,
        definition=state.plan.definition,
        units=tuple(touched(state)),
        undo_list=tuple(state.undo_list),
        signals=tuple(state.signals.values()),
        fans=tuple(state.fans.values()),
        done=tuple(state.done.values()),
        spent=tuple(Amount(name, state.spent[name]) for name in sorted(state.spent)),
        limits=tuple(Amount(name, state.limits[name]) for name in sorted(state.limits)),
        warned=tuple(sorted(state.warned)),
        left=tuple(state.left.values()),
        **facts,
    )


def snapshot_payloads(state: State) -> list[Payload]:
    """Every payload that the bytes of a state mention: what must lie beside them."""
    return payloads_of(facts_of(state))


def state_from_bytes(
    data: bytes, cell: CellId, plan: Plan | None, payloads: Mapping[bytes, bytes]
) -> State:
    """The state that wrote these bytes. Raises SnapshotError if they belong elsewhere."""
    if plan is None:
        return system_from_bytes(data, cell, payloads)
    return instance_from_bytes(data, cell, plan, payloads)


def system_from_bytes(data: bytes, cell: CellId, payloads: Mapping[bytes, bytes]) -> System:
    """The state of a system cell."""
    kind = KINDS[cell.workflow]
    found = read(kind.facts, decode(data, STATE_BYTES_MAX), payloads)
    if found.format != kind.format:
        raise SnapshotError(f"format {found.format} of {cell.workflow}")
    state = kind.from_facts(found, cell)
    state.turn, state.now, state.rules = found.turn, found.now, found.rules
    return state


def instance_from_bytes(
    data: bytes, cell: CellId, plan: Plan, payloads: Mapping[bytes, bytes]
) -> Instance:
    """The state of an instance."""
    found: Snapshot = read(Snapshot, decode(data, STATE_BYTES_MAX), payloads)
    if found.format != SNAPSHOT_FORMAT or found.definition != plan.definition:
        raise SnapshotError(f"format {found.format}, definition {found.definition.hex()}")
    state = Instance(cell, plan)
    for name in FACTS:
        setattr(state, name, getattr(found, name))
    for fan in found.fans:
        state.fans[fan.step] = fan
    state.done = {done.place: done for done in found.done}
    for unit in found.units:
        if unit.place < len(state.units):
            state.units[unit.step] = unit
        else:
            state.items[unit.place] = unit
        if unit.over:
            state.earlier.setdefault((unit.step, unit.item), []).append(unit.place)
    state.undo_list = list(found.undo_list)
    state.spent = {amount.unit: amount.micros for amount in found.spent}
    state.limits = {amount.unit: amount.micros for amount in found.limits}
    state.warned = dict.fromkeys(found.warned)
    state.signals = {kept.number: kept for kept in found.signals}
    rebuild(state)
    for left in found.left:
        on_left(state, left)
    return state


def touched(state: Instance) -> Iterator[Unit]:
    """The units that have a story."""
    steps = (
        u for u in state.units if u is not None and (u.status != status.PENDING or u.round > 1)
    )
    return chain(steps, (state.items[place] for place in sorted(state.items)))


def rebuild(state: Instance) -> None:
    """Everything that follows from the facts, from the facts alone."""
    units = sorted(touched(state), key=lambda unit: unit.order)
    state.counts[status.PENDING] -= sum(unit.place < len(state.units) for unit in units)
    for unit in chain(units, map(state.unit, state.done)):
        rebuild_unit(state, unit)
    state.fresh.clear()  # no turn has changed anything yet
    state.listened.clear()
    if state.closed is not None:
        state.counts[status.CANCELLED] += state.counts[status.PENDING]
        state.counts[status.PENDING] = 0
    elif state.start_at is not None:
        arm(state, state.start_at, RANK_INSTANCE, -1)
    elif state.started is not None and state.plan.timeout_ms is not None:
        arm(state, TimeMs(state.started + state.plan.timeout_ms), RANK_INSTANCE, -1)


def rebuild_unit(state: Instance, unit: Unit) -> None:
    """What one unit adds."""
    if not unit.over:
        rebuild_status(state, unit)
    know_keys(state, unit)
    if unit.undo_attempt:
        key_of(state, unit, "undo")
    rebuild_undo(state, unit)


def rebuild_status(state: Instance, unit: Unit) -> None:
    """What follows from where it stands."""
    state.counts[unit.status] += 1
    if is_open(unit.status):
        state.open[unit.place] = None
    if unit.status in (status.READY, status.CORRECTING) and unit.order:
        stand(state, unit)
    elif is_asking(unit):
        state.asking[unit.place] = None
    elif unit.status == status.RUNNING and state.plan.budget:
        reserve(state, unit, 1)
    if unit.status == status.WAITING:
        listen(state, unit)
    if unit.status in (status.SUCCEEDED, status.SKIPPED) and unit.item == NO_ITEM:
        release(state, unit)
    if unit.until is not None:
        arm(state, unit.until, RANK_STEP, unit.place)


def rebuild_undo(state: Instance, unit: Unit) -> None:
    """Where its undo stands."""
    if unit.undo in (status.UNDO_RUNNING, status.UNDO_BACKOFF):
        state.undoing[unit.place] = None
    if unit.undo == status.UNDO_FAILED:
        state.undone_failed += 1
    if unit.undo_until is not None:
        arm(state, unit.undo_until, RANK_UNDO, unit.place)
