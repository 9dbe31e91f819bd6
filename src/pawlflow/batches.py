"""Batches as callers see them: whom a filter means, what is asked of them, what became of it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from pawlflow import requests
from pawlflow.kernel.system.batch import GONE, TARGETS_MAX, Batch
from pawlflow.living import system_of
from pawlflow.model.batches import BATCH, AddTargets, BatchVerb, OpenBatch, batch_key
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.model.inputs import Input
from pawlflow.model.payload import Payload
from pawlflow.projections.plain import time_told, value_of
from pawlflow.store.port import Filter, Head, Ref, Store
from pawlflow.trouble import NotFound, Refused

PAGE: Final = 500  # targets in one input: some ten kilobytes
LOOK: Final = 20_000  # instances looked up at a time
OPEN: Final = ("created", "queued", "running", "waiting", "escalated", "compensating")


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants of many instances, and why."""

    verb: BatchVerb
    by: str
    comment: str | None = None
    step: str = ""  # to be resumed or tried again; empty: all that are escalated
    event: str = ""  # of a signal
    given: Any = requests.NOT_GIVEN  # the data of a signal; or the input of another try

    @property
    def act(self) -> str:
        """In words."""
        return " ".join(filter(None, (self.verb, self.step or self.event)))


# Whom it is for


def where_told(
    where: Sequence[str], states: Sequence[str] = (), workflow: str | None = None
) -> str:
    """A filter as one text, which is a filter again."""
    parts = [f"({each})" if len(where) > 1 else each for each in where]
    if states:
        parts.append(f"state in {json.dumps(list(states))}")
    if workflow is not None:
        parts.append(f"workflow == {json.dumps(workflow)}")
    return " && ".join(parts)


def targets_of(store: Store, wanted: Filter, asked: Operation) -> list[Head]:
    """Whom a filter means now, newest first. Raises Refused if they are too many.

    What is over can only refuse, and what is not escalated cannot go on: unless a state is asked
    for by name, they are not meant.
    """
    page = replace(wanted, limit=LOOK, states=wanted.states or OPEN)
    stuck: set[Ref] | None = None
    if asked.verb in ("resume", "retry"):
        reviews = store.reviews(wanted.tenant)
        named = (each for each in reviews if asked.step in ("", each.step))
        stuck = {each.ref for each in named if each.kind == "escalation"}
    found: list[Head] = []
    while heads := store.instances(page):
        found += [head for head in heads if stuck is None or head.ref in stuck]
        if len(found) > TARGETS_MAX:
            message = f"the filter means more than {TARGETS_MAX:,} instances: narrow it, and repeat"
            raise Refused("batch.too_large", message)
        page = replace(page, before=(heads[-1].created_at, heads[-1].ref))
    return found


def inputs_of(asked: Operation, where: str, targets: Sequence[Head], tenant: Tenant) -> list[Input]:
    """The request, and whom it is for, page by page; nothing happens before the last."""
    given = None if asked.given is requests.NOT_GIVEN else Payload.of(asked.given, tenant)
    if asked.verb == "signal":
        requests.event_name(asked.event)
        given = Payload.of({}, tenant) if given is None else given
    words = requests.words(asked.comment, tenant)
    opening = OpenBatch(asked.verb, where, asked.by, words, asked.step, asked.event, given)
    return [opening, *pages_of(targets, tenant)]


def pages_of(targets: Sequence[Head], tenant: Tenant) -> Iterator[AddTargets]:
    """The targets as inputs; one for nobody too, so that every batch comes to its end."""
    for at in range(0, max(len(targets), 1), PAGE):
        page = [[head.cell.workflow, head.cell.key] for head in targets[at : at + PAGE]]
        yield AddTargets(Payload.of(page, tenant), at + PAGE >= len(targets))


# What became of it


def batch_of(store: Store, tenant: Tenant, id_: str) -> Batch:
    """A batch as it is. Raises NotFound."""
    found = system_of(store, (tenant, batch_key(id_)), Batch)
    if found is None:
        raise NotFound(
            "batch.unknown", f"no batch {id_!r} of tenant {tenant!r}: see pawl batches ls"
        )
    return found


def batches_of(store: Store, tenant: Tenant, limit: int, before: str = "") -> list[Batch]:
    """The batches of a tenant, newest first."""
    below = batch_key(before) if before else ""
    heads = store.systems(tenant, BATCH, below, limit)
    return [batch_of(store, tenant, head.cell.key.removeprefix(batch_key(""))) for head in heads]


def told(batch: Batch) -> dict[str, Any]:
    """A batch in a list: who did what to how many, and how far it is."""
    request = batch.request
    assert request is not None, "a batch begins with its request"
    done, refused, gone = batch.counts()
    asked = Operation(verb=request.verb, by=request.by, step=request.step, event=request.event)
    return {
        "id": batch.id,
        "act": asked.act,
        "state": state_of(batch),
        "where": request.where,
        "by": request.by,
        "comment": value_of(request.comment),
        "matched": len(batch.line),
        "done": done,
        "refused": refused,
        "gone": gone,
        "pending": len(batch.line) - batch.answered,
        "opened_at": time_told(batch.opened),
        "closed_at": time_told(batch.closed),
    }


def state_of(batch: Batch) -> str:
    """How far a batch is."""
    if batch.closed is not None:
        return "closed"
    return "running" if batch.complete else "open"


def results_of(batch: Batch) -> list[dict[str, Any]]:
    """What became of the act on each instance, in the order of the targets."""
    return [result_of(key, batch.codes[key]) for _, key in batch.line]


def result_of(key: InstanceId, code: str | None) -> dict[str, Any]:
    """One of them."""
    names = {None: "pending", "": "done", GONE: "gone"}
    return {"id": key, "result": names.get(code, "refused"), "code": code or None}
