"""Dead letters: inputs that broke their cell or were refused, read from the journal."""

from collections.abc import Mapping
from shlex import quote
from typing import Any, Final

import msgspec

from pawlflow.cli.lines import clean
from pawlflow.engine.places import mail_of
from pawlflow.model.ids import Tenant
from pawlflow.model.inputs import StartInstance
from pawlflow.model.journal import Disposition, payloads_of
from pawlflow.model.payload import Payload
from pawlflow.model.records import read
from pawlflow.projections.plain import time_told, value_of
from pawlflow.projections.reading import beside_of
from pawlflow.projections.trace import tag_of
from pawlflow.store.port import Found, Store, position

READ_MAX: Final = 10_000  # dispositions looked through, newest first


class Letter(msgspec.Struct, frozen=True):
    """An input that became no turn."""

    number: int  # its place in the store
    disposed: Disposition


def letters_in(store: Store, tenant: Tenant) -> list[Letter]:
    """Every disposition of a tenant, newest first."""
    found = store.dispositions(tenant, READ_MAX)
    blobs: dict[str, Mapping[bytes, bytes]] = {}
    return [letter_of(store, each, blobs) for each in found]


def letter_of(store: Store, found: Found, blobs: dict[str, Mapping[bytes, bytes]]) -> Letter:
    """A disposition with its payloads: beside it, or with the cell if they are large."""
    plain: Disposition = read(Disposition, found.entry.data, {})
    cell = plain.cell
    if cell.key not in blobs:
        image = store.load([(cell.tenant, cell.key)]).get((cell.tenant, cell.key))
        blobs[cell.key] = {} if image is None else image.blobs
    payloads = {**blobs[cell.key], **beside_of([found.entry], cell.tenant)}
    number = position(found.shard, found.seq)
    return Letter(number, read(Disposition, found.entry.data, payloads))


def resolved_in(letters: list[Letter]) -> dict[int, str]:
    """The letters that somebody has dealt with, and how."""
    found: dict[int, str] = {}
    for each in letters:
        if each.disposed.kind in ("redriven", "discarded"):
            detail = value_of(each.disposed.detail) or {}
            found[detail.get("entry", -1)] = each.disposed.kind
    return found


def open_letters(letters: list[Letter], *, everything: bool) -> list[Letter]:
    """The dead letters that nobody has dealt with; with everything, refusals and the rest too."""
    if everything:
        return letters
    done = resolved_in(letters)
    return [each for each in letters if each.disposed.kind == "dead" and each.number not in done]


def letter_told(letter: Letter, done: Mapping[int, str]) -> dict[str, Any]:
    """A letter as --json has it."""
    disposed = letter.disposed
    return {
        "number": letter.number,
        "instance": disposed.cell.key,
        "workflow": disposed.cell.workflow,
        "kind": disposed.kind,
        "code": disposed.code,
        "detail": value_of(disposed.detail),
        "at": time_told(disposed.at),
        "input": input_told(disposed),
        "resolved": done.get(letter.number),
        "hints": hints_for(letter) if letter.number not in done else [],
    }


def hints_for(letter: Letter) -> list[str]:
    """What may be done about a letter that nobody has dealt with, the most useful first."""
    disposed, number = letter.disposed, letter.number
    discard = f"pawl dlq discard {number}"
    if disposed.kind != "dead":
        return []
    start = disposed.input if isinstance(disposed.input, StartInstance) else None
    if start is not None and start.parent is not None:  # which was told that it failed
        return [f"pawl retry {start.parent.key} {quote(start.parent.step)} --by NAME", discard]
    if start is not None and disposed.code != "cell.raised":
        # It runs under the definition it was made for, and would be refused again.
        return [f"pawl explain {disposed.code}", discard]
    return [f"pawl dlq redrive {number}", discard]


def input_told(disposed: Disposition) -> dict[str, Any]:
    """The input, in plain values."""
    told: dict[str, Any] = {"kind": tag_of(disposed.input)}
    for field in disposed.input.__struct_fields__:
        value = getattr(disposed.input, field)
        if field != "batch" or value:  # most acts are part of none
            told[field] = plain(value)
    return told


def plain(value: Any) -> Any:
    """One field in plain values."""
    if isinstance(value, Payload):
        return value_of(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    return value


def original_of(letter: Letter) -> Payload:
    """The input and what lay beside it, as they were: what is sent once more."""
    disposed = letter.disposed
    mail = mail_of(disposed.cell, disposed.input)
    return Payload.of([mail.input, mail.beside], disposed.cell.tenant)


def is_whole(letter: Letter) -> bool:
    """Can it be sent once more? Not if a value of it was erased."""
    return all(payload.data is not None for payload in payloads_of(letter.disposed.input))


def summary_of(told: Mapping[str, Any]) -> str:
    """The last line of what went wrong."""
    detail = told["detail"]
    lines = detail.strip().splitlines() if isinstance(detail, str) else [str(detail or "")]
    return clean(lines[-1] if lines else "")
