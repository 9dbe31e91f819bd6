"""The service publishing shows datasets to the world.

Run it with `pawl worker examples.ores.services.publishing`.
"""

from examples.ores.services.tables import Db, Tables, found
from pawlflow.worker import Context, Terminal, Worker

DATASETS = "CREATE TABLE IF NOT EXISTS dataset (name text PRIMARY KEY, revision integer NOT NULL)"
BUNDLES = "CREATE TABLE IF NOT EXISTS bundle (name text PRIMARY KEY, datasets integer NOT NULL)"
PUBLISH = """
INSERT INTO dataset (name, revision) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET revision = excluded.revision RETURNING revision
"""
SEAL = """
INSERT INTO bundle VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET datasets = excluded.datasets
"""
tables = Tables("publishing", DATASETS, BUNDLES).make()
worker = Worker(service="publishing", memory=tables.url)


@worker.command("publishing.v1.dataset.publish")
def publish(name: str, revision: int, ctx: Context) -> dict[str, object]:
    """Let everybody see this revision; once more is no other."""
    if revision < 1:
        raise Terminal(f"{name} has no revision {revision}")

    def work(db: Db) -> dict[str, object]:
        return {"name": name, "revision": found(db, PUBLISH, name, revision)["revision"]}

    return tables.once(ctx, f"{name} published", work)


@worker.command("publishing.v1.bundle.seal")
def seal(bundle: str, datasets: int, ctx: Context) -> dict[str, int]:
    """The bundle is whole."""

    def work(db: Db) -> dict[str, int]:
        db.execute(SEAL, (bundle, datasets))
        return {"datasets": datasets}

    return tables.once(ctx, f"bundle {bundle} sealed", work)
