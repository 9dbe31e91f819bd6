"""Several processes on one PostgreSQL: python -m bench.pg_processes drain --db URL --processes N.

The nodes are those of `pawl serve --processes N`, each owning a part of the shards. Starts lie in
the mailbox before they come; counted is what they complete a second, from a tenth of it to nine
tenths: neither their coming up nor the last few is in the figure.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any, Final

import psycopg

from bench.judge import FOLDER, Line
from bench.pawl_steps import CHAIN, STEPS
from pawlflow.embedded import Pawl
from pawlflow.engine.places import mail_of
from pawlflow.files import load_path
from pawlflow.model.ids import InstanceId, Tenant
from pawlflow.starts import start_of

PAWL: Final = (sys.executable, "-c", "from pawlflow.cli.main import entry; entry()")
MODULE: Final = '''"""What the benchmark's workflow calls."""

from pawlflow import step


@step(name="noop")
async def noop() -> int:
    """Do nothing."""
    return 1
'''
PAGE: Final = 500  # starts posted at a time
SECONDS_MAX: Final = 300.0
LOOK_S: Final = 0.05


def main(arguments: list[str]) -> int:
    """Measure once and print a line of JSON; without arguments there is nothing to do."""
    if not arguments:
        return 0
    parser = argparse.ArgumentParser(prog="bench.pg_processes", description=__doc__)
    parser.add_argument("mode", choices=("drain",))
    parser.add_argument("--db", metavar="URL", required=True, help="where nothing has run yet")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--workflows", type=int, default=20_000)
    parser.add_argument("--folder", default=FOLDER)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        (Path(folder) / "three.yaml").write_text(CHAIN)
        (Path(folder) / "steps.py").write_text(MODULE)
        asyncio.run(prepare(options, Path(folder)))
        line = measure(options, Path(folder))
    print(json.dumps({"engine": "pawl", "mode": "processes", **line}))
    return 0


def can_serve() -> bool:
    """Is there a `pawl serve` with processes?"""
    told = subprocess.run([*PAWL, "serve", "--help"], capture_output=True, text=True, check=False)
    return told.returncode == 0 and "--processes" in told.stdout


async def prepare(options: argparse.Namespace, folder: Path) -> None:
    """Publish the workflow, and put starts into the mailbox: their ids choose their shards."""
    [[workflow]] = [each.workflows for each in load_path(folder / "three.yaml")]
    async with Pawl(options.db) as pawl:
        pawl.effect("noop")(noop)
        plan = await pawl.plan_for(workflow)
        order = await pawl.order_of(plan, Tenant("default"), "bench", None)
    mail = []
    for number in range(options.workflows):
        start = start_of(order, InstanceId(f"r-{number}"), None, fresh=False)
        mail.append(mail_of(start.cell, start.input))
    store: Any = pawl_store(options.db)
    for at in range(0, len(mail), PAGE):
        store.post(mail[at : at + PAGE])
    store.close()


async def noop() -> int:
    """Never called: while starts are made, somebody must be able to carry them out."""
    return 1


def pawl_store(url: str) -> Any:
    """A handle that owns nothing."""
    from pawlflow.store.postgres import PostgresStore

    return PostgresStore(url)


def measure(options: argparse.Namespace, folder: Path) -> Line:
    """Let the nodes come, and look at how far they are."""
    words = [*PAWL, "--db", options.db, "serve", "three.yaml", "--worker", "steps.py"]
    words += ["--processes", str(options.processes)]
    with (folder / "log").open("wb") as log:
        nodes = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
        try:
            seconds, done = drained(options, nodes)
        except BaseException:
            sys.stderr.write((folder / "log").read_text(errors="replace")[-4_000:])
            raise
        finally:
            nodes.terminate()
            nodes.wait(60)
    return {
        "processes": options.processes,
        "workflows": options.workflows,
        "seconds": seconds,
        "steps_per_s": STEPS * done / seconds,
    }


def drained(options: argparse.Namespace, nodes: "subprocess.Popen[bytes]") -> tuple[float, int]:
    """The seconds between a tenth and nine tenths, and how many were completed in them."""
    schema = options.db.rpartition("schema=")[2]
    text = f"SELECT count(*) FROM {schema}.cell WHERE workflow = 'three' AND state = 'completed'"
    until = monotonic() + SECONDS_MAX
    first: tuple[float, int] | None = None
    last: tuple[float, int] | None = None
    with psycopg.connect(options.db.partition("?")[0], autocommit=True) as db:
        while True:
            [(done,)] = db.execute(text).fetchall()
            now = perf_counter()
            if first is None and done >= options.workflows / 10:
                first = (now, done)
            if last is None and done >= options.workflows * 9 / 10:
                last = (now, done)
            if done == options.workflows:
                assert first is not None
                assert last is not None
                assert last[0] > first[0], "so few workflows were over between two looks"
                return last[0] - first[0], last[1] - first[1]
            assert nodes.poll() is None, "the nodes are gone"
            assert monotonic() < until, f"{done} of {options.workflows} after {SECONDS_MAX} s"
            sleep(LOOK_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
