"""The service refdata keeps parties: `pawl worker examples.ores.services.refdata`."""

import psycopg
from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, Terminal, Worker

PARTIES = "CREATE TABLE IF NOT EXISTS party (id bigserial PRIMARY KEY, name text UNIQUE NOT NULL)"
tables = Tables("refdata", PARTIES).make()
worker = Worker(service="refdata", memory=tables.url)


@worker.command("refdata.v1.party.save")
def save_party(name: str, ctx: Context) -> dict[str, int]:
    """A party of this name, unless there is one."""
    if not name:
        raise Terminal("a party has a name")

    def work(db: Db) -> dict[str, int]:
        try:
            made = found(db, "INSERT INTO party (name) VALUES (%s) RETURNING id", name)
        except psycopg.errors.UniqueViolation:
            raise Terminal(f"there is a party {name!r} already") from None
        return {"party": made["id"]}

    return tables.once(ctx, f"party {name} saved", work)


@worker.command("refdata.v1.party.delete")
def delete_party(party: int, ctx: Context) -> None:
    """The party with this id is gone, whether or not it was there."""

    def work(db: Db) -> None:
        db.execute("DELETE FROM party WHERE id = %s", (party,))

    tables.once(ctx, f"party {party} deleted", work)
