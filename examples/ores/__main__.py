"""The four workflows, played: `python -m examples.ores` from the root of the repository."""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from examples.ores.client import Client
from examples.ores.ledger import changes_of, tables_of
from examples.ores.servers import NoServerError, Servers
from examples.ores.stage import SERVICES, Stage

HOUR_S = 0.4  # of the grid, in this story: six hours are over soon
MARKS = {"succeeded": "✓", "failed": "✗", "waiting": "…", "running": "…"}


class Story:
    """One act after the other."""

    def __init__(self, stage: Stage, client: Client, *, quiet: bool) -> None:
        self.stage = stage
        self.client = client
        self.quiet = quiet
        self.acts: list[dict[str, Any]] = []

    def say(self, text: str = "") -> None:
        """A line for people."""
        if not self.quiet:
            print(text, flush=True)

    async def play(self, title: str, workflow: str, request: Any, correlation: str) -> None:
        """Start an instance, wait for its end, and tell what became of it."""
        self.say(f"\n{title}")
        instance = await self.client.start(workflow, request, correlation)
        await self.tell(title, workflow, instance)

    async def tell(self, title: str, workflow: str, instance: str) -> None:
        """What became of an instance: in the engine's words, and in the tables of the services."""
        row = await self.client.closed(instance, workflow)
        steps = await self.client.steps(instance)
        changes = await asyncio.to_thread(changes_of, self.stage.database, instance)
        lens = {"full": "compensated", "partial": "failed"}.get(row["rollback"], row["state"])
        for each in steps:
            error = each.get("error") or {}
            undone = "  undone" if each.get("undo") == "done" else ""
            warned = "  with a warning" if each.get("warnings") else ""
            said = f"  {error['message']}" if error else ""
            self.say(f"  {MARKS.get(each['state'], '-')} {each['name']:<16}{warned}{undone}{said}")
        self.say(f"  {workflow} {instance}: {lens}; the services changed, in this order:")
        for change in changes:
            self.say(f"      {change['service']:<11} {change['action']}")
        self.acts.append({"title": title, **row, "steps": steps, "changes": changes})

    async def report_with_a_crash(self) -> None:
        """The grid computes for hours; meanwhile the engine is killed, and another one goes on."""
        title = "A report: the grid computes for six hours, and the engine is killed meanwhile"
        self.say(f"\n{title}")
        request = {"title": "risk of May", "trades": ["SWAP-1", "SWAP-2"], "hours": 6}
        instance = await self.client.start("report_execution", request, "report-1")
        steps = await self.client.steps(instance)
        while [each["state"] for each in steps[:3]] != ["succeeded"] * 3:
            steps = await self.client.steps(instance)
        running = [each["name"] for each in steps if each["state"] == "running"]
        self.say(f"  … compute waits for an event; attempts that are open: {len(running)}")
        self.stage.kill("engine")
        self.say("  ! kill -9 of the engine")
        await asyncio.to_thread(self.stage.start, "engine")
        self.say("  ! another engine is ready")
        await self.tell(title, "report_execution", instance)

    async def whole(self) -> None:
        """All acts."""
        acme = {"name": "Acme", "login": "acme", "role": "owner"}
        title = "A party is provisioned: three steps in two services"
        await self.play(title, "provision_parties", acme, "provision-1")
        title = "The same request comes again: it is the same instance, and nothing is done twice"
        await self.play(title, "provision_parties", acme, "provision-1")
        wrong = {"name": "Brand", "login": "brand", "role": "emperor"}
        title = "A role that there is none of: the account and the party are taken back, last first"
        await self.play(title, "provision_parties", wrong, "provision-2")
        trades = [{"name": "SWAP-1", "notional": 70}, {"name": "SWAP-2", "notional": 30}]
        file = {"file": "may.xml", "trades": [*trades, {"name": "SWAP-3"}], "total": 100}
        title = "A file is imported; one trade of it cannot be, which is a warning"
        await self.play(title, "ore_import", file, "import-1")
        title = "The trades do not add up: the import is rolled back by the ids that were saved"
        await self.play(title, "ore_import", {**file, "file": "june.xml", "total": 999}, "import-2")
        await self.report_with_a_crash()
        lost = {"title": "risk of June", "trades": ["SWAP-1", "DIVERGENT"], "hours": 3}
        title = "A report whose computing fails after three hours: everything is taken back"
        await self.play(title, "report_execution", lost, "report-2")
        names = [f"curve-{n}" for n in range(1, 8)]
        datasets = [{"name": each, "revision": 1} for each in names]
        datasets.append({"name": "surface", "revision": 1, "needs": names})
        title = "A bundle of eight datasets, one of which needs the others: nine steps"
        bundle = {"bundle": "market data of May", "datasets": datasets}
        await self.play(title, "bundle_publish", bundle, "bundle-1")
        title = "A bundle of none: one step"
        empty = {"bundle": "an empty one", "datasets": []}
        await self.play(title, "bundle_publish", empty, "bundle-2")

    def summary(self) -> None:
        """What is left: instances, and the tables of the services."""
        self.say("\nInstances")
        for each in {each["id"]: each for each in self.acts}.values():
            about = f"{each['state']}, rollback {each['rollback']}"
            self.say(f"  {each['workflow']:<18} {each['id']}  {about}")
        for service, tables in tables_of(self.stage.database).items():
            self.say(f"\nTables of {service}")
            for name, rows in tables.items():
                self.say(f"  {name}: {len(rows)} row{'s' if len(rows) != 1 else ''}")
                for row in rows[:10]:
                    self.say(f"      {', '.join(f'{key}={row[key]}' for key in row)}")


async def play(stage: Stage, *, quiet: bool) -> Story:
    """The whole story, on a stage that is set."""
    async with Client(stage.nats) as client:
        story = Story(stage, client, quiet=quiet)
        await story.whole()
        return story


def main() -> int:
    """Start what is needed, play, and end what was started."""
    parser = argparse.ArgumentParser(prog="python -m examples.ores", description=__doc__)
    parser.add_argument("--db", metavar="URL", help="a PostgreSQL database; else one is started")
    parser.add_argument("--nats", metavar="URL", help="a NATS server; else one is started")
    parser.add_argument("--logs", metavar="FOLDER", type=Path, help="where processes write")
    parser.add_argument("--json", action="store_true", help="one document instead of a story")
    given = parser.parse_args()
    began = time.monotonic()
    try:
        with Servers(given.db, given.nats) as servers:
            logs = given.logs or Path(tempfile.mkdtemp(prefix="ores-logs-"))
            logs.mkdir(parents=True, exist_ok=True)
            print(f"PostgreSQL and NATS are there; processes write to {logs}", file=sys.stderr)
            speed = {"GRID_HOUR_S": str(HOUR_S)}
            with Stage(servers.database, servers.nats, logs, **speed) as stage:
                print("starting the engine and six services ...", file=sys.stderr)
                stage.make_key()
                stage.start("engine", *SERVICES)
                story = asyncio.run(play(stage, quiet=given.json))
                if given.json:
                    tables = tables_of(stage.database)
                    print(json.dumps({"acts": story.acts, "tables": tables}, default=str))
                story.summary()
    except (NoServerError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 69
    print(f"{len(story.acts)} acts in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
