"""Verify: the kernel must tell the journal. Every recorded input is decided again.

What it gives is compared byte by byte. No effect is ever carried out, because deciding has none.
"""

from collections.abc import Iterable, Mapping

import msgspec

from pawlflow.definition.plan import Plan
from pawlflow.kernel.draft import Rejected
from pawlflow.kernel.replay import read_turn
from pawlflow.kernel.step import Cell, new_cell, step
from pawlflow.model.ids import CellId, Digest
from pawlflow.model.journal import Turn
from pawlflow.model.payload import PayloadError


class Difference(msgspec.Struct, frozen=True):
    """The first place where a replay and its journal part."""

    turn: int
    where: str  # "chain", "number", "payload", "input", "events[2]", "intents", "sends", "bytes"
    recorded: str
    derived: str


def verify(
    cell: CellId,
    plan: Plan | None,
    journal: Iterable[tuple[bytes, Digest]],
    payloads: Mapping[bytes, bytes],
) -> Difference | None:
    """Decide everything again, under the recorded stamps and rules. None: it is all the same."""
    live = new_cell(cell, plan)
    for number, (data, sealed) in enumerate(journal, start=1):
        turn = read_turn(data, payloads)
        found = verify_turn(live, turn, data, number)
        if found is None and live.head != sealed:
            found = Difference(number, "chain", sealed.hex(), live.head.hex())
        if found is not None:
            return found
    return None


def verify_turn(live: Cell, turn: Turn, data: bytes, number: int) -> Difference | None:
    """Decide one recorded input again and compare."""
    if turn.number != number:
        return Difference(number, "number", str(turn.number), str(number))
    try:
        again = step(live, turn.input, turn.stamps, turn.rules)
    except PayloadError as error:
        return Difference(number, "payload", str(error), error.code)
    if isinstance(again, Rejected):
        return Difference(number, "input", "accepted", f"refused: {again.code} {again.detail}")
    if again.data != data:
        return first_difference(turn, again.turn)
    return None


def first_difference(recorded: Turn, derived: Turn) -> Difference:
    """Name the first part of a turn that differs."""
    number = recorded.number
    for i, (was, now) in enumerate(zip(recorded.events, derived.events, strict=False)):
        if was != now:
            return Difference(number, f"events[{i}]", repr(was), repr(now))
    if len(recorded.events) != len(derived.events):
        i = min(len(recorded.events), len(derived.events))
        left, right = recorded.events[i : i + 1], derived.events[i : i + 1]
        return Difference(number, f"events[{i}]", repr(left), repr(right))
    if recorded.intents != derived.intents:
        return Difference(number, "intents", repr(recorded.intents), repr(derived.intents))
    if recorded.sends != derived.sends:
        return Difference(number, "sends", repr(recorded.sends), repr(derived.sends))
    return Difference(number, "bytes", repr(recorded), repr(derived))
