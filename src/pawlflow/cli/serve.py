"""`pawl serve`: a production node, or several of them, until it is stopped."""

import asyncio
import os
import signal
import sys
import time
from typing import Any, Final

import click

from pawlflow.app import path_of, shown
from pawlflow.cli.executors import load_worker
from pawlflow.cli.output import CONFLICT, INVALID, NOT_FOUND, UNREACHABLE, USAGE, note
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
HOPELESS: Final = (USAGE, INVALID, NOT_FOUND, CONFLICT)  # by these it will not come up later either


@click.command(
    help="Run a production node: an engine on the store, and its side of NATS. Any number of "
    "nodes, on any number of machines, share a PostgreSQL store; the processes of one command "
    "share a SQLite file."
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
    with told(here):
        if processes > 1 and not is_postgres(here.url) and path_of(here.url) is None:
            message = f"{shown(here.url)} is one process's own: several share a file, or a server"
            here.end("node.store", message, USAGE)
        if processes > 1 and CHILD not in os.environ:
            sys.exit(asyncio.run(Crew(processes).serve()))
        engine = engine_of(here, nats, read_models=read_models, alone=processes == 1)
        try:
            engine.load(*paths)
        except DefinitionError as error:
            missing = error.code == "file.unreadable"
            here.end(error.code, str(error), NOT_FOUND if missing else INVALID)
        for module in workers:
            engine.register(load_worker(here, module))
        sys.exit(asyncio.run(serve(here, engine)))


def engine_of(here: Session, nats: str | None, *, read_models: bool | None, alone: bool) -> Hosted:
    """A node, or the one engine of a file."""
    served = is_postgres(here.url)
    return (Node if served or not alone else Hosted)(
        here.url,
        tenant=here.tenant,
        driver="thread",
        nats=nats,
        by="serve",
        read_models=served if read_models is None else read_models,
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
        self.refused = 0  # with what the first of them ended, if none could ever serve

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
        return 1 if late else self.refused

    async def keep(self, number: int) -> None:
        """One process, again and again."""
        pause, first = PAUSES_S[0], True
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
            if first and code in HOPELESS:
                self.refused = code
                self.leaving.set()
                return
            first = False
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
