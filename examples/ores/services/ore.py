"""The service ore imports files of trades: `pawl worker examples.ores.services.ore`."""

from typing import Any

from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, Terminal, Worker

IMPORTS = """
CREATE TABLE IF NOT EXISTS import (
  id bigserial PRIMARY KEY, file text NOT NULL, instance text NOT NULL UNIQUE,
  state text NOT NULL DEFAULT 'imported'
)
"""
TRADES = """
CREATE TABLE IF NOT EXISTS trade (
  id bigserial PRIMARY KEY, import bigint NOT NULL, name text NOT NULL, notional bigint NOT NULL
)
"""
tables = Tables("ore", IMPORTS, TRADES).make()
worker = Worker(service="ore", memory=tables.url)


@worker.command("ore.v1.import.execute")
def execute(file: str, trades: list[dict[str, Any]], ctx: Context) -> dict[str, Any]:
    """Save the trades of a file. What cannot be saved is left out, and said so."""
    fine = [each for each in trades if isinstance(each.get("notional"), int)]
    for each in trades:
        if each not in fine:
            ctx.warn(f"{each.get('name')} has no notional: left out")
    if not fine:
        raise Terminal(f"0 of {len(trades)} trades of {file} can be saved")

    def work(db: Db) -> dict[str, Any]:
        query = (
            "INSERT INTO import (file, instance, state) VALUES (%s, %s, 'imported') RETURNING id"
        )
        made = found(db, query, file, ctx.instance)["id"]
        query = "INSERT INTO trade (import, name, notional) VALUES (%s, %s, %s) RETURNING id"
        saved = [found(db, query, made, each["name"], each["notional"])["id"] for each in fine]
        return {"import": made, "saved": saved, "left_out": len(trades) - len(fine)}

    return tables.once(ctx, f"{file} imported", work)


@worker.command("ore.v1.import.verify")
def verify(saved: list[int], total: int) -> dict[str, int]:
    """Do the saved trades add up to what the file says? Nothing is changed."""
    with tables.transaction() as db:
        query = "SELECT coalesce(sum(notional), 0)::bigint AS sum FROM trade WHERE id = ANY(%s)"
        is_now = found(db, query, saved)["sum"]
    if is_now != total:
        raise Terminal(f"the trades add up to {is_now}, and the file says {total}")
    return {"total": is_now}


@worker.command("ore.v1.import.rollback")
def rollback(imported: int, saved: list[int], ctx: Context) -> dict[str, int]:
    """The trades with these ids are gone; that there was an import stays."""

    def work(db: Db) -> dict[str, int]:
        gone = db.execute("DELETE FROM trade WHERE id = ANY(%s)", (saved,)).rowcount
        db.execute("UPDATE import SET state = 'rolled back' WHERE id = %s", (imported,))
        return {"deleted": gone}

    return tables.once(ctx, f"import {imported} rolled back", work)
