"""`pawl serve`: a production node, or several of them, until it is stopped."""

import asyncio
import os
import signal
import sys
import time
from typing import Any, Final

import click

from pawlflow.app import shown
from pawlflow.cli.executors import load_worker
from pawlflow.cli.output import INVALID, NOT_FOUND, UNREACHABLE, USAGE, note
from pawlflow.cli.session import Session, session, told
from pawlflow.collector import collect_seldom
from pawlflow.hosting import Hosted
from pawlflow.nodes import Node
from pawlflow.policing import unread_policies
from pawlflow.store.postgres_url import is_postgres
from pawlflow.trouble import DefinitionError

PROCESSES_MAX: Final = 32  # as many as there are shards
CHILD: Final = "PAWL_SERVE_CHILD"  # set for the processes of one command
PAUSES_S: Final = (1.0, 30.0)  # before a process that fell is started again: first, and at most
LONG_S: Final = 60.0  # one that ran for so long had begun well
LEAVE_S: Final = 10.0  # to hand over


@click.command(
    help="Run a production node: an engine on the store, and its side of NATS. Any number of "
    "nodes, on any number of machines, share a PostgreSQL store; on SQLite there is one."
)
@click.argument("paths", nargs=-1, metavar="[FILES]...")
@click.option(
    "--processes",
    type=click.IntRange(1, PROCESSES_MAX),
    default=1,
    show_default=True,
    help="How many nodes, each a process.",
)
@click.option(
    "--nats", envvar="PAWL_NATS", metavar="URL", help="The NATS server.", show_envvar=True
)
@click.option(
    "--read-models/--no-read-models",
    default=None,
    help="Keep the SQL views fresh; default on PostgreSQL.",
)
@click.option("--worker", "workers", multiple=True, metavar="MODULE", help="Steps to run here.")
def command(
    paths: tuple[str, ...],
    processes: int,
    nats: str | None,
    read_models: bool | None,
    workers: tuple[str, ...],
    **options: Any,
) -> None:
    """Definitions in FILES are published first; what was published before is there anyway."""
    here = session(options)
    if not is_postgres(here.url) and processes > 1:
        message = (
            f"{shown(here.url)} is one process's own: several need --db postgresql://..., "
            "and `pawl move` carries a project there"
        )
        here.end("node.store", message, USAGE)
    with told(here):
        if processes > 1 and CHILD not in os.environ:
            sys.exit(asyncio.run(Crew(processes).serve()))
        engine = engine_of(here, nats, read_models=read_models)
        try:
            engine.load(*paths)
        except DefinitionError as error:
            missing = error.code == "file.unreadable"
            here.end(error.code, str(error), NOT_FOUND if missing else INVALID)
        for module in workers:
            engine.register(load_worker(here, module))
        sys.exit(asyncio.run(serve(here, engine)))


def engine_of(here: Session, nats: str | None, *, read_models: bool | None) -> Hosted:
    """A node, or the one engine of a file."""
    shared = is_postgres(here.url)
    return (Node if shared else Hosted)(
        here.url,
        tenant=here.tenant,
        driver="thread",
        nats=nats,
        by="serve",
        read_models=shared if read_models is None else read_models,
    )


async def serve(here: Session, engine: Hosted) -> int:
    """Work until a signal comes, then hand over."""
    loop, leaving = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, leaving.set)
    if CHILD in os.environ:  # without the process that started it there is nobody to stop it
        loop.add_reader(sys.stdin.fileno(), leaving.set)
    engine.ended = leaving.set
    await engine.open()
    collect_seldom()
    try:
        who = f"node {engine.name}" if isinstance(engine, Node) else "the engine"
        note(f"{who} is ready on {shown(here.url)} (pid {os.getpid()})")
        if governed := unread_policies(engine.reader, here.tenant):
            note(f"warning: {governed}")
        await leaving.wait()
    finally:
        await leave(engine)
    if engine.trouble is not None:
        note(f"stopped: {engine.trouble.message} [{engine.trouble.code}]")
        return UNREACHABLE
    note("stopped; what is in flight goes on elsewhere, or when somebody serves again")
    return 0


async def leave(engine: Hosted) -> None:
    """Hand over; a store that does not answer is not waited for, since nothing is lost by it."""
    try:
        async with asyncio.timeout(LEAVE_S):
            await engine.close()
    except TimeoutError:
        note("stopped; the store does not answer, so its other nodes take over in a few seconds")
        os._exit(UNREACHABLE)  # threads still wait for it


class Crew:
    """The processes of one command: each is a node, and one that falls is started again."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.leaving = asyncio.Event()
        self.running: dict[int, asyncio.subprocess.Process] = {}

    async def serve(self) -> int:
        """Keep them running until a signal comes, then let all of them hand over."""
        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, self.leaving.set)
        keepers = [asyncio.ensure_future(self.keep(number)) for number in range(self.count)]
        await self.leaving.wait()
        for process in self.running.values():
            process.terminate()
        _, late = await asyncio.wait(keepers, timeout=2 * LEAVE_S)
        for process in self.running.values():
            process.kill()
        if late:
            await asyncio.wait(late)
        return 1 if late else 0

    async def keep(self, number: int) -> None:
        """One process, again and again."""
        pause = PAUSES_S[0]
        while not self.leaving.is_set():
            began = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", "from pawlflow.cli.main import entry; entry()"),
                *sys.argv[1:],
                env={**os.environ, CHILD: str(number)},
                stdin=asyncio.subprocess.PIPE,  # it ends with this process
                start_new_session=True,  # a Ctrl-C is for this process, which tells the others
            )
            self.running[number] = process
            if self.leaving.is_set():
                process.terminate()
            code = await process.wait()
            del self.running[number]
            if self.leaving.is_set():
                return
            pause = PAUSES_S[0] if time.monotonic() - began > LONG_S else pause
            note(f"process {number} ended with {code}; it is started again in {pause:g} s")
            await self.nap(pause)
            pause = min(2 * pause, PAUSES_S[1])

    async def nap(self, seconds: float) -> None:
        """Wait, unless it is time to leave."""
        try:
            async with asyncio.timeout(seconds):
                await self.leaving.wait()
        except TimeoutError:
            return
