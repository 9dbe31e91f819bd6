"""The service grid computes for hours: `python -m examples.ores.services.grid`.

A batch is taken at once, and closed hours later; then whoever asked is told, by an event. Nothing
is kept open meanwhile. The machines are played here: a batch is over when its time is, and an hour
takes as many seconds as GRID_HOUR_S says.
"""

import asyncio
import logging
import os
import signal
from typing import Any

from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, PawlError, Terminal, Worker
from psycopg.types.json import Jsonb

log = logging.getLogger("grid")
BATCHES = """
CREATE TABLE IF NOT EXISTS batch (
  id bigserial PRIMARY KEY, trades jsonb NOT NULL, hours double precision NOT NULL,
  state text NOT NULL DEFAULT 'running', reason text, closes_at timestamptz NOT NULL,
  asked_by text NOT NULL, tenant text NOT NULL, told boolean NOT NULL DEFAULT false
)
"""
CLOSE = """
UPDATE batch SET state = CASE WHEN trades ? 'DIVERGENT' THEN 'failed' ELSE 'done' END,
  reason = CASE WHEN trades ? 'DIVERGENT' THEN 'DIVERGENT does not converge' END
WHERE state = 'running' AND closes_at <= now()
"""
UNTOLD = "SELECT * FROM batch WHERE state IN ('done', 'failed') AND NOT told ORDER BY id"
HOURS_MAX = 48
HOUR_S = float(os.environ.get("GRID_HOUR_S", "3600"))
LOOK_S = 0.1  # between two looks at what the machines have done
OVER = ("instance.unknown", "instance.closed")  # nobody waits for it any more
tables = Tables("grid", BATCHES).make()
worker = Worker(service="grid", memory=tables.url)


@worker.command("grid.v1.batch.submit")
def submit(trades: list[str], hours: float, ctx: Context) -> dict[str, int]:
    """Take a batch. It is computed after this has returned."""
    if hours > HOURS_MAX:
        raise Terminal(f"a batch of {hours} hours is more than the {HOURS_MAX} that the grid takes")

    def work(db: Db) -> dict[str, int]:
        query = (
            "INSERT INTO batch (trades, hours, closes_at, asked_by, tenant)"
            " VALUES (%s, %s, now() + make_interval(secs => %s), %s, %s) RETURNING id"
        )
        about = (Jsonb(trades), hours, hours * HOUR_S, ctx.instance, ctx.tenant)
        return {"batch": found(db, query, *about)["id"]}

    return tables.once(ctx, "batch submitted", work)


@worker.command("grid.v1.batch.cancel")
def cancel(batch: int, ctx: Context) -> None:
    """The batch is no longer computed; one that was stays as it is."""

    def work(db: Db) -> None:
        query = "UPDATE batch SET state = 'cancelled' WHERE id = %s AND state = 'running'"
        db.execute(query, (batch,))

    tables.once(ctx, f"batch {batch} cancelled", work)


def close_due() -> list[dict[str, Any]]:
    """Batches whose hours are over are closed; gives all that nobody was told of."""
    with tables.transaction() as db:
        db.execute(CLOSE)
        return db.execute(UNTOLD).fetchall()


def told_of(batch: dict[str, Any]) -> dict[str, Any]:
    """What is told of a closed batch."""
    done = batch["state"] == "done"
    figures = {name: len(name) * batch["hours"] for name in batch["trades"]} if done else {}
    about = {"batch": batch["id"], "state": batch["state"], "reason": batch["reason"]}
    return {**about, "figures": figures}


def note_told(batch: int) -> None:
    """It was told of. Killed before this, the grid tells again, and that changes nothing."""
    with tables.transaction() as db:
        db.execute("UPDATE batch SET told = true WHERE id = %s", (batch,))


async def tell(batch: dict[str, Any]) -> None:
    """Tell who asked that a batch is closed; without an answer, the next look tries again."""
    event = told_of(batch)
    try:
        await worker.signal(batch["asked_by"], "grid.batch-closed", event, tenant=batch["tenant"])
    except PawlError as error:
        if error.code not in OVER:
            log.warning("batch %s is told later: %s", batch["id"], error)
            return
    await asyncio.to_thread(note_told, batch["id"])


async def main() -> None:
    """Take commands, and let the machines run, until SIGTERM."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with worker:
        print("grid:", ", ".join(sorted(worker.executors)), flush=True)
        while not stopped.is_set():
            for batch in await asyncio.to_thread(close_due):
                await tell(batch)
            try:
                await asyncio.wait_for(stopped.wait(), LOOK_S)
            except TimeoutError:
                continue


if __name__ == "__main__":
    asyncio.run(main())
