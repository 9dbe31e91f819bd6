"""Machines: a user's pure function (state, event) -> (state', events, effects), held to its word.

Nothing of the user's enters the journal as it is. The function gets values of its own, and what it
returns is checked against its types and written canonically before any of it counts (spec 002, 3).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from pawlflow.kernel.draft import Rejected
from pawlflow.model.codec import decode_trusted, encode, hash_of
from pawlflow.model.ids import CellId, Digest, EffectName, StepKey, StepName, Tenant
from pawlflow.model.intents import UNPINNED, IntentParts, StepKeyParts, intent_id, step_key
from pawlflow.model.journal import Stamps
from pawlflow.model.payload import PAYLOAD_BYTES_MAX, Payload, address_of
from pawlflow.model.records import Record, write
from pawlflow.model.types import PAIR_KEYS, Schema, TypeMismatch, schema_of

# The limits of AgentOS. They are part of the rules: a turn that was accepted once
# must be accepted by every replay, so they may only grow.
EFFECTS_MAX: Final = 64  # of one turn: one frame may hold thousands of turns, and all are published
EVENTS_MAX: Final = 256  # of one turn: each may wake several cells, so one event must not flood
OUTPUT_BYTES_MAX: Final = 1024 * 1024  # of one turn: a frame of such turns still fits in memory
ENTROPY_BYTES_MIN: Final = 16  # as the nonce of a run: below it a step key could be guessed
REQUESTED_KEY_BYTES: Final = 32  # what AgentOS accepts as an explicit idempotency key
NS_PER_MS: Final = 1_000_000
NUMBER: Final = re.compile(r"-?[0-9]{1,20}\Z")  # 64 bits have at most 20 digits
LABELS: Final = schema_of(
    {"record": {"issuer_ref": {"option": {"text": {}}}, "key": {"option": {"bytes": {}}}}}
)


class MachineContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a machine may know besides state and event. Replay gives it again, unchanged."""

    now_ns: int
    entropy: bytes
    height: int
    rules: int
    key: str | int | None  # of the cell; None if the machine is not keyed


class Emitted(msgspec.Struct, frozen=True):
    """A domain event as a machine returns it."""

    schema: str
    value: Any


class Effect(msgspec.Struct, frozen=True):
    """An effect as a machine returns it. `issuer_ref` comes back with the receipt, unchanged."""

    name: str
    params: Any
    issuer_ref: str | None = None
    key: bytes | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What a machine returns. A state of None deletes the cell, whatever the state's type."""

    state: Any
    events: Sequence[Emitted] = ()
    effects: Sequence[Effect] = ()


class MachineSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A machine: its types made ready, all that it may emit, and its function."""

    name: str
    state: Schema
    event: Schema
    key: Schema | None
    emits: Mapping[str, Schema]  # domain events, by schema name
    effects: Mapping[str, Schema]  # params, by effect name
    function: Callable[[Any, Any, MachineContext], Outcome]


class DomainEvent(Record, frozen=True, tag="domain", gc=False):
    """The journalled form of an emitted event."""

    schema: str
    value: Payload


class MachineIntent(Record, frozen=True, tag="effect", gc=False):
    """The journalled form of an effect. `requested` is the machine's own idempotency key."""

    id: Digest
    key: StepKey
    origin: CellId
    effect: EffectName
    params: Payload
    issuer_ref: str | None
    requested: bytes | None


class MachineOutput(Record, frozen=True, tag="pawl.machine-output.1"):
    """All that one turn of a machine brought about, in the order it was returned."""

    state: Payload | None
    events: tuple[DomainEvent, ...]
    intents: tuple[MachineIntent, ...]


class MachineTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that was decided: the event to journal, its output, and the output's bytes."""

    event: Payload
    output: MachineOutput
    data: bytes


class EmissionParts(Record, frozen=True, tag="pawl.emission.1", gc=False):
    """What the nonce of an effect's step key is the hash of."""

    origin: CellId
    height: int
    entropy: bytes
    requested: bytes | None


class Refusal(Exception):  # noqa: N818
    """A Rejected on its way up from a leaf; `step_machine` returns it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.rejected = Rejected(code, detail)


def step_machine(
    spec: MachineSpec,
    state: Payload | None,
    value: object,
    stamps: Stamps,
    cell: CellId,
    *,
    rules: int,
) -> MachineTurn | Rejected:
    """Decide one event. Whatever the function raises passes through, and nothing has changed."""
    try:
        context = step_machine_context(spec, stamps, cell, rules)
        event = step_machine_event(spec, value)
    except Refusal as refusal:
        return refusal.rejected
    # The function owns what it is given and may change it in place: the event is read from its
    # bytes again, and canonicalising builds the state anew. That also gives it the options its
    # type has gained since. A state that does not fit is no fault of the event, so it is raised.
    before = None if state is None else spec.state.canonicalise(state.value)
    outcome: object = spec.function(before, decode_trusted(event), context)
    if not isinstance(outcome, Outcome):
        raise TypeError(f"machine {spec.name!r} returned {type(outcome).__name__}, not an Outcome")
    try:
        output = step_machine_output(spec, outcome, stamps, cell)
        data = step_machine_bytes(output)
    except Refusal as refusal:
        return refusal.rejected
    entered = Payload(address_of(event, cell.tenant), event)
    return MachineTurn(event=entered, output=output, data=data)


def step_machine_context(
    spec: MachineSpec, stamps: Stamps, cell: CellId, rules: int
) -> MachineContext:
    """What the stamps say, in the units of spec 002."""
    if len(stamps.entropy) < ENTROPY_BYTES_MIN:
        detail = f"{len(stamps.entropy)} bytes, {ENTROPY_BYTES_MIN} needed"
        raise Refusal("entropy.short", detail)
    return MachineContext(
        now_ns=stamps.now * NS_PER_MS,
        # Step keys are made from the stamped bytes. A machine may publish what it is given here,
        # so it gets a hash of them: nobody can guess a key from that.
        entropy=hash_of("pawl.machine-entropy.1", stamps.entropy),
        height=stamps.height,
        rules=rules,
        key=step_machine_key(spec, cell),
    )


def step_machine_key(spec: MachineSpec, cell: CellId) -> str | int | None:
    """The cell's key as its type knows it; a cell id holds it as text, and in one spelling."""
    if spec.key is None:
        return None
    numbered = next(iter(spec.key.type)) in PAIR_KEYS and NUMBER.match(cell.key)
    try:
        key: str | int = spec.key.canonicalise(int(cell.key) if numbered else cell.key)
    except TypeMismatch as trouble:
        raise Refusal("key.invalid", str(trouble)) from None
    if str(key) != cell.key:  # or two cells would stand for one key
        raise Refusal("key.invalid", "the key is not in canonical form")
    return key


def step_machine_event(spec: MachineSpec, value: object) -> bytes:
    """The canonical bytes of the event, as it enters (spec 002, 3.2 rule 1)."""
    what = f"event of machine {spec.name!r}"
    data = encode(canonical(spec.event, value, "event.invalid", what))
    if len(data) > PAYLOAD_BYTES_MAX:
        detail = f"the event takes {len(data)} bytes, at most {PAYLOAD_BYTES_MAX} are accepted"
        raise Refusal("payload.too_large", detail)
    return data


def step_machine_output(
    spec: MachineSpec, outcome: Outcome, stamps: Stamps, cell: CellId
) -> MachineOutput:
    """The outcome in canonical form: all of it, or none."""
    if len(outcome.effects) > EFFECTS_MAX:
        detail = f"{len(outcome.effects)} effects in one turn, at most {EFFECTS_MAX} are accepted"
        raise Refusal("machine.too_many_effects", detail)
    if len(outcome.events) > EVENTS_MAX:
        detail = f"{len(outcome.events)} events in one turn, at most {EVENTS_MAX} are accepted"
        raise Refusal("machine.too_many_events", detail)
    state = None
    if outcome.state is not None:
        what = f"state of machine {spec.name!r}"
        after = canonical(spec.state, outcome.state, "machine.state_invalid", what)
        state = addressed(after, cell.tenant)
    events = tuple(domain_event(spec, emitted, cell.tenant) for emitted in outcome.events)
    intents = tuple(
        machine_intent(spec, effect, position, stamps, cell)
        for position, effect in enumerate(outcome.effects)
    )
    return MachineOutput(state, events, intents)


def step_machine_bytes(output: MachineOutput) -> bytes:
    """The bytes of the output. The limit counts them, and the values that lie beside them."""
    data = write(output)
    values = [event.value for event in output.events]
    values += [intent.params for intent in output.intents]
    values += [] if output.state is None else [output.state]
    size = len(data) + sum(len(value.data or b"") for value in values)
    if size > OUTPUT_BYTES_MAX:
        detail = f"the output takes {size} bytes, at most {OUTPUT_BYTES_MAX} are accepted"
        raise Refusal("machine.output_too_large", detail)
    return data


def domain_event(spec: MachineSpec, emitted: Emitted, tenant: Tenant) -> DomainEvent:
    """An emitted event, checked and addressed."""
    what = f"event {emitted.schema!r}"
    schema = declared(spec.emits, emitted.schema, "machine.event_undeclared", what)
    value = canonical(schema, emitted.value, "machine.event_invalid", what)
    return DomainEvent(emitted.schema, addressed(value, tenant))


def machine_intent(
    spec: MachineSpec, effect: Effect, position: int, stamps: Stamps, cell: CellId
) -> MachineIntent:
    """An effect, checked and addressed, with an identity of its own."""
    code, what = "machine.effect_invalid", f"effect {effect.name!r}"
    schema = declared(spec.effects, effect.name, "machine.effect_undeclared", what)
    params = addressed(canonical(schema, effect.params, code, what), cell.tenant)
    given = {"issuer_ref": effect.issuer_ref, "key": effect.key}
    labels = canonical(LABELS, given, code, what)
    requested: bytes | None = labels["key"]
    if requested is not None and len(requested) != REQUESTED_KEY_BYTES:
        raise Refusal(code, f"{what}: a key has {REQUESTED_KEY_BYTES} bytes, not {len(requested)}")
    key = emission_key(
        effect.name, position, EmissionParts(cell, stamps.height, stamps.entropy, requested)
    )
    # Always attempt 1: a machine models its own retries, each an emission (spec 002, 10).
    parts = IntentParts(effect.name, UNPINNED, params, key, 1, cell)
    return MachineIntent(
        intent_id(parts),
        key,
        cell,
        EffectName(effect.name),
        params,
        labels["issuer_ref"],
        requested,
    )


def emission_key(effect: str, position: int, parts: EmissionParts) -> StepKey:
    """The step key of one emission, made as a flow's is."""
    # A machine has neither run nor steps. The turn takes the place of the run, so its nonce covers
    # the cell and the stamps: no two cells share a key, even stamped with the same entropy. The
    # effect takes the place of the step, and its position that of the item: the same params
    # emitted twice give two keys, and so two ids. Replay has the same stamps and makes them again.
    nonce = sha256(write(parts)).digest()[:ENTROPY_BYTES_MIN]
    tenant = parts.origin.tenant
    return step_key(StepKeyParts(tenant, nonce, "do", StepName(effect), position, 0))


def declared(known: Mapping[str, Schema], name: str, code: str, what: str) -> Schema:
    """The type of what the machine has declared; refused if it has not (spec 002, 3.1 rule 4)."""
    if name in known:
        return known[name]
    names = ", ".join(sorted(known)) or "nothing"
    raise Refusal(code, f"{what} is not declared; this machine declares: {names}")


def canonical(schema: Schema, value: object, code: str, what: str) -> Any:
    """The one form of a value, whatever its spelling; refused if its type does not admit it."""
    try:
        return schema.canonicalise(value)
    except TypeMismatch as trouble:
        raise Refusal(code, f"{what}: {trouble}") from None


def addressed(value: object, tenant: Tenant) -> Payload:
    """A payload of any size: `step_machine_bytes` limits the turn as a whole."""
    data = encode(value)
    return Payload(address_of(data, tenant), data)
