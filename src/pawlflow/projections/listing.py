"""Listing: instances as `ls --json` and `Pawl.list` give them, from their heads alone."""

from collections.abc import Sequence
from typing import Any

from pawlflow.projections.plain import time_told
from pawlflow.store.port import Head, Scalar, Store


def rows_of(store: Store, heads: Sequence[Head]) -> list[dict[str, Any]]:
    """A row for each instance, with what it may be found by."""
    found = store.attributes([head.ref for head in heads])
    return [row_of(head, found.get(head.ref, {})) for head in heads]


def row_of(head: Head, search: dict[str, Scalar]) -> dict[str, Any]:
    """An instance in a list."""
    return {
        "id": head.cell.key,
        "workflow": head.cell.workflow,
        "version": head.version,
        "tenant": head.cell.tenant,
        "state": head.state,
        "rollback": head.rollback,
        "started_at": time_told(head.started_at),
        "closed_at": time_told(head.closed_at),
        "created_at": time_told(head.created_at),
        "start_at": time_told(head.due_at if head.state == "created" else None),
        "search": search,
    }
