"""Golden journals: what was once journalled verifies for ever."""

from typing import get_args

import pytest

from pawlflow.definition.canonical import definition_bytes, definition_hash
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.step import Stepped
from pawlflow.model.beside import Beside
from pawlflow.model.events import Event
from pawlflow.model.ids import CellId, Digest, InstanceId, Tenant, TimeMs, WorkflowName
from pawlflow.model.inputs import Input, Tick
from pawlflow.model.intents import IntentParts, StepKeyParts, intent_id, step_key
from pawlflow.model.journal import (
    Disposition,
    disposition_hash,
    frame_of,
    instance_genesis,
    merkle_root,
    payloads_of,
    shard_genesis,
    turn_hash,
)
from pawlflow.model.payload import Payload
from pawlflow.model.records import write
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    DispositionEntry,
    TurnEntry,
    read_journal,
    seal,
    write_journal,
)
from pawlflow.testing.journals import tell_file
from tests.golden_kit import FOLDER
from tests.kernel.golden_runs import check_bytes, check_run
from tests.kernel.support import Live, payload, workflow

SHOWN = [
    "a-cancel-under-compensate-undoes-and-ends-cancelled",
    "a-completed-run-publishes-its-life-in-order",
    "a-failed-undo-stops-the-others",
    "a-human-may-reassign-the-step",
    "a-human-may-retry-with-other-input",
    "a-late-success-during-compensation-is-undone",
    "a-late-success-from-before-a-correction-is-undone",
    "a-quorum-needs-that-many-different-people",
    "a-rejected-gate-cancels-by-default",
    "a-retry-that-falls-due-in-a-pause-starts-with-unpause",
    "a-validation-failure-is-corrected-with-feedback",
    "a-wait-takes-the-first-signal-that-matches",
    "abort-cancels-what-runs-and-starts-nothing-new",
    "an-emitted-event-reaches-every-open-wait-it-matches",
    "an-evaluation-error-fails-the-step-for-good",
    "an-undo-may-carry-its-own-retry-policy",
    "attempts-are-max-retries-plus-one",
    "on-reject-fail-applies-the-gates-on-failure",
    "require-success-cascades-along-a-chain",
    "resume-asks-an-expired-gate-again-with-a-fresh-expiry",
    "skip-goes-on-without-the-result",
    "the-workflow-timeout-compensates-if-that-is-the-policy",
]
FOR_THE_SHARD = {"dead.redrive", "dead.discard", "review.settle", "instance.remove"}  # never a turn
ORDERS = CellId(Tenant("acme"), WorkflowName("orders"), InstanceId("o-1"))


@pytest.mark.req("R223", "R11")
@pytest.mark.parametrize("name", [*SHOWN, "two-tenants-in-one-frame"])
def test_a_golden_journal_verifies_from_its_bytes_alone(name):
    """Chains, roots and addresses hold, and every turn is decided again to the same bytes."""
    data = check_bytes(name)
    told = (FOLDER / "journals" / f"{name}.txt").read_text()
    assert "\n".join(tell_file(data)) + "\n" == told


@pytest.mark.parametrize("name", SHOWN)
def test_a_run_still_gives_its_golden_journal(name, golden):
    """A change of behaviour must be guarded by `rules`; then this journal stays as it is."""
    check_run(name, golden, rules=1)


def test_every_event_and_input_is_in_a_golden_journal():
    """What no golden journal holds could change unseen."""
    kinds = {tag_of(kind) for kind in (*get_args(Event), *get_args(Input))}
    assert kinds - tags_of_golden_journals() == FOR_THE_SHARD


def tags_of_golden_journals() -> set[str]:
    """The tags of every input and event that a golden journal holds."""
    found: set[str] = set()
    for path in sorted((FOLDER / "journals").glob("*.journal")):
        journal = read_journal(path.read_bytes())
        for data, _ in (turn for turns in journal.turns.values() for turn in turns):
            turn = read_turn(data, journal.payloads)
            records = [turn.input, *turn.events, *(send.input for send in turn.sends)]
            found |= {tag_of(type(record)) for record in records}
    return found


def tag_of(kind: type) -> str:
    return str(kind.__struct_config__.tag)


def two_tenants() -> bytes:
    """A frame with turns of two tenants and a disposition, and one more frame behind it."""
    shape = workflow("timeout: 1h\nsteps:\n  - {name: a, run: x.a, timeout: 1m}")
    one, two = Live(shape, rules=1), Live(shape, tenant=Tenant("other"), rules=1)
    entries = [entry_of(live, live.start({"n": 1})) for live in (one, two)]
    refused = Disposition(
        one.id, "rejected", "timer.not_due", payload({"key": "one"}), Tick(), TimeMs(5)
    )
    disposed = write(refused)
    beside = (Beside(refused.detail.addr, refused.detail.data or b""),)
    entries.append((DispositionEntry(one.id, disposed, beside), disposition_hash(disposed)))
    first = seal(7, shard_genesis(7), 1, entries)
    second = seal(7, first.hash, 4, [entry_of(one, one.ok("a", "done"))])
    return write_journal([DefinitionRecord(definition_bytes(shape)), first, second])


def entry_of(live: Live, stepped: object) -> tuple[TurnEntry, Digest]:
    """A turn as a frame holds it."""
    assert isinstance(stepped, Stepped)
    beside = {p.addr: Beside(p.addr, p.data or b"") for p in payloads_of(stepped.turn)}
    return TurnEntry(live.id, stepped.data, tuple(beside.values())), stepped.hash


@pytest.mark.req("R26", "R154")
def test_frames_hold_turns_of_several_tenants_and_dispositions(golden):
    """One chain per shard, one per instance, and refusals are kept beside the turns."""
    data = two_tenants()

    golden("journals/two-tenants-in-one-frame.journal", data)
    golden("journals/two-tenants-in-one-frame.txt", ("\n".join(tell_file(data)) + "\n").encode())
    journal = read_journal(data)
    assert len(journal.turns) == 2
    assert [d.code for d in journal.dispositions] == ["timer.not_due"]


@pytest.mark.req("R25", "R6")
def test_identities_are_what_they_always_were(golden):
    """Addresses, keys, intent ids, turn and frame hashes, from fixed values."""
    value = Payload.of({"amount": 12, "to": "ann"}, ORDERS.tenant)
    key = step_key(StepKeyParts(ORDERS.tenant, bytes(16), "do", "charge", -1, 1))
    undo = step_key(StepKeyParts(ORDERS.tenant, bytes(16), "undo", "charge", 3, 2))
    call = intent_id(IntentParts("pay.charge", b"", value, key, 1, ORDERS))
    leaves = [Digest(bytes([n]) * 32) for n in range(5)]
    frame = frame_of(3, shard_genesis(3), 10, leaves)
    lines = [
        f"payload {{'amount': 12, 'to': 'ann'}} of acme: {value.addr.hex()}",
        f"step key acme, nonce 00*16, do charge -1 1: {key.hex()}",
        f"step key acme, nonce 00*16, undo charge 3 2: {undo.hex()}",
        f"intent pay.charge, that payload, the first key, attempt 1, orders/o-1: {call.hex()}",
        f"instance acme/orders/o-1: {instance_genesis(ORDERS).hex()}",
        f"turn behind it, bytes 8301f6f5: "
        f"{turn_hash(instance_genesis(ORDERS), bytes.fromhex('8301f6f5')).hex()}",
        f"disposition, bytes 80: {disposition_hash(bytes.fromhex('80')).hex()}",
        f"shard 3: {shard_genesis(3).hex()}",
        *(f"root of {n} leaves: {merkle_root(leaves[:n]).hex()}" for n in range(6)),
        f"frame 10 to 14 over five leaves: {frame.hash.hex()}",
        f"definition: {definition_hash(workflow('steps: [{name: a, sleep: 1s}]')).hex()}",
    ]
    golden("identities.txt", ("\n".join(lines) + "\n").encode())
