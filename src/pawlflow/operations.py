"""Operations: finding instances by what they say of themselves, and one act on many of them."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

from msgspec.structs import replace

from pawlflow import batches, requests
from pawlflow.acts import Door, refusal
from pawlflow.engine.clock import Clock, time_ordered_id
from pawlflow.kernel.draft import Rejected
from pawlflow.model.batches import BatchVerb, batch_cell
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.projections.listing import rows_of
from pawlflow.store.port import Address, Store
from pawlflow.trouble import NotFound
from pawlflow.where import filter_of

PAGE: Final = 100
PATIENCE: Final = 4  # so many times as long as a look takes is waited before the next

Where = str | Sequence[str]


class Engine(Protocol):
    """What is needed of the engine in this process."""

    tenant: Tenant
    driver: Any  # a Door
    reader: Store

    @property
    def clock(self) -> Clock:
        """Time and chance."""
        ...

    async def changed(self, address: Address, turn: int) -> None:
        """Wait until a cell has more turns than these."""
        ...


class Operations:
    """What people who look after many instances do."""

    def list(  # what a list may be narrowed by
        self: Engine,
        where: Where = (),
        *,
        state: Where = (),
        workflow: str | None = None,
        limit: int = PAGE,
        after: str | None = None,
        tenant: str | None = None,
    ) -> Sequence[dict[str, Any]]:
        """Instances as `pawl ls --json` gives them, newest first; `after` is the last one's id.

        Raises PawlError for a filter that cannot be used.
        """
        whose, now = requests.whose(tenant, self.tenant), self.clock.now()
        states, texts = many(state), many(where)
        wanted = filter_of(self.reader, whose, texts, now=now, states=states, workflow=workflow)
        wanted = replace(wanted, limit=limit)
        if after is not None:
            address = (whose, InstanceId(after))
            last = self.reader.load([address]).get(address)
            if last is None:
                raise NotFound("instance.unknown", f"no instance {after!r}")
            wanted = replace(wanted, before=(last.head.created_at, last.head.ref))
        return rows_of(self.reader, self.reader.instances(wanted))

    async def batch(  # noqa: PLR0913  # what an act on many consists of
        self: Engine,
        verb: BatchVerb,
        *,
        where: Where,
        by: str,
        comment: str | None = None,
        step: str = "",
        event: str = "",
        data: Any = requests.NOT_GIVEN,
        tenant: str | None = None,
    ) -> dict[str, Any]:
        """One act on all open instances that a filter means now, followed to its end.

        `cancel`, `pause`, `unpause`, `signal` with an `event` and `data`, `resume` and `retry` of
        every escalated step, or of the one named `step`. Gives what `pawl batches show --json`
        gives. Leaving early stops nothing: the batch is in the journal.
        """
        whose, now, texts = requests.whose(tenant, self.tenant), self.clock.now(), many(where)
        about = {"comment": comment, "step": step, "event": event, "given": data}
        asked = batches.Operation(verb=verb, by=by, **about)
        wanted = filter_of(self.reader, whose, texts, now=now)
        targets = batches.targets_of(self.reader, wanted, asked)
        id_, door = time_ordered_id(now, self.clock.entropy()), self.driver
        for each in batches.inputs_of(asked, batches.where_told(texts), targets, whose):
            await hand_in(door, whose, id_, each)
        return await followed(self, whose, id_)


async def hand_in(door: Door, tenant: Tenant, id_: str, incoming: Any) -> None:
    """One part of a batch, in order."""
    outcome = await door.submit(batch_cell(tenant, id_), incoming)
    if isinstance(outcome, Rejected):
        raise refusal(outcome)


async def followed(engine: Engine, tenant: Tenant, id_: str) -> dict[str, Any]:
    """What became of a batch, once every instance has answered."""
    cell, loop = batch_cell(tenant, id_), asyncio.get_running_loop()
    while True:
        began = loop.time()
        batch = batches.batch_of(engine.reader, tenant, id_)
        if batch.closed is not None:
            return batches.told(batch) | {"results": batches.results_of(batch)}
        await asyncio.sleep(PATIENCE * (loop.time() - began))
        await engine.changed((tenant, cell.key), batch.turn)


def many(given: Where) -> Sequence[str]:
    """One text, or several."""
    return (given,) if isinstance(given, str) else given
