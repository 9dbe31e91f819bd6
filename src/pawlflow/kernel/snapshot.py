"""Snapshots: the bytes of a state. A cache with a format number; the journal can always replace it.

Only facts are written. Counters, queues, heap and look-ups are rebuilt, so that equal facts give
equal bytes, whatever way led there.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from pawlflow.kernel.counters import line_of, listen
from pawlflow.kernel.plan import Plan
from pawlflow.kernel.state import (
    CANCELLED,
    CORRECTING,
    PENDING,
    RANK_INSTANCE,
    RANK_STEP,
    RANK_UNDO,
    READY,
    SKIPPED,
    SUCCEEDED,
    UNDO_BACKOFF,
    UNDO_FAILED,
    UNDO_RUNNING,
    WAITING,
    Closing,
    Instance,
    Kept,
    State,
    Unit,
    arm,
    is_open,
    key_of,
    make_key,
)
from pawlflow.kernel.system import System
from pawlflow.kernel.system.kinds import KINDS
from pawlflow.model.codec import hash_of
from pawlflow.model.events import Rollback
from pawlflow.model.ids import CellId, Digest, TimeMs
from pawlflow.model.journal import gather
from pawlflow.model.payload import Payload
from pawlflow.model.records import Record, read, write

SNAPSHOT_FORMAT: Final = 1
SEAL_BYTES: Final = 32


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
    slot: str = ""


class SnapshotError(Exception):
    """Bytes that are no state of this plan: rebuild from the turns instead."""


FACTS: Final = tuple(
    name
    for name in Snapshot.__struct_fields__
    if name not in ("format", "definition", "units", "undo_list", "signals")
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
        **facts,
    )


def snapshot_payloads(state: State) -> list[Payload]:
    """Every payload that the bytes of a state mention: what must lie beside them."""
    found: list[Payload] = []
    gather_all(facts_of(state), found)
    return found


def gather_all(record: msgspec.Struct, found: list[Payload]) -> None:
    """The payloads of a record, of the records inside it, and of its lists of either."""
    gather(record, found)
    for name in record.__struct_fields__:
        value = getattr(record, name)
        for each in value if isinstance(value, tuple) else ():
            if isinstance(each, Payload):
                found.append(each)
            elif isinstance(each, msgspec.Struct):
                gather_all(each, found)


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
    found = read(kind.facts, data, payloads)
    if found.format != kind.format:
        raise SnapshotError(f"format {found.format} of {cell.workflow}")
    state = kind.from_facts(found, cell)
    state.turn, state.now, state.rules = found.turn, found.now, found.rules
    return state


def instance_from_bytes(
    data: bytes, cell: CellId, plan: Plan, payloads: Mapping[bytes, bytes]
) -> Instance:
    """The state of an instance."""
    found: Snapshot = read(Snapshot, data, payloads)
    if found.format != SNAPSHOT_FORMAT or found.definition != plan.definition:
        raise SnapshotError(f"format {found.format}, definition {found.definition.hex()}")
    state = Instance(cell, plan)
    for name in FACTS:
        setattr(state, name, getattr(found, name))
    for unit in found.units:
        state.units[unit.step] = unit
    state.undo_list = list(found.undo_list)
    state.signals = {kept.number: kept for kept in found.signals}
    rebuild(state)
    return state


def touched(state: Instance) -> Iterator[Unit]:
    """The units that have a story."""
    return (unit for unit in state.units if unit is not None and unit.status != PENDING)


def rebuild(state: Instance) -> None:
    """Everything that follows from the facts, from the facts alone."""
    units = sorted(touched(state), key=lambda unit: unit.order)
    state.counts[PENDING] -= len(units)
    for unit in units:
        rebuild_unit(state, unit)
    state.asked.clear()  # no turn has changed anything yet
    state.listened.clear()
    if state.closed is not None:
        state.counts[CANCELLED] += state.counts[PENDING]
        state.counts[PENDING] = 0
    elif state.started is not None and state.plan.timeout_ms is not None:
        arm(state, TimeMs(state.started + state.plan.timeout_ms), RANK_INSTANCE, -1)


def rebuild_unit(state: Instance, unit: Unit) -> None:
    """What one unit adds."""
    state.counts[unit.status] += 1
    if is_open(unit.status):
        state.open[unit.step] = None
    if unit.status in (READY, CORRECTING):
        line_of(state, unit).append((unit.order, unit.step))
    if unit.status == WAITING:
        listen(state, unit)
    if unit.status in (SUCCEEDED, SKIPPED):
        rebuild_edges(state, unit)
    if unit.until is not None:
        arm(state, unit.until, RANK_STEP, unit.step)
    if unit.attempt:
        key_of(state, unit, "do")
        for round_ in range(1, unit.round):
            make_key(state, unit, "do", round_)
    if unit.undo_attempt:
        key_of(state, unit, "undo")
    rebuild_undo(state, unit)


def rebuild_edges(state: Instance, unit: Unit) -> None:
    """Count down what waited for this step."""
    for step, requires_success in state.plan.steps[unit.step].leads_to:
        state.remaining[step] -= 1
        if requires_success and unit.status == SKIPPED:
            state.doomed.add(step)


def rebuild_undo(state: Instance, unit: Unit) -> None:
    """Where its undo stands."""
    if unit.undo in (UNDO_RUNNING, UNDO_BACKOFF):
        state.undoing = unit.step
    if unit.undo == UNDO_FAILED:
        state.undone_failed += 1
    if unit.undo_until is not None:
        arm(state, unit.undo_until, RANK_UNDO, unit.step)


def derived(state: Instance) -> dict[str, Any]:
    """Everything that is rebuilt, in a form that can be compared. The heap's stale ends aside."""
    return {
        "counts": list(state.counts),
        "waits": {kind: n for kind, n in state.waits.items() if n},
        "remaining": state.remaining,
        "open": sorted(state.open),
        "attempts": list(state.attempts),
        "openings": list(state.openings),
        "listening": {event: list(who) for event, who in state.listening.items() if who},
        "keys": state.keys,
        "undoing": state.undoing,
        "undone_failed": state.undone_failed,
    }
