"""`pawl worker`: the commands of a module, as a service on NATS."""

import asyncio
import signal
from types import ModuleType
from typing import Any

import click

from pawlflow.cli.executors import load_worker
from pawlflow.cli.output import USAGE, note, print_json
from pawlflow.cli.session import Session, session, told
from pawlflow.collector import collect_seldom
from pawlflow.effects.steps import Step
from pawlflow.services.protocol import is_command
from pawlflow.worker import Worker


@click.command(help="Run a module's commands as a service on NATS, until it is stopped.")
@click.argument("module")
@click.option(
    "--nats", envvar="PAWL_NATS", metavar="URL", help="The NATS server.", show_envvar=True
)
@click.option("--memory", metavar="URL", help="What was done; default .pawl/worker-SERVICE.db.")
@click.option("--no-batches", is_flag=True, help="Take commands one by one.")
def command(
    module: str, nats: str | None, memory: str | None, no_batches: bool, **options: Any
) -> None:
    """A module has Worker objects, or @step functions named SERVICE.v1.RESOURCE.ACTION."""
    here = session(options)
    with told(here):
        workers = workers_in(here, load_worker(here, module, "the module"), module)
        for each in workers:
            each.nats = nats or each.nats
            each.memory_url = memory or each.memory_url
            each.batches = each.batches and not no_batches
        asyncio.run(run_all(here, workers))


def workers_in(here: Session, module: ModuleType, given: str) -> list[Worker]:
    """The workers of a module; of its steps, one for each service."""
    held = list({id(each): each for each in vars(module).values()}.values())
    made = {id(each): each for each in held if isinstance(each, Worker)}
    steps = [each for each in held if isinstance(each, Step) and is_command(each.name)]
    by_service: dict[str, Worker] = {}
    for step in steps:
        service = step.name.partition(".")[0]
        worker = by_service.setdefault(service, Worker(service=service))
        worker.command(step.name)(step)
    workers = [*made.values(), *by_service.values()]
    if not workers:
        message = (
            f"{given} has no Worker, and no @step(name='SERVICE.v1.RESOURCE.ACTION'): "
            "there is nothing to carry out"
        )
        here.end("cli.worker", message, USAGE)
    return workers


async def run_all(here: Session, workers: list[Worker]) -> None:
    """Work until a signal comes; what is under way is finished."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stopped.set)
    opened: list[Worker] = []
    try:
        for worker in workers:
            opened.append(await worker.open())
            tell(here, worker)
        collect_seldom()
        await stopped.wait()
    finally:
        for worker in opened:
            await worker.close()
    note("stopped; what was not finished comes to somebody else")


def tell(here: Session, worker: Worker) -> None:
    """What it carries out."""
    commands = sorted(worker.executors)
    if here.as_json:
        print_json({"service": worker.service, "commands": commands})
    else:
        click.echo(f"{worker.service}: {', '.join(commands)}")
