"""Machines: an order that is charged, as in spec 002, 9.1, and all that it is held to."""

from hashlib import sha256

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawlflow.kernel import machine
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.machine import Effect, Emitted, MachineSpec, MachineTurn, Outcome, step_machine
from pawlflow.model.codec import decode, encode, hash_of
from pawlflow.model.ids import CellId, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.journal import Stamps
from pawlflow.model.payload import Payload, PayloadError, verified
from pawlflow.model.records import read
from pawlflow.model.types import TypeMismatch, schema_of

ACME = Tenant("acme")
CELL = CellId(ACME, WorkflowName("order"), InstanceId("o-1"))
STAMPS = Stamps(TimeMs(1_700_000_000_123), 7, bytes(range(32)))
CHARGE, PAID = "payment/charge@1", "acme/OrderPaid@1"
INT, NAT, TEXT, UUID, UNIT = ({name: {}} for name in ("int", "nat", "text", "uuid", "unit"))
LOUD = "0B0E5CBB-6D5A-4A5E-9C57-3FD6B2D0B1AA"


TAGS, MAYBE = {"set": TEXT}, {"option": TEXT}
PC = {"variant": {"awaiting": UNIT, "done": UNIT, "failed": UNIT}}
STATE = schema_of({"record": {"pc": PC, "cents": NAT, "note": MAYBE}})
CREATION = {"record": {"cents": NAT, "tags": TAGS, "note": MAYBE}}
RECEIPT = {"record": {"status": TEXT, "charge": {"option": UUID}}}
CASES = {"created": CREATION, "receipt": RECEIPT, "again": UNIT, "forget": UNIT}
PARAMS = schema_of({"record": {"cents": NAT, "tags": TAGS, "memo": MAYBE}})
AWAITING = {"pc": {"$tag": "awaiting", "$value": {}}, "cents": 500, "note": None}
CREATED = {"created": {"cents": 500, "tags": ["b", "a", "b"]}}
FINE = Effect(CHARGE, {"cents": 5, "tags": []})


def order(state, event, ctx):
    """Charge on creation, finish on the receipt; changes what it was given, as users do."""
    tag, value = event["$tag"], event["$value"]
    if tag == "forget":
        return Outcome(None)
    if tag == "created" and state is None:
        state = {"pc": {"awaiting": {}}, "cents": value["cents"], "note": value.pop("note")}
        return Outcome(state, effects=[Effect(CHARGE, value, "payments")])
    if tag == "again" and state is not None:
        twin = Effect(CHARGE, {"cents": state["cents"], "tags": []})
        return Outcome(state, effects=[twin, twin])
    if tag == "receipt" and state is not None and state["pc"]["$tag"] == "awaiting":
        state["pc"] = {"done" if value["status"] == "ok" else "failed": None}
        return Outcome(state, events=[Emitted(PAID, {"at": ctx.now_ns, "by": value["charge"]})])
    return Outcome(state)


def spec(function=order, **changed):
    """The order machine, with another function or other types if wanted."""
    paid = schema_of({"record": {"at": {"time": {}}, "by": MAYBE}})
    types = {"state": STATE, "event": schema_of({"variant": CASES}), "key": None}
    declared = {"emits": {PAID: paid}, "effects": {CHARGE: PARAMS}}
    return MachineSpec(**{"name": "order", "function": function, **types, **declared, **changed})


def returning(*effects, state=None, events=()):
    """A machine that returns this, whatever happens."""
    return spec(lambda _state, _event, _ctx: Outcome(state, events, effects))


def watching(seen, what, **changed):
    """A machine that shows the state, event or context it was given, by number."""
    return spec(lambda *given: seen.append(given[what]) or Outcome(None), **changed)


def never_called(_state, _event, _ctx):
    raise AssertionError("called")


def run(of, value=CREATED, state=None, stamps=STAMPS, cell=CELL):
    """One turn."""
    return step_machine(of, state, value, stamps, cell, rules=1)


def accepted(*args, **kwargs) -> MachineTurn:
    """One turn that is not refused."""
    turn = run(*args, **kwargs)
    assert isinstance(turn, MachineTurn), turn
    return turn


def assert_refused(turn, code, detail=""):
    """It is a refusal with this code, and says this."""
    assert isinstance(turn, Rejected)
    assert (turn.code, detail in turn.detail) == (code, True), turn


def stored(value):
    """A state as the store gives it back."""
    made = Payload.of(value, ACME)
    return verified(made.addr, made.data, ACME)


def beside(turn):
    """The values of a turn by address, as a store would keep them."""
    output = turn.output
    values = [*(e.value for e in output.events), *(i.params for i in output.intents)]
    return {v.addr: v.data for v in [*values, output.state] if v is not None}


@pytest.mark.req("R1", "R49")
def test_an_order_is_charged_and_paid():
    """A missing cell is a state of None, from which the machine may create it."""
    first = accepted(spec(), CREATED).output
    second = accepted(spec(), {"receipt": {"status": "ok"}}, first.state).output

    assert first.state.value == AWAITING
    assert [(i.effect, i.issuer_ref) for i in first.intents] == [(CHARGE, "payments")]
    assert second.state.value == {**AWAITING, "pc": {"$tag": "done", "$value": {}}}
    paid = {"at": 1_700_000_000_123_000_000, "by": None}
    assert [(e.schema, e.value.value) for e in second.events] == [(PAID, paid)]


@pytest.mark.req("R50")
def test_a_state_of_none_deletes_the_cell():
    """Also where the state's type would admit null."""
    assert accepted(spec(), {"forget": None}, stored(AWAITING)).output.state is None
    nothing = msgspec.structs.replace(returning(), state=schema_of({"option": INT}))
    assert accepted(nothing, state=stored(3)).output.state is None


@pytest.mark.req("R13")
def test_the_context_is_the_stamps_and_nothing_else():
    """Time in nanoseconds, height, rules, the key, and entropy that gives away no step key."""
    accepted(watching(seen := [], 2))

    entropy = hash_of("pawl.machine-entropy.1", STAMPS.entropy)
    expected = {"now_ns": 1_700_000_000_123_000_000, "entropy": entropy, "height": 7}
    assert msgspec.structs.asdict(seen[0]) == expected | {"rules": 1, "key": None}
    assert_refused(run(spec(), stamps=Stamps(STAMPS.now, 7, b"short")), "entropy.short")


@pytest.mark.parametrize(
    ("key_type", "text", "expected"),
    [
        (TEXT, "o-1",             "o-1"),
        (NAT,  "42",              42),
        (INT,  "-42",             -42),
        (NAT,  "-42",             "key.invalid"),
        (NAT,  "042",             "key.invalid"),
        (NAT,  "forty",           "key.invalid"),
        (NAT,  "1" * 100,         "key.invalid"),
        (UUID, LOUD.lower(),      LOUD.lower()),
        (UUID, LOUD,              "key.invalid"),
    ],
)  # fmt: skip
def test_a_keyed_machine_knows_its_key(key_type, text, expected):
    """As its type knows it. A second spelling would be a second cell for one key."""
    keyed = watching(seen := [], 2, key=schema_of(key_type))
    turn = run(keyed, cell=CellId(ACME, WorkflowName("order"), InstanceId(text)))
    assert (turn.code if isinstance(turn, Rejected) else seen[0].key) == expected


@pytest.mark.req("R2")
@pytest.mark.parametrize(
    ("value", "detail"),
    [
        ({"created": {"cents": -1, "tags": []}},         "$.created.cents: expected nat from"),
        ({"created": {"cents": 1}},                      "$.created.tags: expected a value"),
        ({"created": {"cents": 1, "tags": [], "x": 1}},  "$.created.x: "),
        ({"shipped": {}},                                "$.shipped: "),
        (None,                                           "$: expected a variant, got null"),
    ],
)  # fmt: skip
def test_an_event_that_does_not_fit_is_refused(value, detail):
    """The function is not called, and there is no turn that could be journalled."""
    assert_refused(run(spec(never_called), value), "event.invalid", detail)


def test_an_event_too_large_for_a_payload_is_refused():
    """It could not be journalled."""
    large = {"created": {"cents": 1, "tags": ["x" * 16 * 1024 * 1024]}}
    assert_refused(run(spec(never_called), large), "payload.too_large")


@pytest.mark.req("R2", "R4")
@pytest.mark.parametrize(
    ("sweet", "plain"),
    [
        (CREATED, {"tags": ("a", "b"), "note": None, "cents": 500}),
        ({"receipt": {"charge": LOUD, "status": ""}}, {"status": "", "charge": LOUD.lower()}),
    ],
)  # fmt: skip
def test_sugar_in_an_event_or_receipt_makes_no_difference(sweet, plain):
    """They have one form in the journal, and the machine sees that form."""
    of = watching(seen := [], 1)
    [tag] = sweet
    first, second = accepted(of, sweet), accepted(of, {"$tag": tag, "$value": plain})

    assert first.event.data == second.event.data
    assert seen == [decode(first.event.data)] * 2


@pytest.mark.req("R3")
def test_sugar_in_params_gives_the_same_intent():
    """A set in another order, an absent option: the same address, key and id."""
    plain = Effect(CHARGE, {"cents": 5, "tags": ["a", "b"], "memo": None})
    sweet = Effect(CHARGE, {"tags": ("b", "a", "a"), "cents": 5})
    turns = [accepted(returning(effect)) for effect in (plain, sweet, FINE)]
    [one], [two], [other] = (turn.output.intents for turn in turns)
    assert one == two
    assert one.id != other.id


@pytest.mark.req("R24")
def test_equal_effects_of_one_turn_are_two_intents():
    """The position is part of the identity, and so are the turn and the requested key."""
    keyed = msgspec.structs.replace(FINE, key=b"k" * 32)
    later = Stamps(STAMPS.now, 8, STAMPS.entropy)
    intents = [
        *accepted(returning(FINE, FINE, keyed)).output.intents,
        *accepted(returning(FINE), stamps=later).output.intents,
        *accepted(returning(keyed)).output.intents,
    ]
    assert len({intent.id for intent in intents}) == len({intent.key for intent in intents}) == 5
    assert len({intent.params for intent in intents}) == 1
    assert [intent.requested for intent in intents] == [None, None, keyed.key, None, keyed.key]


@pytest.mark.req("R26")
def test_two_cells_never_share_an_intent():
    """Not even with equal params, stamped alike: the origin is part of key and id."""
    names = [(t, w, k) for t in ("acme", "zeta") for w in ("order", "claim") for k in ("1", "2")]
    intents = [accepted(spec(), cell=CellId(*name)).output.intents[0] for name in names]
    assert len({intent.id for intent in intents}) == len({intent.key for intent in intents}) == 8


@pytest.mark.req("R25")
def test_an_intent_is_the_hash_of_its_parts():
    """The documented forms, written by another encoder, and as bytes that may never move."""
    [intent] = accepted(spec()).output.intents

    def digest(*parts):
        return sha256(cbor2.dumps(list(parts), canonical=True)).digest()

    params = cbor2.dumps({"cents": 500, "tags": ["a", "b"], "memo": None}, canonical=True)
    addr = b"\x00" + digest("pawl.payload.1", "acme", params)
    emission = digest("pawl.emission.1", ["acme", "order", "o-1"], 7, STAMPS.entropy, None)
    raw = bytearray(digest("pawl.step-key.1", "acme", emission[:16], "do", CHARGE, 0, 0)[:16])
    raw[6], raw[8] = raw[6] & 0x0F | 0x80, raw[8] & 0x3F | 0x80
    parts = (CHARGE, b"", addr, bytes(raw), 1, ["acme", "order", "o-1"])
    assert (intent.params.addr, intent.key) == (addr, bytes(raw))
    assert intent.id == digest("pawl.intent.1", *parts)
    assert intent.key.hex() == "851d12e527c98a26b809bab50ac599ff"
    assert intent.id.hex() == "36eb773fb780998e157b6b2b15116ce21db5cb03e9d9dc4b585351fb0c31f5bb"


@pytest.mark.req("R21")
def test_only_what_a_machine_returns_is_an_effect():
    """The function is given no way to emit; each intent names the cell it came from."""
    assert accepted(spec(lambda *_: FINE and Outcome(None))).output.intents == ()
    assert [intent.origin for intent in accepted(spec()).output.intents] == [CELL]


@pytest.mark.req("R22")
@pytest.mark.parametrize(
    ("effect", "code", "detail"),
    [
        (Effect("card/void@1", {}),                     "undeclared", f"declares: {CHARGE}"),
        (Effect(CHARGE, {"cents": "5", "tags": []}),    "invalid",    "$.cents: expected nat"),
        (Effect(CHARGE, FINE.params, key=b"short"),     "invalid",    "32 bytes, not 5"),
        (Effect(CHARGE, FINE.params, issuer_ref=5),     "invalid",    "$.issuer_ref: expected"),
    ],
)  # fmt: skip
def test_an_effect_that_was_not_declared_so_is_refused(effect, code, detail):
    """All of a turn or none: not even the declared effect before it gets through."""
    assert_refused(run(returning(FINE, effect)), f"machine.effect_{code}", detail)


def test_a_state_or_event_that_was_not_declared_so_is_refused():
    """The same holds for all that a machine returns; one that declares nothing emits nothing."""
    silent = msgspec.structs.replace(returning(FINE), effects={})
    unknown, bad = Emitted("acme/Else@1", {}), Emitted(PAID, {"at": -1})

    assert_refused(run(silent), "machine.effect_undeclared", "this machine declares: nothing")
    assert_refused(run(returning(events=[unknown])), "machine.event_undeclared", PAID)
    assert_refused(run(returning(events=[bad])), "machine.event_invalid", "$.at: expected time")
    assert_refused(run(returning(state={"pc": 1})), "machine.state_invalid", "$.cents: expected a")


@pytest.mark.req("R15", "R24")
def test_effects_and_events_of_a_turn_are_limited():
    """64 and 256 are accepted, in the order returned; one more is refused, every time alike."""
    events = [Emitted(PAID, {"at": at}) for at in range(257)]
    most = accepted(returning(*[FINE] * 64, events=events[:-1])).output
    over = [run(returning(*[FINE] * 65)) for _ in range(2)]

    assert len({intent.id for intent in most.intents}) == 64
    assert [event.value.value["at"] for event in most.events] == list(range(256))
    assert_refused(over[0], "machine.too_many_effects", "65 effects in one turn, at most 64")
    assert over[0] == over[1]
    assert_refused(run(returning(events=events)), "machine.too_many_events", "257 events")


@pytest.mark.req("R15")
def test_the_bytes_of_a_turn_are_limited():
    """State, events and params count together, with the record that names them."""

    def padded(size):
        charge = Effect(CHARGE, {"cents": 1, "tags": [], "memo": "x" * 300_000})
        paid = Emitted(PAID, {"at": 1, "by": "x" * 300_000})
        return returning(charge, state={**AWAITING, "note": "x" * size}, events=[paid])

    turn = accepted(padded(100_000))
    room = 1024 * 1024 - len(turn.data) - sum(map(len, beside(turn).values()))

    assert isinstance(run(padded(100_000 + room)), MachineTurn)
    over = run(padded(100_000 + room + 1))
    assert_refused(over, "machine.output_too_large", "takes 1048577 bytes, at most 1048576")


@pytest.mark.req("R16")
def test_a_function_that_raises_changes_nothing():
    """The exception passes through to the caller; the same event may be stepped again."""

    def broken(state, event, _ctx):
        state["pc"]["$tag"] = "done"
        event["$value"].clear()
        STATE.canonicalise(None)  # raises what we would have caught, had we raised it

    before, event = stored(AWAITING), {"receipt": {"status": "ok"}}
    with pytest.raises(TypeMismatch):
        run(spec(broken), event, before)

    assert (before.value, event) == (AWAITING, {"receipt": {"status": "ok"}})
    assert accepted(spec(), event, before) == accepted(spec(), event, stored(AWAITING))


def test_what_is_no_fault_of_the_event_is_raised():
    """A forgotten `return`; a state that was erased, or is of another type."""
    with pytest.raises(TypeError, match="machine 'order' returned NoneType, not an Outcome"):
        run(spec(lambda _state, _event, _ctx: None))
    with pytest.raises(PayloadError, match="are gone"):
        run(spec(never_called), state=Payload(stored(AWAITING).addr, None))
    with pytest.raises(TypeMismatch):
        run(spec(never_called), state=stored({"other": 1}))


def test_a_state_gains_the_options_of_its_type():
    """A type may gain options while cells live: their states are read as having none."""
    older = {"pc": AWAITING["pc"], "cents": 500}
    assert accepted(spec(), {"again": None}, stored(older)).output.state.value == AWAITING


@pytest.mark.req("R1")
def test_what_the_function_changes_later_is_not_journalled():
    """Values given and returned may be kept and changed: the journal has its own."""
    kept = []

    def hoarder(state, event, _ctx):
        kept.extend((state, state["pc"], event["$value"], event))
        return Outcome(state, effects=[Effect(CHARGE, {"cents": 1, "tags": ["a"]})])

    before = stored(AWAITING)
    turn = accepted(spec(hoarder), state=before)
    for value in kept:
        value.clear()

    assert before.value == turn.output.state.value == AWAITING
    assert turn == accepted(spec(hoarder), state=before)
    assert turn.event.value["$value"]["tags"] == ["a", "b"]


CREATIONS = st.fixed_dictionaries(
    {"cents": st.integers(0, 2**64 - 1), "tags": st.lists(st.text(max_size=3), max_size=4)},
    optional={"note": st.none() | st.text(max_size=5)},
)
RECEIPTS = [{"receipt": {"status": "ok"}}, {"receipt": {"status": "error", "charge": LOUD}}]
OTHERS = [{"again": None}, {"$tag": "again", "$value": {}}, {"forget": {}}, {"created": {}}, 3.5]
EVENTS = CREATIONS.map(lambda value: {"created": value}) | st.sampled_from(RECEIPTS + OTHERS)


@pytest.mark.req("R1", "R2", "R49", "R50")
@given(st.lists(st.tuples(EVENTS, st.binary(min_size=16, max_size=64)), max_size=12))
def test_same_inputs_give_the_same_bytes(history):
    """Twice, and again with state and event read from their bytes: as replay does it."""
    state = reread = None
    for height, (value, entropy) in enumerate(history, 1):
        stamps = Stamps(TimeMs(height * 10), height, entropy)
        turn = run(spec(), value, state, stamps)
        assert run(spec(), value, state, stamps) == turn
        if isinstance(turn, Rejected):
            assert turn.code == "event.invalid"
            continue
        replayed = accepted(spec(), decode(turn.event.data), reread, stamps)
        assert (replayed, beside(replayed)) == (turn, beside(turn))
        assert encode(decode(turn.data)) == turn.data
        assert read(machine.MachineOutput, turn.data, beside(turn)) == turn.output
        state = turn.output.state
        reread = None if state is None else verified(state.addr, state.data, ACME)
