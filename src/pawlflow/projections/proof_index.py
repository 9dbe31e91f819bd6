"""Proof of what is found by an index: everything that must lead to a cell does."""

from collections.abc import Iterator

from pawlflow.kernel.heads import found_by
from pawlflow.kernel.state import Instance, State
from pawlflow.kernel.system.retention import expiry_of
from pawlflow.store.port import SHARDS, Filter, Head, Store, Term


def lost_from(store: Store, head: Head, state: State, *, held: bool) -> list[str]:
    """The indexes that do not lead to a cell, or say something else of it."""
    shards, before = [head.ref % SHARDS], head.ref - 1
    lost = []
    if head.due_at is not None and store.due(shards, (head.due_at, before), 1) != [head]:
        lost.append("deadlines")
    if head.calls and store.in_flight(shards, before, 1) != [head]:
        lost.append("calls in flight")
    if isinstance(state, Instance):
        lost += lost_from_lists(store, head, state)
        until = expiry_of(state)
        if until and store.expiring(shards, (until, before), 1) != [(until, head)]:
            lost.append("those that are kept for a time")
    elif head not in store.systems(head.cell.tenant, head.cell.workflow, f"{head.cell.key}\0", 1):
        lost.append("system cells")
    if head.quarantined != held:
        lost.append("quarantined" if held else "those that go on")
    return lost


def lost_from_lists(store: Store, head: Head, state: Instance) -> Iterator[str]:
    """The lists that do not have an instance where its workflow and its attributes say."""
    tenant, place = head.cell.tenant, (head.created_at, head.ref + 1)
    like = Filter(tenant=tenant, workflow=head.cell.workflow, before=place, limit=1)
    if store.instances(like) != [head]:
        yield "instances"
    values = found_by(state)
    if store.attributes([head.ref]).get(head.ref, {}) != values:
        yield "those with its attributes"
    for name, value in values.items():
        equal = Term(name, "==", (value,))
        if store.instances(Filter(tenant=tenant, where=[[equal]], before=place, limit=1)) != [head]:
            yield f"those with its {name}"
