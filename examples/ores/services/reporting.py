"""The service reporting prepares reports and keeps them.

Run it with `pawl worker examples.ores.services.reporting`.
"""

from typing import Any

import psycopg
from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, Terminal, Worker
from psycopg.types.json import Jsonb

REPORTS = """
CREATE TABLE IF NOT EXISTS report (
  id bigserial PRIMARY KEY, title text NOT NULL, trades jsonb NOT NULL, state text NOT NULL,
  figures jsonb
)
"""
TITLES = "CREATE UNIQUE INDEX IF NOT EXISTS title ON report (title) WHERE state = 'final'"
PACKAGES = "CREATE TABLE IF NOT EXISTS package (id bigserial PRIMARY KEY, report bigint NOT NULL)"
TRADES_MAX = 1_000  # in one package
tables = Tables("reporting", REPORTS, TITLES, PACKAGES).make()
worker = Worker(service="reporting", memory=tables.url)


@worker.command("reporting.v1.inputs.gather")
def gather(title: str, trades: list[str], ctx: Context) -> dict[str, int]:
    """Keep what the report is about."""
    if not trades:
        raise Terminal("a report without trades says nothing")

    def work(db: Db) -> dict[str, int]:
        query = "INSERT INTO report (title, trades, state) VALUES (%s, %s, 'begun') RETURNING id"
        return {"report": found(db, query, title, Jsonb(trades))["id"]}

    return tables.once(ctx, f"inputs of {title} gathered", work)


@worker.command("reporting.v1.package.prepare")
def prepare(report: int, ctx: Context) -> dict[str, int]:
    """Pack the inputs of a report for the grid."""

    def work(db: Db) -> dict[str, int]:
        trades = found(db, "SELECT trades FROM report WHERE id = %s", report)["trades"]
        if len(trades) > TRADES_MAX:
            raise Terminal(f"{len(trades)} trades do not fit into a package of {TRADES_MAX}")
        made = found(db, "INSERT INTO package (report) VALUES (%s) RETURNING id", report)
        return {"package": made["id"], "trades": trades}

    return tables.once(ctx, f"report {report} packed", work)


@worker.command("reporting.v1.package.delete")
def delete_package(package: int, ctx: Context) -> None:
    """The package is gone."""

    def work(db: Db) -> None:
        db.execute("DELETE FROM package WHERE id = %s", (package,))

    tables.once(ctx, f"package {package} deleted", work)


@worker.command("reporting.v1.results.process")
def process(report: int, closed: dict[str, Any], ctx: Context) -> dict[str, int]:
    """Keep the figures that came back."""
    if closed["state"] != "done":
        raise Terminal(f"the batch {closed['batch']} is {closed['state']}: {closed.get('reason')}")

    def work(db: Db) -> dict[str, int]:
        trades = found(db, "SELECT trades FROM report WHERE id = %s", report)["trades"]
        missing = sorted(set(trades) - set(closed["figures"]))
        if missing:
            raise Terminal(f"there are no figures for {', '.join(missing)}")
        query = "UPDATE report SET figures = %s WHERE id = %s"
        db.execute(query, (Jsonb(closed["figures"]), report))
        return {"figures": len(closed["figures"])}

    return tables.once(ctx, f"results of report {report} processed", work)


@worker.command("reporting.v1.results.delete")
def delete_results(report: int, ctx: Context) -> None:
    """The figures are gone."""

    def work(db: Db) -> None:
        db.execute("UPDATE report SET figures = NULL WHERE id = %s", (report,))

    tables.once(ctx, f"results of report {report} deleted", work)


@worker.command("reporting.v1.report.finalise")
def finalise(report: int, ctx: Context) -> dict[str, str]:
    """The report is final; of one title there is one."""

    def work(db: Db) -> dict[str, str]:
        query = "UPDATE report SET state = 'final' WHERE id = %s RETURNING title"
        try:
            return {"title": found(db, query, report)["title"]}
        except psycopg.errors.UniqueViolation:
            raise Terminal("there is a final report of that title already") from None

    return tables.once(ctx, f"report {report} finalised", work)


@worker.command("reporting.v1.report.fail")
def fail(report: int, ctx: Context) -> None:
    """The report came to nothing."""

    def work(db: Db) -> None:
        db.execute("UPDATE report SET state = 'failed' WHERE id = %s", (report,))

    tables.once(ctx, f"report {report} failed", work)
