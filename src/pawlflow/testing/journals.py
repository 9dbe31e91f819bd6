"""Journal files of scenario runs: written, verified from their bytes alone, and told in words."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from pawlflow.definition.canonical import definition_bytes, hash_of_bytes
from pawlflow.definition.express import ExpressionError
from pawlflow.definition.fields import duration_text
from pawlflow.definition.plan import Plan, plan_of
from pawlflow.definition.shape import Workflow
from pawlflow.kernel.replay import apply_turn, read_turn
from pawlflow.kernel.state import Instance
from pawlflow.kernel.summary import instance_state
from pawlflow.kernel.system.kinds import KINDS
from pawlflow.model.beside import Beside
from pawlflow.model.budgets import Amount
from pawlflow.model.codec import CodecError
from pawlflow.model.failure import Failure
from pawlflow.model.ids import NO_ITEM, CellId, Digest
from pawlflow.model.inputs import StartInstance
from pawlflow.model.intents import Called
from pawlflow.model.journal import Turn, payloads_of, shard_genesis
from pawlflow.model.kin import Parent
from pawlflow.model.payload import Payload
from pawlflow.model.timed import Cron
from pawlflow.projections.budgets import amounts_text
from pawlflow.projections.journal_file import (
    DefinitionRecord,
    FrameRecord,
    Journal,
    JournalError,
    TurnEntry,
    read_journal,
    seal,
    write_journal,
)
from pawlflow.projections.publish import published
from pawlflow.projections.verify import Difference, verify
from pawlflow.testing.host import Host

SHARD = 0  # a scenario has one


def journal_of(host: Host, workflow: Workflow) -> bytes:
    """The journal of a run as a file: one frame for each commit."""
    records: list[DefinitionRecord | FrameRecord] = [DefinitionRecord(definition_bytes(workflow))]
    head = shard_genesis(SHARD)
    written: set[bytes] = set()
    for number, (data, sealed) in enumerate(host.journal, start=1):
        beside = [
            Beside(payload.addr, payload.data)
            for payload in payloads_of(read_turn(data, host.payloads))
            if payload.data is not None and payload.addr not in written
        ]
        unique = {kept.addr: kept for kept in beside}
        written |= unique.keys()
        entry = TurnEntry(host.id, data, tuple(unique.values()))
        frame = seal(SHARD, head, number, [(entry, sealed)])
        head = frame.hash
        records.append(frame)
    return write_journal(records)


class Verdict(msgspec.Struct, frozen=True):
    """What verifying a file gave: how much there was, and the first difference if there is one."""

    instances: int
    turns: int
    dispositions: int
    head: Digest
    cell: CellId | None = None
    difference: Difference | None = None


def verify_file(data: bytes) -> Verdict:
    """Read a file and decide every turn in it again. Raises JournalError for a broken file."""
    journal = read_journal(data)
    turns = sum(len(kept) for kept in journal.turns.values())
    counts = (len(journal.turns), turns, len(journal.dispositions), journal.head)
    for cell, plan in plans_of(journal):
        difference = verify(cell, plan, journal.turns[cell], journal.payloads)
        if difference is not None:
            return Verdict(*counts, cell, difference)
    return Verdict(*counts)


def plans_of(journal: Journal) -> Iterator[tuple[CellId, Plan | None]]:
    """Every instance with the plan it was started under; system cells have none."""
    definitions = {hash_of_bytes(data): data for data in journal.definitions}
    for cell, turns in journal.turns.items():
        for number, (data, _) in enumerate(turns, start=1):
            readable(data, journal, number)
        if cell.workflow in KINDS:
            yield cell, None
            continue
        first = read_turn(turns[0][0], journal.payloads).input
        if not isinstance(first, StartInstance) or first.definition not in definitions:
            raise JournalError("journal.definition", 1, f"no definition for {cell.key}")
        yield cell, plan_in(definitions[first.definition])


def plan_in(data: bytes) -> Plan:
    """The plan of a definition in the file. Raises JournalError if it is none."""
    try:
        return plan_of(data)
    except (CodecError, ExpressionError, msgspec.ValidationError) as error:
        raise JournalError("journal.definition", 0, str(error)) from error


def readable(data: bytes, journal: Journal, number: int) -> None:
    """The hashes may hold over bytes that are no turn."""
    try:
        read_turn(data, journal.payloads)
    except CodecError as error:
        raise JournalError("journal.turn", number, str(error)) from error


def tell_file(data: bytes) -> Iterator[str]:
    """A journal in words, turn by turn: the text beside each golden journal."""
    journal = read_journal(data)
    for cell, plan in plans_of(journal):
        yield from tell_instance(cell, plan, journal) if plan else tell_system(cell, journal)
    for disposed in journal.dispositions:
        yield ""
        yield f"{disposed.kind} {disposed.code}: {told(disposed.input)}"
    yield ""
    yield f"head {journal.head.hex()} at {journal.last}"


def tell_instance(cell: CellId, plan: Plan, journal: Journal) -> Iterator[str]:
    """An instance, from its definition to its state."""
    yield f"{plan.workflow} v{plan.version} {cell.tenant}/{cell.key}"
    yield f"definition {plan.definition.hex()}"
    state = Instance(cell, plan)
    for turn_data, sealed in journal.turns[cell]:
        yield ""
        yield from tell_turn(state, read_turn(turn_data, journal.payloads), sealed)
    yield ""
    yield f"{instance_state(state)}, rollback {state.rollback}, {state.turn} turns"


def tell_system(cell: CellId, journal: Journal) -> Iterator[str]:
    """A system cell, turn by turn."""
    yield f"{cell.tenant}/{cell.key}"
    for data, sealed in journal.turns[cell]:
        turn = read_turn(data, journal.payloads)
        yield ""
        yield f"turn {turn.number} at {time_text(turn.stamps.now)}"
        yield f"  < {told(turn.input)}"
        yield from (f"  {told(event)}" for event in turn.events)
        yield from (f"  -> {send.key} {told(send.input)}" for send in turn.sends)
        yield f"  # {sealed.hex()}"
    yield ""


def tell_turn(state: Instance, turn: Turn, sealed: Digest) -> Iterator[str]:
    """One turn: its input, what happened, what was asked for, and its hash."""
    yield f"turn {turn.number} at {time_text(turn.stamps.now)}"
    yield f"  < {told(turn.input)}"
    for event in apply_turn(state, turn):
        outside = ", ".join(published(state, event))
        yield f"  {told(event, state.plan)}" + (f" => {outside}" if outside else "")
    for intent in turn.intents:
        word = f"for event {intent.event}" if isinstance(intent, Called) else intent.reason
        yield f"  > {tag_of(intent)} {word} {intent.id.hex()[:16]}"
    yield from (f"  -> {send.key} {told(send.input)}" for send in turn.sends)
    yield f"  # {sealed.hex()}"


def told(record: Any, plan: Plan | None = None) -> str:
    """A record in words: its tag, the step it is about, and every field that says something."""
    words = [tag_of(record)]
    for field in msgspec.structs.fields(record):
        value = getattr(record, field.name)
        if plan is not None and field.name == "step":
            words += (
                [step_text(plan, value, getattr(record, "item", NO_ITEM))] if value >= 0 else []
            )
        elif plan is not None and field.name == "item":
            continue  # told with its step
        elif value is not None and value != field.default and (field.name, value) != NO_ITEM_TOLD:
            words.append(f"{field.name}={told_value(field.name, value)}")
    return " ".join(words)


def step_text(plan: Plan, step: int, item: int) -> str:
    """A step, or an item of it, as people call it."""
    return plan.steps[step].name + ("" if item == NO_ITEM else f"[{item}]")


NO_ITEM_TOLD: Final = ("item", NO_ITEM)
TIMES: Final = frozenset({"until", "retry_at", "at", "start_at", "next", "first", "last", "rest"})
A_DECADE_MS: Final = 315_360_000_000


def time_text(ms: int) -> str:
    """A time: of a scenario since its start, of a real run by the calendar."""
    if ms < A_DECADE_MS:
        return duration_text(ms)
    return datetime.fromtimestamp(ms / 1_000, tz=UTC).isoformat(timespec="milliseconds")


def told_value(name: str, value: Any) -> str:
    """A field's value; payloads show what they hold."""
    if name in TIMES:
        return time_text(value)
    if isinstance(value, Payload):
        return "erased" if value.data is None else msgspec.json.encode(value.value).decode()
    if isinstance(value, Failure):
        return f"{value.kind}/{value.code}/{told_value('detail', value.detail)}"
    if isinstance(value, Parent):
        return f"{value.workflow}/{value.key}/{value.step}#{value.attempt}"
    if isinstance(value, tuple) and value and isinstance(value[0], Amount):
        return amounts_text(value)
    if isinstance(value, Cron):
        return f'"{value.line}" {value.timezone} catchUp {value.catch_up}'
    if name == "due":
        return "[" + ", ".join(map(time_text, value)) + "]"
    if isinstance(value, bytes):
        return value.hex()[:16]
    return str(value)


def tag_of(record: Any) -> str:
    """The explicit tag of a record."""
    return str(type(record).__struct_config__.tag)
