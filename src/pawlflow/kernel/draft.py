"""The draft of a turn: events are applied as they are emitted, so each decision sees the last."""

from typing import Final

from pawlflow.definition.plan import NO_RETRY, UndoPlan
from pawlflow.definition.rules import SETTLING_RULES
from pawlflow.kernel.evolve import EVOLVE
from pawlflow.kernel.refused import Rejected as Rejected
from pawlflow.kernel.state import Instance, State, key_of, make_key
from pawlflow.kernel.units import CORRECTING, READY, RUNNING, UNDO_RUNNING, Unit
from pawlflow.model.events import AttemptLeft, Event, StopReason
from pawlflow.model.failure import Failure, FailureClass, failure_of
from pawlflow.model.ids import Digest, TimeMs
from pawlflow.model.inputs import Input
from pawlflow.model.intents import (
    POLICY,
    UNPINNED,
    Call,
    Called,
    Direction,
    Intent,
    IntentParts,
    IntentRecord,
    Stop,
    Stopped,
    intent_id,
)
from pawlflow.model.journal import Send
from pawlflow.model.payload import Payload, nothing

# How policies are asked: like an undo, it is made beside the step.
ASKING: Final = UndoPlan(by_agent=False, target=POLICY, params=None, retry=NO_RETRY, span_ms=None)
ENGINE: Final = "engine"  # who decided, when nobody outside did


class Draft:
    """A turn in the making."""

    __slots__ = ("entropy", "events", "intents", "records", "sends", "state")

    def __init__(self, state: Instance, entropy: bytes) -> None:
        self.state = state
        self.entropy = entropy
        self.events: list[Event] = []
        self.intents: list[Intent] = []
        self.records: list[IntentRecord] = []
        self.sends: list[Send] = []

    @property
    def now(self) -> TimeMs:
        """The time of this turn."""
        return self.state.now

    def emit(self, event: Event) -> None:
        """Record what happened, and let it have happened."""
        self.events.append(event)
        EVOLVE[type(event)](self.state, event)

    def call(self, unit: Unit, direction: Direction) -> None:
        """Ask for the attempt that the last event started."""
        call = call_of(self.state, unit, direction)
        self.intents.append(call)
        self.records.append(Called(len(self.events) - 1, call.id))

    def stop(self, unit: Unit, direction: Direction, reason: StopReason) -> None:
        """Say that the running attempt is no longer wanted."""
        call = call_of(self.state, unit, direction)
        self.intents.append(Stop(call=call, reason=reason))
        self.records.append(Stopped(call.id, reason))

    def leave(self, unit: Unit, direction: Direction, reason: StopReason) -> None:
        """Say that the present attempt may still be at work, and how long that is waited for."""
        state, undo = self.state, direction == "undo"
        if state.rules < SETTLING_RULES:
            return
        attempt = unit.undo_attempt if undo else unit.attempt
        said = (unit.step, unit.item, attempt, undo, unit.round, reason)
        if undo or unit.status == RUNNING:
            until = TimeMs(self.now + state.plan.steps[unit.step].grace_ms)
            self.emit(AttemptLeft(*said, until, call_of(state, unit, direction).id))
        else:
            self.emit(AttemptLeft(*said, None, b""))

    def send(self, workflow: str, key: str, incoming: Input) -> None:
        """An input for another cell of the tenant, once this turn is durable."""
        self.sends.append(Send(workflow, key, incoming))

    def payload(self, value: object) -> Payload:
        """A value of this instance, addressed."""
        return Payload.of(value, self.state.cell.tenant)

    def failure(self, kind: FailureClass, code: str, message: str) -> Failure:
        """A failure of this instance, from its words."""
        return failure_of(kind, code, message, tenant=self.state.cell.tenant)


def call_of(state: Instance, unit: Unit, direction: Direction) -> Call:
    """The call of a unit's present attempt, the same whenever it is made again."""
    plan = state.plan.steps[unit.step]
    undo, do = direction == "undo", direction == "do"
    asked = plan.undo if undo else plan if do else ASKING
    params = unit.undo_params if undo else unit.params
    attempt = unit.undo_attempt if undo else unit.attempt
    if unit.asking is not None and direction == "ask":
        params, attempt = unit.asking.request, unit.asking.number
    assert asked is not None
    assert params is not None
    key = key_of(state, unit, direction)
    return Call(
        intent_id(IntentParts(asked.target, UNPINNED, params, key, attempt, state.cell)),
        state.cell,
        key,
        attempt,
        direction,
        step=plan.name,
        item=unit.item,
        round=unit.round,
        by_agent=asked.by_agent,
        target=asked.target,
        role=unit.role if do else None,
        params=params,
        feedback=feedback_of(unit) if do else (),
        timeout_ms=asked.span_ms,
        heartbeat_ms=plan.heartbeat_ms if do else None,
        grace_ms=plan.grace_ms,
    )


def left_call(state: Instance, left: AttemptLeft) -> Call:
    """The call of an attempt that was left: its id and place, which is all that a stop needs."""
    plan = state.plan.steps[left.step]
    asked = plan.undo if left.undo and plan.undo else plan
    direction: Direction = "undo" if left.undo else "do"
    key = make_key(state, Unit(left.step, left.item), direction, left.round)
    named = (plan.name, left.item, left.round, asked.by_agent, asked.target, None)
    asks = (nothing(None, state.cell.tenant), (), asked.span_ms, None, plan.grace_ms)
    return Call(Digest(left.id), state.cell, key, left.attempt, direction, *named, *asks)


def is_asking(unit: Unit) -> bool:
    """Does it wait for an answer of the policies? One that was stopped meanwhile does not."""
    return bool(unit.asking and unit.asking.decided is None and unit.status in (READY, CORRECTING))


def begun_as(unit: Unit) -> int:
    """Its place among all that runs or asks, in the order in which they began; 0 for others."""
    asks = unit.asking.since if unit.asking is not None and is_asking(unit) else 0
    return asks or (unit.order if unit.status == RUNNING else 0)


def feedback_of(unit: Unit) -> tuple[object, ...]:
    """What this round is to correct: the findings, or at least what was said."""
    if unit.refused is None:
        return ()
    return tuple(unit.refused.findings) or (unit.refused.message,)


def calls_open(state: State) -> int:
    """How much is in flight, counted without looking: as many as there are open intents."""
    if not isinstance(state, Instance):
        return 0
    calls = state.counts[RUNNING] + state.stopping
    if state.undoing:
        calls += sum(state.unit(place).undo == UNDO_RUNNING for place in state.undoing)
    if state.asking:
        calls += sum(is_asking(state.unit(place)) for place in state.asking)
    return calls


def open_intents(state: State) -> list[Intent]:
    """All that is in flight, as it was first asked for: what recovery offers again."""
    if not isinstance(state, Instance):
        return []
    begun = sorted(map(state.unit, state.open), key=begun_as)
    calls = [call_of(state, u, "ask" if is_asking(u) else "do") for u in begun if begun_as(u)]
    undoing = (state.unit(place) for place in state.undoing)
    calls += [call_of(state, unit, "undo") for unit in undoing if unit.undo == UNDO_RUNNING]
    # What was left goes first: a call of the same step may be for its next attempt.
    told = (left for left in state.left.values() if left.until is not None)
    left = [Stop(call=left_call(state, each), reason=each.reason) for each in told]
    if state.closing is None:
        return [*left, *calls]
    stopped = [Stop(call=call, reason="cancel") for call in calls if call.direction == "do"]
    return [*left, *stopped, *(call for call in calls if call.direction == "undo")]
