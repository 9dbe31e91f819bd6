"""Rows: an instance and its steps in the columns of spec 004, from its state and some times.

A row of a step depends on its unit alone, and on what never changes: so only what a turn touched
has to be written again. A step that nothing has touched has no row (spec 004 makes it when it
begins), and an undo has a row of its own, whose index is -1 - that of its step.
"""

from typing import Final
from uuid import UUID

import msgspec

from pawlflow.kernel.gates import gate_of
from pawlflow.kernel.state import Instance, has_keys
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.units import PENDING, STATUS_NAMES, SUCCEEDED, UNDO_DONE, UNDO_NONE, Unit
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, TimeMs
from pawlflow.model.intents import Direction, StepKeyParts, step_key
from pawlflow.projections.lenses import UNDO_WORDS, ores, ores_step
from pawlflow.projections.plain import time_told
from pawlflow.projections.units import UNDO_NAMES, blamed, fan_of
from pawlflow.projections.veil import Schema, Veil
from pawlflow.store.port import INLINE_BYTES_MAX, SHARDS, Ref
from pawlflow.store.views import InstanceRow, StepRow

CALLED: Final = ("run", "agent", "workflow")  # kinds whose key is given to somebody


class Times(msgspec.Struct):
    """What a unit does not keep of its times."""

    opened: TimeMs | None = None  # first started, or its wait first opened
    published: TimeMs | None = None  # the present attempt was sent out
    round: int = 0  # that attempt's
    undo_opened: TimeMs | None = None
    undo_published: TimeMs | None = None
    undo_ended: TimeMs | None = None
    last: TimeMs | None = None
    undo_last: TimeMs | None = None


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where rows stand: the number of their instance, and which building of the rows it is."""

    ref: Ref
    generation: int

    @property
    def shard(self) -> int:
        """The shard of the instance."""
        return self.ref % SHARDS


def instance_row(state: Instance, place: Place, veil: Veil, *, uuid: str, done: int) -> InstanceRow:
    """An instance; `done` is how many of its steps are."""
    plan, cell, closing = state.plan, state.cell, state.closing
    failure = None if closing is None else closing.failure
    unit = blamed(state)
    return InstanceRow(
        shard=place.shard,
        ref=place.ref,
        generation=place.generation,
        turn=state.turn,
        tenant=cell.tenant,
        id=cell.key,
        uuid=uuid,
        workflow=plan.workflow,
        version=plan.version,
        definition=plan.definition.hex(),
        state=ores(state),
        status=instance_state(state),
        rollback=state.rollback,
        paused=state.paused,
        current_step_index=done,
        step_count=len(plan.steps),
        request_json="" if state.created is None else veil.json(state.input, veil.schema),
        result_json=veil.json(state.output),
        error_step="" if unit is None else state.name_of(unit),
        error_class="" if failure is None else failure.kind,
        error_code="" if failure is None else failure.code,
        error_message=words_of(failure, veil),
        started_by=veil.text(state.by),
        parent_id="" if state.parent is None else state.parent.key,
        parent_step="" if state.parent is None else state.parent.step,
        created_at=time_told(state.created),
        started_at=time_told(state.started),
        closed_at=time_told(state.closed),
        last_event_at=time_told(state.now) or "",
    )


def step_row(state: Instance, unit: Unit, place: Place, veil: Veil, times: Times) -> StepRow:
    """A step or item. The results of a step with forEach are in the rows of its items."""
    plan = state.plan.steps[unit.step]
    failure = None if unit.status == SUCCEEDED else unit.failure
    check = None if plan.check is None else Schema.of(plan.check)
    undo = plan.undo
    whole = fan_of(state, unit) is not None
    result = unit.result if unit.status == SUCCEEDED else unit.late
    gate = gate_of(state, unit)
    return StepRow(
        shard=place.shard,
        ref=place.ref,
        place=unit.place,
        direction="do",
        generation=place.generation,
        key=key_text(state, unit, "do"),
        called=plan.kind in CALLED and has_keys(state, unit),
        name=state.name_of(unit),
        step=plan.name,
        item=None if unit.item == NO_ITEM else unit.item,
        step_index=unit.step,
        kind=plan.kind,
        state=ores_step(state, unit),
        status=STATUS_NAMES[unit.status],
        superseded=unit.over,
        attempt=unit.attempt,
        round=unit.round,
        role=unit.role or (gate.role if gate else "") or "",
        waits_for=unit.wait or "",
        command_subject=plan.target,
        command_json="" if whole or unit.status == PENDING else veil.json(unit.params),
        command_published_at=time_told(times.published if times.round == unit.round else None),
        response_json="" if whole else veil.json(result, check),
        compensation_subject="" if undo is None else undo.target,
        compensation_json="" if whole else veil.json(unit.undo_params),
        failure_class="" if failure is None else failure.kind,
        failure_code="" if failure is None else failure.code,
        error_message=words_of(failure, veil),
        ready_at=time_told(unit.since),
        started_at=time_told(times.opened),
        completed_at=time_told(unit.ended),
        last_event_at=time_told(times.last),
    )


def undo_row(state: Instance, unit: Unit, place: Place, veil: Veil, times: Times) -> StepRow | None:
    """The undo of a step or item; None as long as it is not to be undone."""
    undo = state.plan.steps[unit.step].undo
    if not state.compensating or unit.undo == UNDO_NONE or undo is None:
        return None
    failure = None if unit.undo == UNDO_DONE else unit.undo_failure
    plan = state.plan.steps[unit.step]
    return StepRow(
        shard=place.shard,
        ref=place.ref,
        place=unit.place,
        direction="undo",
        generation=place.generation,
        key=key_text(state, unit, "undo"),
        called=True,
        name=f"undo/{state.name_of(unit)}",
        step=plan.name,
        item=None if unit.item == NO_ITEM else unit.item,
        step_index=-1 - unit.step,
        kind="agent" if undo.by_agent else "run",
        state=UNDO_WORDS[unit.undo],
        status=UNDO_NAMES[unit.undo],
        superseded=unit.over,
        attempt=unit.undo_attempt,
        round=unit.round,
        role="",
        waits_for="",
        command_subject=undo.target,
        command_json=veil.json(unit.undo_params),
        command_published_at=time_told(times.undo_published),
        response_json="",
        compensation_subject="",
        compensation_json="",
        failure_class="" if failure is None else failure.kind,
        failure_code="" if failure is None else failure.code,
        error_message=words_of(failure, veil),
        ready_at=None,
        started_at=time_told(times.undo_opened),
        completed_at=time_told(times.undo_ended),
        last_event_at=time_told(times.undo_last),
    )


def key_text(state: Instance, unit: Unit, direction: Direction) -> str:
    """The step key of a unit's present round. A gate has one too; nobody is given it."""
    name = state.plan.steps[unit.step].name
    who = (state.cell.tenant, state.nonce)
    parts = StepKeyParts(*who, direction, name, unit.item, unit.round)
    return str(UUID(bytes=bytes(step_key(parts))))


def words_of(failure: Failure | None, veil: Veil) -> str:
    """What went wrong, in words; nothing if they were erased, or are too many."""
    data = None if failure is None else failure.detail.data
    if failure is None or data is None or len(data) > INLINE_BYTES_MAX:
        return ""
    return veil.text(failure.message)
