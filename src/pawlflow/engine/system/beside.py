"""Beside the turns of a cell: what was done about its letters, and which late news is known.

A closed cell takes no more turns, and one that never was has none. So what must happen only once
to them is remembered by the entries that lie beside. They are read when one of these inputs comes,
which is rare, and kept with the live cell.
"""

from collections.abc import Sequence
from typing import Final

from pawlflow.model.inputs import Input, Receipt
from pawlflow.model.journal import Disposition
from pawlflow.model.operate import DiscardInput, RedriveInput
from pawlflow.model.records import read
from pawlflow.store.port import Address, Store

LOOKED_MAX: Final = 10_000  # entries of a tenant, newest first: as many as `pawl dlq` looks through


def mark_of(kind: str, code: str, incoming: Input) -> str:
    """What is to be known again by this entry; nothing for most."""
    if isinstance(incoming, RedriveInput | DiscardInput):
        return f"letter {incoming.entry}" if kind != "rejected" else ""
    return f"{code} {incoming.key.hex()}" if isinstance(incoming, Receipt) else ""


def marks_beside(store: Store, cells: Sequence[Address]) -> dict[Address, set[str]]:
    """The marks of these cells, with one look for each tenant."""
    found: dict[Address, set[str]] = {address: set() for address in cells}
    for tenant in dict.fromkeys(tenant for tenant, _ in cells):
        for each in store.dispositions(tenant, LOOKED_MAX):
            disposed: Disposition = read(Disposition, each.entry.data, {})
            marks = found.get((tenant, disposed.cell.key))
            if marks is not None:
                marks.add(mark_of(disposed.kind, disposed.code, disposed.input))
    return found
